// Requests in flight when the syncer must stop: they end with it, because another syncer may be the leader by then.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { Lease } from '../../src/vcluster/sync/kinds.ts'
import { endpoints, people, until } from '../support/cluster.ts'
import { killProgram, startOwnCluster, startProgram } from '../support/cluster-process.ts'
import { exec } from '../support/exec.ts'
import { kubeconfigOf } from '../support/kubeconfig.ts'

const directory = mkdtempSync(join(tmpdir(), 'platform-sync-'))
const program = join(import.meta.dirname, '../../bin/platform.js')
const [virtual, host] = await Promise.all([startOwnCluster(), startOwnCluster()])
after(async () => {
  await Promise.all([virtual.close(), host.close()])
  rmSync(directory, { recursive: true })
})
const write = (name: string, text: string) => {
  const file = join(directory, name)
  writeFileSync(file, text)
  return file
}

type Held = { readonly isOpen: () => boolean }

/** Forwards everything to the host except held requests, which get no response. */
async function startFront() {
  const { origin, pathname } = new URL(host.server)
  const held: { [what: string]: Held[] } = { leases: [], endpoints: [] }
  let holds: (what: string, method: string) => boolean = () => false
  const serve = (asked: IncomingMessage, response: ServerResponse) => {
    const { url = '', method = '', headers } = asked
    const what = /(leases|endpoints)/.exec(url)?.[1] ?? ''
    if (holds(what, method)) return void held[what]?.push({ isOpen: () => !response.destroyed })
    const passed = request(
      `${origin}${url}`,
      { method, headers: { ...headers, host: new URL(origin).host } },
      answer => {
        response.writeHead(answer.statusCode ?? 500, answer.headers)
        response.flushHeaders()
        answer.pipe(response)
      },
    )
    passed.on('error', () => response.destroy())
    response.on('close', () => passed.destroy())
    asked.pipe(passed)
  }
  const server = createServer(serve)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    held,
    hold: (next: typeof holds) => {
      holds = next
    },
    kubeconfig: write(`${port}.kubeconfig`, kubeconfigOf(`http://127.0.0.1:${port}${pathname}`)),
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
const args = (kubeconfig: string, more: readonly string[]) => [
  ...[program, 'vcluster', 'sync', '-f', write('vcluster.yaml', ''), '--name', 'vc', '--namespace', 'team'],
  ...['--virtual-kubeconfig', virtual.kubeconfig, '--host-kubeconfig', kubeconfig, ...more],
]
async function make(name: string): Promise<void> {
  await people(virtual).service(name)
  await people(virtual).create(endpoints(name))
}

test('a write in flight ends when the lease is lost, and two replicas have different identities', async t => {
  const front = await startFront()
  t.after(() => front.close())
  const { child, printed } = await startProgram(
    args(front.kubeconfig, ['--leader-elect']),
    /initial sync: both clusters (listed)/,
  )
  try {
    const lease = { namespace: 'team', name: 'vcluster-sync-vc' }
    const { object } = await host.resources.get(Lease, lease)
    assert.match(String(object.spec?.['holderIdentity']), /_[0-9a-f]{8}-[0-9a-f-]{27}$/)
    const { leases = [], endpoints: writes = [] } = front.held
    front.hold(what => what === 'leases')
    await until('a renewal', async () => leases.length > 0, 60_000)
    front.hold((what, method) => what === 'leases' || method === 'POST')
    await make('web')
    await until('a write', async () => writes.length > 0)
    await until('its end', async () => !writes[0]?.isOpen(), 60_000)
    // This earlier request is not ended: without a response it keeps its normal timeout.
    assert.ok(leases.some(one => one.isOpen()))
    assert.doesNotMatch(printed(), /abort/i)
  } finally {
    await killProgram(child)
  }
})

test('--once stops when its time is up, with requests in flight', async t => {
  const front = await startFront()
  t.after(() => front.close())
  front.hold((what, method) => what === 'endpoints' && method === 'POST')
  await make('slow')
  const running = exec(process.execPath, args(front.kubeconfig, ['--once', '--timeout', '4']), { timeout: 60_000 })
  const { code, stderr } = await running
  assert.equal(code, 1)
  assert.match(
    stderr,
    /platform: default\/slow: the request was cancelled: the syncer stopped or reached its time limit\n/,
  )
  assert.match(stderr, /platform: timed out after 4 s/)
})
