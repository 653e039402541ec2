// Responses of the management API to a standalone gateway: their size is limited, and unknown scopes are rejected.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { issueCertificate, makeAuthority } from '../../serving/certificate.ts'
import { openService } from './control-plane.ts'

test('an endless key set or metadata response is not read to its end', async t => {
  const authority = makeAuthority(Date.now())
  const { certificate: cert, key } = issueCertificate(authority, ['127.0.0.1'], Date.now())
  const server = createServer({ cert, key }, (_, response) => {
    const send = () => {
      while (response.write(' '.repeat(16 * 1024)));
    }
    response.on('drain', send)
    send()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const directory = mkdtempSync(join(tmpdir(), 'platform-service-'))
  writeFileSync(join(directory, 'ca.crt'), authority.certificate)
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  const config = { issuer: { url, ca: 'ca.crt' }, service: { keyFile: 'agent.key' } }
  const service = openService(config, join(directory, 'gateway.yaml'), { env: {}, now: Date.now })
  t.after(() => {
    service.close()
    server.close()
    server.closeAllConnections()
    rmSync(directory, { recursive: true })
  })
  for (const fetch of [service.fetchKeys, service.fetchMetadata])
    await assert.rejects(fetch(), {
      code: 422,
      message: new RegExp(`^the response of ${url} is larger than 262144 bytes`),
    })
})

test('an access key with a scope that this gateway does not know is rejected', async t => {
  const authority = makeAuthority(Date.now())
  const { certificate: cert, key } = issueCertificate(authority, ['127.0.0.1'], Date.now())
  const scopes = ['{"networks":["10.0.0.0/8"]}', '{"projects":[{"project":"shop"}]}']
  const server = createServer({ cert, key }, (_, response) => {
    const extra = { 'authentication.platform.sh/scope': [scopes.shift()] }
    const status = { authenticated: true, user: { username: 'ada', groups: [], extra } }
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', metadata: {}, status }))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const directory = mkdtempSync(join(tmpdir(), 'platform-service-'))
  writeFileSync(join(directory, 'ca.crt'), authority.certificate)
  writeFileSync(join(directory, 'agent.key'), 'secret', { mode: 0o600 })
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  const config = { issuer: { url, ca: 'ca.crt' }, service: { keyFile: 'agent.key' } }
  const service = openService(config, join(directory, 'gateway.yaml'), { env: {}, now: Date.now })
  t.after(() => {
    service.close()
    server.close()
    server.closeAllConnections()
    rmSync(directory, { recursive: true })
  })
  await assert.rejects(service.review('newer'), { code: 401, message: /scope that this gateway does not know/ })
  assert.deepEqual((await service.review('known'))?.caller.scope, { projects: [{ project: 'shop' }] })
})
