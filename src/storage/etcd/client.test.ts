// Tests of the etcd client that need no etcd.

import assert from 'node:assert/strict'
import { createServer } from 'node:http2'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { test } from 'node:test'
import { EtcdError, openEtcdClient } from './client.ts'

const portOf = (server: { address(): unknown }) => (server.address() as AddressInfo).port

test('errors say what failed, without notes of the gRPC library', async t => {
  const silent = createServer().listen(0, '127.0.0.1')
  const unused = createTcpServer().listen(0, '127.0.0.1')
  await Promise.all([silent, unused].map(server => new Promise(resolve => server.once('listening', resolve))))
  const closed = portOf(unused)
  unused.close()
  const [one, other] = [`http://127.0.0.1:${portOf(silent)}`, `http://127.0.0.1:${closed}`]
  const client = openEtcdClient({ endpoints: [one, other] })
  t.after(() => {
    client.close()
    silent.close()
  })
  await assert.rejects(client.range({}, 200), { message: `etcd ${one}: no response in time` })
  const [, refused] = await client.statuses()
  assert.ok(refused?.status instanceof EtcdError)
  assert.equal(refused.status.message, `etcd ${other}: connect ECONNREFUSED 127.0.0.1:${closed}`)
})
