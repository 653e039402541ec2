// A server whose provider is down starts, logs it, and serves access keys. It stops cleanly.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { startServer } from '../support/server.ts'
import { eventually } from '../support/wire.ts'
import { self } from './sign-in-stage.ts'
import { loginOf, startProvider } from './test-provider.ts'

test('a server starts while its provider is down', async () => {
  const provider = await startProvider()
  await provider.stop()
  const directory = mkdtempSync(join(tmpdir(), 'platform-login-'))
  const file = join(directory, 'auth.yaml')
  const config = { apiVersion: 'config.platform.sh/v1', kind: 'AuthConfig', login: [loginOf(provider)] }
  writeFileSync(file, JSON.stringify(config))
  const server = await startServer({
    storage: 'memory',
    args: ['--auth-config', file],
    begin: { env: { CORP_SECRET: provider.secret } },
  })
  try {
    await eventually('a log line', async () => server.output().includes('contacting login provider corp failed'))
    const { status } = await server.request('POST', self, { key: server.adminKey, body: {} })
    assert.equal(status, 201)
    assert.ok(!server.output().includes(provider.secret))
  } finally {
    await server.stop()
    rmSync(directory, { recursive: true })
  }
})
