// How the server answers requests for the console: headers of the page and of assets, methods, paths and Host.

import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { type Server, startServer } from '../support/server.ts'

type Answer = { readonly status: number; readonly headers: IncomingHttpHeaders; readonly text: string }

const assets = readdirSync(join(import.meta.dirname, '../../dist/console/assets')).filter(name => !name.endsWith('.br'))

suite('console: headers', () => {
  let server: Server
  before(async () => {
    server = await startServer()
  })
  after(() => server.stop())

  /** Sends the path as it is; fetch would normalise it. */
  const send = (path: string, { method = 'GET', headers = {} }: { method?: string; headers?: object } = {}) =>
    new Promise<Answer>((resolve, reject) => {
      const { hostname, port } = new URL(server.http)
      const call = request({ hostname, port, path, method, headers: { ...headers } }, (answer: IncomingMessage) => {
        let text = ''
        answer.setEncoding('utf8').on('data', chunk => {
          text += chunk
        })
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text }))
      })
      call.on('error', reject)
      call.end()
    })
  const nonceIn = ({ text }: Answer) => /nonce="([^"]*)"/.exec(text)?.[1] ?? ''

  test('the page has this policy, cannot be framed, and is not stored', async () => {
    const page = await send('/console/')
    const nonce = nonceIn(page)
    assert.match(nonce, /^[A-Za-z0-9+/]{22}==$/)
    assert.equal(page.status, 200)
    assert.equal(page.headers['content-type'], 'text/html; charset=utf-8')
    assert.equal(
      page.headers['content-security-policy'],
      [
        "default-src 'none'",
        "script-src 'self'",
        `style-src 'self' 'nonce-${nonce}'`,
        "style-src-attr 'none'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'self'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
      ].join('; '),
    )
    assert.equal(page.headers['x-frame-options'], 'DENY')
    assert.equal(page.headers['cross-origin-opener-policy'], 'same-origin')
    assert.equal(page.headers['x-content-type-options'], 'nosniff')
    assert.equal(page.headers['referrer-policy'], 'no-referrer')
    assert.equal(page.headers['cache-control'], 'no-store')
    assert.equal(page.headers['set-cookie'], undefined)
    assert.equal(page.headers['access-control-allow-origin'], undefined)
  })

  test('every page has the same policy with another nonce, whatever its path', async () => {
    const paths = ['/console/', '/console/teams', '/console/teams/web/yaml?q=1', '/console/nowhere', '/console//x']
    const pages = await Promise.all(paths.map(path => send(path)))
    const nonces = pages.map(nonceIn)
    assert.equal(new Set(nonces).size, paths.length)
    const policies = pages.map(({ headers }, index) =>
      String(headers['content-security-policy']).replace(nonces[index] ?? '', 'NONCE'),
    )
    assert.equal(new Set(policies).size, 1)
  })

  test('no part of the path or query is in the page', async () => {
    for (const path of [
      '/console/%3Cscript%3Ecanary',
      '/console/"canary/x',
      '/console/a?canary=<b>',
      '/console/a/canary/b',
    ]) {
      const { text, status } = await send(path)
      assert.ok(!text.includes('canary'), path)
      assert.ok(status === 200 || status === 400, `${path}: ${status}`)
    }
  })

  test('the base of the page is relative and points to /console/', async () => {
    const baseOf = async (path: string) => {
      const base = /<base href="([^"]*)"/.exec((await send(path)).text)?.[1] ?? ''
      assert.match(base, /^(\.\/|(\.\.\/)+)$/)
      return new URL(base, `http://host${path}`).pathname
    }
    for (const path of ['/console/', '/console/teams', '/console/teams/web/yaml', '/console//evil.example/x'])
      assert.equal(await baseOf(path), '/console/')
  })

  test('an asset is kept forever, is not sniffed or shared, and sets no cookie', async () => {
    assert.ok(assets.length > 0, 'the console is not built')
    for (const name of assets) {
      const { status, headers } = await send(`/console/assets/${name}`)
      assert.equal(status, 200, name)
      assert.equal(headers['cache-control'], 'public, max-age=31536000, immutable')
      assert.equal(headers['x-content-type-options'], 'nosniff')
      assert.equal(headers['cross-origin-resource-policy'], 'same-origin')
      assert.equal(headers['set-cookie'], undefined)
      assert.match(
        String(headers['content-type']),
        /^(text\/javascript; charset=utf-8|text\/css; charset=utf-8|image\/svg\+xml)$/,
      )
    }
  })

  test('a picture that somebody opens as a page runs no script', async () => {
    const name = assets.find(one => one.endsWith('.svg'))
    const { headers } = await send(`/console/assets/${name}`)
    assert.equal(headers['content-security-policy'], "default-src 'none'; frame-ancestors 'none'; sandbox")
  })

  test('HEAD has the headers of GET and no body; other methods are refused', async () => {
    for (const path of ['/console/', `/console/assets/${assets[0]}`]) {
      const [get, head] = [await send(path), await send(path, { method: 'HEAD' })]
      assert.equal(head.status, 200)
      assert.equal(head.text, '')
      assert.equal(head.headers['content-type'], get.headers['content-type'])
      assert.equal(head.headers['cache-control'], get.headers['cache-control'])
      for (const method of ['POST', 'PUT', 'DELETE', 'PATCH'])
        assert.equal((await send(path, { method })).status, 405, `${method} ${path}`)
    }
  })

  test('an unknown asset is 404; no path leaves the directory of the assets', async () => {
    const names = [
      'unknown.js',
      '',
      '../index.html',
      '../../../package.json',
      '..%2f..%2f..%2fpackage.json',
      '%2e%2e/%2e%2e/package.json',
      '..\\..\\package.json',
      '/etc/passwd',
      '%00',
      '__proto__',
      'constructor',
    ]
    for (const name of names) {
      const { status, text } = await send(`/console/assets/${name}`)
      assert.ok(status === 404 || status === 400, `${name}: ${status}`)
      assert.ok(!text.includes('platform-plane') && !text.includes('root:'), name)
    }
  })

  test('the root leads browsers to the console, and other clients to the API', async () => {
    const browser = await send('/', { headers: { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' } })
    assert.equal(browser.status, 303)
    assert.equal(browser.headers.location, 'console/')
    for (const accept of ['application/json', '*/*']) {
      const { status, headers } = await send('/', { headers: { accept } })
      assert.notEqual(status, 303)
      assert.equal(headers.location, undefined)
    }
  })

  test('the loopback listener answers only loopback names', async () => {
    for (const host of ['evil.example', 'localhost.evil.example', '127.0.0.1.evil.example'])
      for (const path of ['/', '/console', '/console/', `/console/assets/${assets[0]}`]) {
        const { status, text } = await send(path, { headers: { host, accept: 'text/html' } })
        assert.equal(status, 421, `${host}${path}`)
        assert.ok(!text.includes('<script'))
      }
    assert.equal((await send('/console/', { headers: { host: 'localhost' } })).status, 200)
  })
})
