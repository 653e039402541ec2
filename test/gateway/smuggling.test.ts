// Bytes on a bare socket that servers interpret differently. The gateway rejects all of them.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { openBare } from '../support/wire.ts'
import { openBackend, openTestGateway, type TestGateway } from './in-process.ts'

describe('ambiguous requests', () => {
  let gateway: TestGateway
  let token = ''
  before(async () => {
    gateway = await openTestGateway({ backend: await openBackend() })
    token = await gateway.sign()
  })
  after(() => gateway.close())

  const prod = '/kubernetes/cluster/prod'
  async function send(bytes: string): Promise<string> {
    const bare = await openBare(gateway.url)
    bare.socket.write(bytes)
    const timer = setTimeout(() => bare.socket.destroy(), 30_000)
    const answer = await bare.until('"code":')
    clearTimeout(timer)
    bare.socket.destroy()
    return answer
  }
  const head = (target: string, ...headers: string[]) =>
    [`GET ${target} HTTP/1.1`, 'Host: gateway', `Authorization: Bearer ${token}`, ...headers].join('\r\n')
  const post = (...lines: string[]) =>
    [`POST ${prod}/api/v1/namespaces HTTP/1.1`, 'Host: gateway', `Authorization: Bearer ${token}`, ...lines].join(
      '\r\n',
    )
  const inner = 'GET /api/v1/secrets HTTP/1.1\r\nHost: x\r\n\r\n'

  test('paths with encoded slashes, dots, empty segments or control characters are 400', async () => {
    for (const path of [
      '/api/v1/namespaces%2Fkube-system',
      '/api/v1/namespaces%2fkube-system/secrets',
      '/api/v1/namespaces/a/../b',
      '/api/v1/namespaces/a/..',
      '/../../cluster/dev/api',
      '/api/./v1',
      '/api/v1/%2e%2e/x',
      '/api/v1/%2E/x',
      '/api//v1/pods',
      '//api/v1/pods',
      '/api/v1/pods%00',
      '/api/v1/pods%0d%0aX: y',
      '/api/v1\\pods',
      '/api/v1/%5c..%5cpods',
      '/api/v1/pods%zz',
      '/api/v1/pods#x',
      '/api/v1/namespaces/a/pods/p/proxy/%ff',
    ])
      assert.match(await send(`${head(`${prod}${path}`)}\r\n\r\n`), /^HTTP\/1.1 400 /, path)
    for (const name of ['Prod', 'prod%20', '%70rod', 'prod;a', '-prod', 'a'.repeat(300)])
      assert.match(await send(`${head(`/kubernetes/cluster/${name}/api`)}\r\n\r\n`), /^HTTP\/1.1 400 /, name)
  })

  test('queries that a cluster interprets differently are 400: semicolons, wrong escapes, a repeated selector', async () => {
    for (const query of [
      'fieldSelector=metadata.name=allowed,;',
      'fieldSelector=metadata.name%3Dallowed,%zz',
      'watch=1;',
      'watch=1&watch=0',
      'fieldSelector=metadata.name=a&fieldSelector=metadata.name=b',
    ])
      assert.match(await send(`${head(`${prod}/api/v1/secrets?${query}`)}\r\n\r\n`), /^HTTP\/1.1 400 /, query)
  })

  test('a Connection header cannot hide the end of a body: 400, and the body is not parsed as a request', async () => {
    for (const method of ['GET', 'DELETE', 'OPTIONS', 'POST'])
      for (const name of ['content-length', 'Content_Length', 'transfer-encoding', 'host']) {
        const lines = [
          `${method} ${prod}/api/v1/namespaces/a/pods/p HTTP/1.1`,
          'Host: gateway',
          `Authorization: Bearer ${token}`,
          `Content-Length: ${inner.length}`,
          `Connection: keep-alive, ${name}`,
          '',
          inner,
        ]
        assert.match(await send(lines.join('\r\n')), /^HTTP\/1.1 400 /, `${method} ${name}`)
      }
  })

  test('absolute-form, authority-form, two or no Host headers are 400', async () => {
    for (const target of [`http://evil.test${prod}/api`, 'https://gateway/kubernetes/cluster/prod/api'])
      assert.match(await send(`${head(target)}\r\n\r\n`), /^HTTP\/1.1 400 /, target)
    assert.match(await send(`${head(`${prod}/api`, 'Host: evil.test')}\r\n\r\n`), /^HTTP\/1.1 400 /)
    assert.match(await send(`GET ${prod}/api HTTP/1.1\r\nAuthorization: Bearer ${token}\r\n\r\n`), /^HTTP\/1.1 400 /)
  })

  test('CL.TE, TE.CL, two lengths, odd codings and bare line feeds are 400, and their body is not parsed as a request', async () => {
    const bodies = [
      post('Content-Length: 6', 'Transfer-Encoding: chunked', '', `0\r\n\r\n${inner}`),
      post('Transfer-Encoding: chunked', 'Content-Length: 4', '', `5c\r\n${inner}\r\n0\r\n\r\n`),
      post('Content-Length: 5', 'Content-Length: 6', '', inner),
      post('Content-Length: 5, 5', '', inner),
      post('Content-Length: +5', '', inner),
      post('Content-Length: -1', '', inner),
      post('Transfer-Encoding: identity, chunked, identity', '', inner),
      post('Transfer-Encoding: xchunked', '', inner),
      post('Transfer-Encoding : chunked', '', `0\r\n\r\n${inner}`),
      post('Transfer-Encoding: chunked', '', `zz\r\n${inner}`),
      post('Content-Length: 3', '\tfolded: yes', '', inner),
      post('X: y\nTransfer-Encoding: chunked', '', inner),
    ]
    const before = gateway.backend.got.length
    for (const bytes of bodies) {
      const answer = await send(bytes)
      assert.match(answer, /^HTTP\/1.1 400 /, bytes)
      assert.equal(answer.match(/HTTP\/1\.1/g)?.length, 1, `one answer: ${answer}`)
    }
    const reached = gateway.backend.got.slice(before).map(({ url }) => url)
    assert.ok(!reached.includes('/api/v1/secrets'), reached.join())
  })

  test('TRACE, which would return the credentials of the gateway, and unknown methods are not forwarded', async () => {
    const before = gateway.backend.got.length
    for (const method of ['TRACE', 'PROPFIND', 'QUERY']) {
      const answer = await send(`${head(`${prod}/api`).replace('GET', method)}\r\n\r\n`)
      assert.match(answer, /^HTTP\/1.1 405 /, method)
    }
    assert.equal(gateway.backend.got.length, before)
  })

  test('headers named by a Connection header, and hop-by-hop headers, do not reach the cluster', async () => {
    const answer = await openBare(gateway.url)
    const more = [
      'Connection: close, X-Secret',
      'X-Secret: 1',
      'Keep-Alive: timeout=5',
      'TE: trailers',
      'Proxy-Authorization: Basic x',
      'Cookie: a=b',
      'X-Forwarded-For: 10.0.0.1',
      'X-Remote-User: root',
      'X_Remote_Group: system:masters',
      'Forwarded: for=10.0.0.1',
      'Audit-ID: mine',
      'X-Kept: yes',
    ]
    answer.socket.write(`${head(`${prod}/api?x=%2F..`, ...more)}\r\n\r\n`)
    await answer.ended()
    const { headers, url, rawHeaders } = gateway.backend.got.at(-1) as (typeof gateway.backend.got)[0]
    assert.equal(url, '/api?x=%2F..')
    assert.equal(headers['x-kept'], 'yes')
    for (const name of ['x-secret', 'keep-alive', 'te', 'proxy-authorization', 'cookie', 'x-remote-user', 'forwarded'])
      assert.equal(headers[name], undefined, name)
    assert.equal(headers['x_remote_group'], undefined)
    assert.equal(headers['x-forwarded-for'], '127.0.0.1')
    assert.equal(headers.authorization, 'Bearer of-the-gateway')
    assert.equal(headers['audit-id'], 'mine', 'one id through all audit logs')
    const groups = rawHeaders.filter((_, at) => rawHeaders[at - 1] === 'Impersonate-Group')
    assert.deepEqual(groups, ['system:authenticated', 'platform:user:ada', 'ops'], 'no group of the cluster’s own')
  })

  test('identity headers of proxies do not reach the cluster', async () => {
    const names = [
      'X-SSL-Client-Cert',
      'X-SSL-Client-S-DN',
      'SSL_CLIENT_VERIFY',
      'X-Auth-Request-User',
      'X-Auth-Request-Groups',
      'X-Forwarded-User',
      'X-Forwarded-Groups',
      'X-Remote-Extra-Scopes',
      'X-Client-Cert',
      'Client-Cert',
      'X-WebAuth-User',
      'X-Goog-Authenticated-User-Email',
      'X-Amzn-Oidc-Identity',
      'X-MS-Client-Principal',
      'X-Pomerium-Jwt-Assertion',
      'Cf-Access-Authenticated-User-Email',
      'Remote-User',
      'Remote-Groups',
      'X-Consumer-Username',
      'Tailscale-User-Login',
      'X-Original-URL',
    ]
    const answer = await openBare(gateway.url)
    const more = [...names.map(name => `${name}: admin`), 'X-Kept: yes', 'Connection: close']
    answer.socket.write(`${head(`${prod}/api`, ...more)}\r\n\r\n`)
    await answer.ended()
    const { headers } = gateway.backend.got.at(-1) as (typeof gateway.backend.got)[0]
    assert.equal(headers['x-kept'], 'yes')
    assert.deepEqual(
      names.filter(name => headers[name.toLowerCase()] !== undefined),
      [],
    )
  })

  test('paths with a semicolon are 400: some servers read ..; as ..', async () => {
    const before = gateway.backend.got.length
    for (const path of [
      '/api/v1/..;/secrets',
      '/api;x=1/v1',
      '/..;a/api',
      '/api/v1/namespaces/a;b',
      '/api/%3b/v1',
      '/;',
    ]) {
      const answer = await openBare(gateway.url)
      answer.socket.write(`${head(`${prod}${path}`, 'Connection: close')}\r\n\r\n`)
      assert.match(await answer.ended(), /^HTTP\/1\.1 400 /, path)
    }
    assert.equal(gateway.backend.got.length, before)
  })

  test('no request is forwarded as a user of the cluster itself', async () => {
    const now = Math.floor(Date.now() / 1000)
    for (const sub of ['system:admin', 'system:serviceaccount:kube-system:x']) {
      const claims = {
        iss: 'https://issuer.test',
        aud: ['platform:direct-cluster-endpoint'],
        sub,
        groups: [],
        iat: now,
        nbf: now,
        exp: now + 60,
        jti: 'j',
        'platform.sh': { kind: 'User', name: sub, key: 'k' },
      }
      const theirs = await gateway.sign(claims)
      const answer = await fetch(`${gateway.url}${prod}/api`, { headers: { Authorization: `Bearer ${theirs}` } })
      assert.equal(answer.status, 403)
      assert.match(await answer.text(), /is reserved for the cluster/)
    }
  })
})
