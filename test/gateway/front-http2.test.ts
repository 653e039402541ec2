// What a client by HTTP/2, as kubectl is, gets of an answer: the same headers as one by HTTP/1.1, those that are there twice included.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:http2'
import { describe, test } from 'node:test'
import { closing, dialTo, openBefore, openCluster, tls } from './http2-cluster.ts'

const certificates = { current: { certificate: tls.cert, key: tls.key }, follow: () => {}, stop: () => {} }

describe('an answer to a client by HTTP/2', { timeout: 60_000 }, () => {
  for (const path of ['/api/v1/pods', '/api/v1/pods?watch=true'])
    test(`has every header that the cluster says more than once: ${path}`, async () => {
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
