// Arbitrary documents, token responses and callbacks give a ProviderError or a person, never another error.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import { ProviderError } from '../../src/auth/oidc/provider-error.ts'
import { openProviderStage, type ProviderStage, redirectUri } from './provider-stage.ts'
import { loginOf, startProvider, type TestProvider } from './test-provider.ts'

let at: TestProvider
let stage: ProviderStage
before(async () => {
  at = await startProvider({ redirectUris: [redirectUri] })
  at.accounts['ada'] = { groups: ['dev'] }
  stage = await openProviderStage(at, [loginOf(at)])
})
after(async () => {
  stage?.stop()
  await at.stop()
})

async function isExpected(work: Promise<unknown>): Promise<void> {
  const error: unknown = await work.then(
    () => undefined,
    reason => reason,
  )
  assert.ok(error === undefined || error instanceof ProviderError, String(error))
}

const json = fc.jsonValue({ maxDepth: 2 })
const numRuns = 60

test('token responses', async () => {
  const fields = ['id_token', 'access_token', 'refresh_token', 'token_type', 'expires_in', 'scope', '__proto__']
  const response = fc.dictionary(fc.constantFrom(...fields), json)
  const body = fc.oneof(
    json.map(value => JSON.stringify(value)),
    fc.string(),
  )
  const status = fc.constantFrom(200, 201, 204, 302, 304, 400, 401, 403, 404, 429, 500, 599)
  const faults = fc.oneof(
    response.map(one => ({ response: one })),
    body.map(one => ({ body: one })),
    status.map(one => ({ status: one, only: '/token' })),
  )
  await fc.assert(
    fc.asyncProperty(faults, async fault => {
      at.faults = {}
      const { callback, request } = await stage.begin()
      at.faults = fault
      await isExpected(stage.provider.exchange(callback, request))
    }),
    { numRuns },
  )
})

test('claims', async () => {
  const names = ['sub', 'aud', 'azp', 'iat', 'nbf', 'exp', 'groups', 'sid', 'name', 'email', '_claim_names', 'at_hash']
  await fc.assert(
    fc.asyncProperty(fc.dictionary(fc.constantFrom(...names), json), async claims => {
      at.faults = { tokens: { claims } }
      await isExpected(stage.signIn())
      at.faults = {}
      await isExpected(stage.provider.verifyLogoutToken(await at.logoutToken(claims)))
    }),
    { numRuns },
  )
})

test('callbacks', async () => {
  const { request } = await stage.begin()
  const fields = ['code', 'state', 'iss', 'error', 'error_description', 'id_token', 'token', 'response']
  const values = fc.oneof(fc.constantFrom(request.state, at.url, ''), fc.string())
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(fc.constantFrom(...fields), values)), async pairs => {
      const callback = new URL(redirectUri)
      for (const [field, value] of pairs) callback.searchParams.append(field, value)
      await isExpected(stage.provider.exchange(callback, request))
    }),
    { numRuns },
  )
})

test('discovery documents', async () => {
  const fields = [
    ...['issuer', 'authorization_endpoint', 'token_endpoint', 'userinfo_endpoint', 'end_session_endpoint'],
    ...['token_endpoint_auth_methods_supported', 'scopes_supported', 'jwks_uri'],
    'authorization_response_iss_parameter_supported',
  ]
  await fc.assert(
    fc.asyncProperty(fc.dictionary(fc.constantFrom(...fields), json), async discovery => {
      at.faults = { discovery }
      const one = await openProviderStage(at, [loginOf(at)])
      const request = { redirectUri, state: 's', nonce: 'n', codeVerifier: 'v'.repeat(43) }
      await isExpected(one.provider.authorizationUrl(request))
      await isExpected(one.provider.logoutUrl({ returnTo: redirectUri }))
      one.stop()
    }),
    { numRuns },
  )
})
