// The syncer with a host API server whose name this machine cannot resolve.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { hostName } from '../../src/vcluster/sync/names.ts'
import { endpoints, people } from '../support/cluster.ts'
import { startOwnCluster } from '../support/cluster-process.ts'
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
const config = write('vcluster.yaml', '')
const unknown = 'http://api.invalid'

function once(kubeconfig: string, seconds: string) {
  const sides = ['--virtual-kubeconfig', virtual.kubeconfig, '--host-kubeconfig', kubeconfig]
  const args = ['vcluster', 'sync', '-f', config, '--name', 'vc', '--namespace', 'team', '--once', '--timeout', seconds]
  return exec(process.execPath, [program, ...args, ...sides], { timeout: 60_000 })
}

test('nothing is synced while the name cannot be resolved; behind a proxy, which resolves it, the sync works', async t => {
  const v = people(virtual)
  await v.service('web')
  await v.create(endpoints('web'))
  const alone = await once(write('alone', kubeconfigOf(unknown)), '2')
  assert.equal(alone.code, 1)
  assert.match(alone.stderr, /cannot resolve api\.invalid, the host's API server/)

  const { pathname } = new URL(host.server)
  const proxy = createServer((asked, response) => {
    assert.ok(asked.url?.startsWith(`${unknown}/`), asked.url)
    const to = `${host.server}${asked.url?.slice(unknown.length).replace(pathname, '')}`
    asked.pipe(
      request(to, { method: asked.method, headers: { ...asked.headers, host: new URL(to).host } }, answer => {
        response.writeHead(answer.statusCode ?? 500, answer.headers)
        answer.pipe(response)
      }),
    )
  })
  t.after(() => {
    proxy.closeAllConnections()
    proxy.close()
  })
  await new Promise<void>(resolve => proxy.listen(0, '127.0.0.1', resolve))
  const { port } = proxy.address() as AddressInfo
  const text = kubeconfigOf(unknown + pathname).replace('"server"', `"proxy-url":"http://127.0.0.1:${port}","server"`)
  const proxied = await once(write('proxied', text), '30')
  assert.equal(proxied.code, 0, proxied.stderr)
  assert.ok(await people(host).get({ namespace: 'team', name: hostName('web', 'default', 'vc') }))
})
