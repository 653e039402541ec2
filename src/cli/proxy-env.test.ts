// Which proxy variables are accepted or rejected, for proxies that apply to the server.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { proxyEnv } from './proxy-env.ts'

const server = 'https://platform.example:8443'

test('proxy URLs with and without a default port are accepted', () => {
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

test('a proxy variable that does not apply to this server is not validated', () => {
  const HTTPS_PROXY = 'socks5://squid:1080'
  assert.throws(() => proxyEnv({ HTTPS_PROXY }, server))
  assert.ok(proxyEnv({ HTTPS_PROXY }, 'http://127.0.0.1:8080'))
  for (const NO_PROXY of ['*', 'platform.example', 'other, .example', 'platform.example:8443'])
    assert.ok(proxyEnv({ HTTPS_PROXY, NO_PROXY }, server), NO_PROXY)
  assert.throws(() => proxyEnv({ HTTPS_PROXY, NO_PROXY: 'form.example' }, server))
})
