// A client by HTTP/2, as kubectl is: what it gets of an answer is what one by HTTP/1.1 gets, and half of what it sends is never taken for a whole.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, constants } from 'node:http2'
import { describe, test } from 'node:test'
import { frame, headOf, openFrames } from '../support/http2-frames.ts'
import { closing, dialTo, openBefore, openCluster, tls, until } from './http2-cluster.ts'
import { openBackend, openTestGateway } from './in-process.ts'

const certificates = { current: { certificate: tls.cert, key: tls.key }, follow: () => {}, stop: () => {} }

describe('a response to an HTTP/2 client', { timeout: 120_000 }, () => {
  for (const path of ['/api/v1/pods', '/api/v1/pods?watch=true'])
    test(`has every repeated header of the cluster: ${path}`, async () => {
      const cluster = await openCluster({}, ({ response }) => {
        response.setHeader('warning', ['299 - "first"', '299 - "second"'])
        response.setHeader('vary', ['Accept', 'Accept-Encoding'])
        response.end('{}')
      })
      const gateway = await openBefore(cluster.url, dialTo(cluster.url), { certificates })
      const session = connect(gateway.url, { rejectUnauthorized: false })
      closing.push(() => session.destroy())
      const authorization = `Bearer ${await gateway.sign()}`
      const stream = session.request({ ':path': `/kubernetes/cluster/prod${path}`, authorization })
      const [headers] = await once(stream, 'response')
      stream.resume()
      assert.equal(headers[':status'], 200)
      assert.equal(headers['warning'], '299 - "first", 299 - "second"')
      assert.equal(headers['vary'], 'Accept, Accept-Encoding')
    })
})

test('two Authorization headers of an HTTP/2 client get 401, even if one is valid', {
  timeout: 120_000,
}, async () => {
  const backend = await openBackend()
  const gateway = await openTestGateway({ backend, certificates })
  closing.push(() => gateway.close())
  const good = await gateway.sign()
  const asked = { ':method': 'GET', ':scheme': 'https', ':path': '/kubernetes/cluster/prod/api', ':authority': 'a' }
  const tokenIn = (token: string) => headOf({ authorization: `Bearer ${token}` })
  for (const [tokens, code] of [
    [[good], 200],
    [[good, good], 401],
    [[good, 'other'], 401],
    [['other', good], 401],
  ] as const) {
    const socket = await openFrames(gateway.url)
    closing.push(() => socket.destroy())
    const before = gateway.seen.length
    socket.write(frame(1, 5, 1, Buffer.concat([headOf(asked), ...tokens.map(tokenIn)])))
    await until('it is answered', () => gateway.seen.length > before)
    assert.equal(gateway.seen.at(-1)?.code, code, `${tokens.length}`)
  }
  assert.equal(backend.got.length, 1)
})

describe('an aborted body of an HTTP/2 client', { timeout: 120_000 }, () => {
  for (const [how, code] of [
    ['cancelled', constants.NGHTTP2_CANCEL],
    ['reset without an error', constants.NGHTTP2_NO_ERROR],
    ['ended with its connection', undefined],
  ] as const)
    test(`never looks complete to the cluster: ${how}`, async () => {
      const outcomes: string[] = []
      let begun = 0
      const backend = await openBackend((request, response) => {
        request.once('data', () => begun++)
        request.on('data', () => {})
        request.on('end', () => response.end('{}'))
        request.on('error', () => {})
        request.on('close', () => outcomes.push(request.complete ? 'whole' : 'broken'))
      })
      const gateway = await openTestGateway({ backend, certificates })
      closing.push(() => gateway.close())
      const head = headOf({
        ':method': 'POST',
        ':scheme': 'https',
        ':path': '/kubernetes/cluster/prod/api/v1/pods',
        ':authority': 'gateway',
        authorization: `Bearer ${await gateway.sign()}`,
      })
      for (let count = 0; count < 20; count++) {
        const socket = await openFrames(gateway.url)
        closing.push(() => socket.destroy())
        socket.write(Buffer.concat([frame(1, 4, 1, head), frame(0, 0, 1, Buffer.from('apiVersion: v1\nkind: Pod\n'))]))
        await until('the cluster has a part of it', () => begun === count + 1)
        if (code === undefined) socket.destroy()
        else socket.write(frame(3, 0, 1, Buffer.from([0, 0, 0, code])))
        await until('the cluster hears of it', () => outcomes.length === count + 1)
        socket.destroy()
      }
      assert.deepEqual([...new Set(outcomes)], ['broken'])
    })
})
