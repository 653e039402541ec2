// Which proxies are taken, and which are a mistake: only of those that a server would be reached by.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { proxyEnv } from './proxy-env.ts'

const server = 'https://platform.example:8443'

test('a proxy at a usual port is one, named or not', () => {
  for (const url of [
    'http://squid:80',
    'https://squid:443',
    'http://squid:80/',
    'http://proxy.example',
    'http://[::1]:3128',
  ])
    assert.equal(proxyEnv({ HTTPS_PROXY: url }, server)['HTTPS_PROXY'], url)
  assert.equal(proxyEnv({ HTTPS_PROXY: 'squid:3128' }, server)['HTTPS_PROXY'], 'http://squid:3128')
  for (const url of ['squid', 'http://squid', 'socks5://squid:1080'])
    assert.throws(() => proxyEnv({ HTTPS_PROXY: url }, server), /HTTPS_PROXY must be a URL/)
})

test('one that this server is not reached by is not judged', () => {
  const HTTPS_PROXY = 'socks5://squid:1080'
  assert.throws(() => proxyEnv({ HTTPS_PROXY }, server))
  assert.ok(proxyEnv({ HTTPS_PROXY }, 'http://127.0.0.1:8080'))
  for (const NO_PROXY of ['*', 'platform.example', 'other, .example', 'platform.example:8443'])
    assert.ok(proxyEnv({ HTTPS_PROXY, NO_PROXY }, server), NO_PROXY)
  assert.throws(() => proxyEnv({ HTTPS_PROXY, NO_PROXY: 'form.example' }, server))
})
