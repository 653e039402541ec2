// A cluster that is gone without a word, as one whose machine lost its power: how a quiet connection to it is noticed, of each kind that a gateway has.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { request } from 'node:http'
import { createServer as createHttps } from 'node:https'
import type { AddressInfo } from 'node:net'
import { describe, test } from 'node:test'
import { notRun } from '../support/missing-tool.ts'
import { eventually } from '../support/wire.ts'
import { closing, openBefore, openCluster, tls, until, watch } from './http2-cluster.ts'
import { claimsFor, type TestGateway } from './in-process.ts'

const table = '/proc/net/tcp'
const exec = '/kubernetes/cluster/prod/api/v1/namespaces/shop/pods/till/exec?command=sh'

type Probe = { readonly isKeepAlive: boolean; readonly seconds: number }

/** The keep-alive timers of the kernel for connections to a local port. */
function probesTo(port: number): Probe[] {
  const hex = port.toString(16).toUpperCase().padStart(4, '0')
  return readFileSync(table, 'utf8')
    .split('\n')
    .map(line => line.trim().split(/\s+/))
    .filter(([, , remote, state]) => remote?.endsWith(`:${hex}`) && state === '01')
    .map(columns => {
      const [kind, ticks = ''] = (columns[5] ?? '').split(':')
      return { isKeepAlive: kind === '02', seconds: Number.parseInt(ticks, 16) / 100 }
    })
}

/** A cluster that speaks HTTP/1.1 alone, over TLS, begins every answer and agrees to every upgrade. */
async function openOld() {
  let connections = 0
  const server = createHttps(tls, ({ url = '' }, response) => {
    if (!url.includes('watch')) return void response.end('{}')
    response.write('first\n')
  })
  server.on('upgrade', (_, socket) => {
    socket.on('error', () => {})
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n')
  })
  server.on('secureConnection', () => connections++)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closing.push(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { url: `https://127.0.0.1:${port}`, port, connections: () => connections }
}

async function openShell(gateway: TestGateway): Promise<void> {
  const Authorization = `Bearer ${await gateway.sign(claimsFor())}`
  const headers = { Authorization, Connection: 'Upgrade', Upgrade: 'SPDY/3.1' }
  const call = request(`${gateway.url}${exec}`, { method: 'POST', headers, agent: false }).end()
  const [, socket] = await once(call, 'upgrade')
  closing.push(() => socket.destroy())
}

/** The kernel asks after 30 s without a byte, and ten times more, a second apart. */
const isAskedSoon = ({ isKeepAlive, seconds }: Probe) => isKeepAlive && seconds <= 30

if (!existsSync(table)) notRun(table)
else
  describe('the kernel probes idle connections to a cluster within 30 s', { timeout: 120_000 }, () => {
    test('of a watch over HTTP/1.1', async () => {
      const cluster = await openOld()
      const seen = await watch(await openBefore(cluster.url))
      await until('it has begun', () => seen.text === 'first\n')
      await eventually('it will be', async () => probesTo(cluster.port).some(isAskedSoon))
    })

    test('of a shell', async () => {
      const cluster = await openOld()
      await openShell(await openBefore(cluster.url))
      await eventually('it will be', async () => probesTo(cluster.port).some(isAskedSoon))
    })

    test('shared by watches', async () => {
      const cluster = await openCluster()
      await watch(await openBefore(cluster.url))
      await eventually('it will be', async () => probesTo(Number(new URL(cluster.url).port)).some(isAskedSoon))
    })
  })

test('a watch over HTTP/1.1 uses a new connection, because a kept one may be dead', async () => {
  const cluster = await openOld()
  const gateway = await openBefore(cluster.url)
  const Authorization = `Bearer ${await gateway.sign()}`
  const get = async () =>
    (await fetch(`${gateway.url}/kubernetes/cluster/prod/api`, { headers: { Authorization } })).text()
  await watch(gateway) // the first one finds out that it speaks no HTTP/2
  await get()
  const before = cluster.connections()
  await get()
  assert.equal(cluster.connections(), before, 'a get uses what was kept')
  await watch(gateway)
  assert.equal(cluster.connections(), before + 1)
  await get()
  assert.equal(cluster.connections(), before + 1, 'what was kept is still kept')
})
