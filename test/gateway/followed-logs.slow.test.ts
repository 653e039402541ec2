// Logs that are followed, over the connections that they share: text without a length, for hours, to clients of both protocols, fast and slow.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type ClientHttp2Stream, connect, constants } from 'node:http2'
import { describe, test } from 'node:test'
import { unchanged } from '../support/wire.ts'
import { closing, dialTo, openBefore, openCluster, tls, until, watch } from './http2-cluster.ts'
import { claimsFor, type TestGateway } from './in-process.ts'

const following = '/kubernetes/cluster/prod/api/v1/namespaces/shop/pods/till/log?follow=true&container=main'
const MiB = 1024 * 1024
const certificates = { current: { certificate: tls.cert, key: tls.key }, follow: () => {}, stop: () => {} }

const follow = (gateway: TestGateway) => watch(gateway, {}, claimsFor(), following)

type Followed = { readonly stream: ClientHttp2Stream; text: string; end: 'open' | 'whole' | 'broken' }

/** Clients by HTTP/2, on one connection. */
function openClient(gateway: TestGateway) {
  const session = connect(gateway.url, { rejectUnauthorized: false }).on('error', () => {})
  closing.push(() => session.destroy())
  return async (): Promise<Followed> => {
    const authorization = `Bearer ${await gateway.sign()}`
    const stream = session.request({ ':path': following, authorization })
    const seen: Followed = { stream, text: '', end: 'open' }
    stream.on('data', chunk => {
      seen.text += chunk
    })
    stream.on('error', () => {
      seen.end = 'broken'
    })
    stream.on('close', () => {
      // Node tells of a stream that was reset without an error as if it had ended.
      if (seen.end === 'open') seen.end = stream.rstCode === constants.NGHTTP2_NO_ERROR ? 'whole' : 'broken'
    })
    await once(stream, 'response')
    return seen
  }
}

/** A cluster whose logs begin with a line, and are as long as `sizes` says, in order; the others stay open. */
async function openLogs(sizes: readonly number[] = []) {
  const chunk = Buffer.alloc(16 * 1024, 'x')
  const written: number[] = []
  const cluster = await openCluster({}, ({ response }) => {
    const at = cluster.got.length - 1
    const size = sizes[at]
    response.writeHead(200, { 'content-type': 'text/plain' })
    response.write('first\n')
    written[at] = 0
    if (size === undefined) return
    const push = () => {
      while ((written[at] as number) < size) {
        written[at] = (written[at] as number) + chunk.length
        if (!response.write(chunk)) return void response.once('drain', push)
      }
      response.end('last\n')
    }
    push()
  })
  return { ...cluster, written }
}

describe('followed logs', { timeout: 300_000 }, () => {
  test('arrive in chunks as they are written, and end when the cluster ends them', async () => {
    const cluster = await openLogs()
    const gateway = await openBefore(cluster.url, dialTo(cluster.url), { certificates })
    const ask = openClient(gateway)
    const all = [await ask(), await ask()]
    assert.equal(cluster.sessions.size, 1)
    assert.ok(cluster.got.every(({ request }) => request.url?.endsWith('/log?follow=true&container=main')))
    const euro = Buffer.from('€\n')
    for (const { response } of cluster.got) response.write(euro.subarray(0, 1))
    for (const { response } of cluster.got) response.write(euro.subarray(1))
    await until('all have it', () => all.every(({ text }) => Buffer.byteLength(text) >= 6 + 4))
    assert.ok(all.every(({ end }) => end === 'open'))
    cluster.got[0]?.response.end('last\n')
    await until('one has ended', () => all[0]?.end === 'whole')
    assert.ok(all[0]?.text.endsWith('last\n'))
    assert.equal(all[1]?.end, 'open')
  })

  test('that a client closes are cancelled at the cluster, and its other streams continue', async () => {
    const cluster = await openLogs()
    const gateway = await openBefore(cluster.url, dialTo(cluster.url), { certificates })
    const ask = openClient(gateway)
    const [first, second] = [await ask(), await ask()]
    first.stream.close(constants.NGHTTP2_CANCEL)
    await until('the cluster hears of it', () => cluster.got[0]?.request.stream.destroyed === true)
    assert.equal(cluster.got[0]?.request.stream.rstCode, constants.NGHTTP2_CANCEL)
    cluster.got[1]?.response.write('still\n')
    await until('the second continues', () => second.text.endsWith('still\n'))
    await until('one is under way', () => gateway.streams.open === 1)
    assert.equal(cluster.sessions.size, 1)
  })

  test('that the cluster aborts look incomplete to an HTTP/2 client, and its other streams continue', async () => {
    const cluster = await openLogs()
    const gateway = await openBefore(cluster.url, dialTo(cluster.url), { certificates })
    const ask = openClient(gateway)
    const [first, second] = [await ask(), await ask()]
    cluster.got[0]?.response.stream.close(constants.NGHTTP2_INTERNAL_ERROR)
    await until('it has ended', () => first.end !== 'open')
    assert.equal(first.end, 'broken')
    cluster.got[1]?.response.write('still\n')
    await until('the second continues', () => second.text.endsWith('still\n'))
  })

  test('are aborted for an HTTP/2 client when the token is revoked, and look incomplete', async () => {
    const cluster = await openLogs()
    const gateway = await openBefore(cluster.url, dialTo(cluster.url), { certificates })
    const seen = await openClient(gateway)()
    await gateway.revoke({ keyUID: 'key-1' })
    await until('it has ended', () => seen.end !== 'open')
    assert.equal(seen.end, 'broken')
    await until('the cluster hears of it', () => cluster.got[0]?.request.stream.destroyed === true)
  })

  test('of seventy clients that do not read do not block others on the same connection, and are paused', async () => {
    const slowOnes = 70
    const cluster = await openLogs([...new Array<number>(slowOnes).fill(16 * MiB), 8 * MiB])
    const gateway = await openBefore(cluster.url)
    const slow = await Promise.all(
      Array.from({ length: slowOnes }, async () => {
        const seen = await follow(gateway)
        seen.answer.pause()
        return seen
      }),
    )
    const written = () => cluster.written.reduce((sum, one) => sum + one, 0)
    await unchanged('the cluster has to wait', written)
    assert.ok(written() > 64 * 64 * 1024, 'more than the whole connection may have under way was taken')
    const quick = await follow(gateway)
    await until('the quick one has all of it', () => quick.end === 'whole')
    assert.equal(quick.text.length, 8 * MiB + 'first\nlast\n'.length)
    assert.equal(cluster.sessions.size, 1)
    assert.ok(slow.every(({ end }) => end === 'open'))
    const [one] = slow
    one?.answer.resume()
    await until('a slow one continues', () => one?.end === 'whole')
    assert.equal(one?.text.length, 16 * MiB + 'first\nlast\n'.length)
  })
})
