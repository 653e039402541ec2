// Trust after a change of CA, keys or management API: credentials are verified again, also when the change is rolled back.

import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { issueCertificate, makeAuthority } from '../../serving/certificate.ts'
import { openTrust } from './upstream-trust.ts'

/** A management API without revocations, and two key sets. */
async function openService(t: TestContext) {
  const authority = makeAuthority(Date.now())
  const { certificate: cert, key } = issueCertificate(authority, ['127.0.0.1'], Date.now())
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const jwk = { ...publicKey.export({ format: 'jwk' }), use: 'sig', alg: 'ES256' }
  const server = createServer({ cert, key }, ({ url = '', headers: { host } }, response) => {
    response.setHeader('content-type', 'application/json')
    if (url.includes('keys-of-')) response.end(JSON.stringify({ keys: [{ ...jwk, kid: url.split('keys-of-')[1] }] }))
    else if (url.includes('watch=')) response.flushHeaders()
    else if (url.includes('openid-configuration')) response.end(JSON.stringify({ issuer: `https://${host}` }))
    else response.end(JSON.stringify({ items: [], metadata: { resourceVersion: '1' } }))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, authority }
}

test('another CA or key set of the same issuer is a new generation, and so is the rollback', async t => {
  const { url, authority } = await openService(t)
  const directory = mkdtempSync(join(tmpdir(), 'platform-trust-'))
  const put = (name: string, text: string) => writeFileSync(join(directory, name), text)
  t.after(() => rmSync(directory, { recursive: true }))
  put('ca.crt', authority.certificate)
  put('agent.key', 'key')
  const configOf = (keys: string) => ({
    issuer: { url, ca: 'ca.crt', keySet: `${url}/keys-of-${keys}` },
    service: { keyFile: 'agent.key' },
  })
  let looks = 0
  const trust = openTrust(configOf('one'), {
    file: join(directory, 'gateway.yaml'),
    io: { env: {}, now: Date.now },
    failed: () => Object.assign(() => {}, { worked: () => {} }),
    changed: () => void looks++,
  })
  t.after(() => {
    trust.stop()
    trust.close()
  })
  const verifiedBy = () => [trust.generation(), trust.keySet.keyChanges] as const
  const isNewer = (before: readonly number[]) => verifiedBy().every((one, at) => one > (before[at] ?? 0))
  const believes = async (keys: string) => (await trust.keySet.keyOf(keys)) !== undefined
  await trust.ready
  assert.equal(await trust.prepare(configOf('one')), undefined)

  let before = verifiedBy()
  const dropped = await trust.prepare(configOf('two'))
  assert.deepEqual(verifiedBy(), before)
  dropped?.use()
  assert.ok((await believes('two')) && isNewer(before))
  before = verifiedBy()
  dropped?.drop()
  assert.ok((await believes('one')) && isNewer(before))

  // The same CA and another one.
  put('ca.crt', `${authority.certificate}${makeAuthority(Date.now()).certificate}`)
  before = verifiedBy()
  looks = 0
  const change = await trust.prepare(configOf('one'))
  change?.use()
  change?.done()
  assert.ok((await believes('one')) && isNewer(before))
  assert.equal(looks, 1, 'streams are looked at')

  put('ca.crt', 'hello')
  await assert.rejects(trust.prepare(configOf('one')), /issuer\.ca: .*does not contain a PEM certificate/)
})
