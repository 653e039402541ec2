// Faulty, hostile and unreachable providers, and tampered callbacks: each has a code and a message that helps, without a token.

import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import type { SignedIn } from '../../src/auth/oidc/provider.ts'
import { eventually } from '../support/wire.ts'
import { failureOf, openProviderStage, type ProviderStage, redirectUri } from './provider-stage.ts'
import { startIssuer } from './test-issuer.ts'
import { type Faults, loginOf, startProvider, type TestProvider } from './test-provider.ts'

let at: TestProvider
let stage: ProviderStage
before(async () => {
  at = await startProvider({ redirectUris: [redirectUri] })
  stage = await openProviderStage(at, [loginOf(at)])
})
after(async () => {
  stage?.stop()
  await at.stop()
})
beforeEach(() => {
  stage.skew = 0
  at.faults = {}
  at.accounts['ada'] = { groups: ['dev'] }
})

/** Signs in with a stage of its own. */
async function withStage<T>(login: readonly object[], work: (one: ProviderStage) => Promise<T>): Promise<T> {
  const one = await openProviderStage(at, login)
  try {
    return await work(one)
  } finally {
    one.stop()
  }
}

const seconds = () => Math.floor(Date.now() / 1000)

describe('an ID token is invalid', () => {
  const cases: { readonly [what: string]: () => { tokens: NonNullable<Faults['tokens']>; why: RegExp } } = {
    'for another audience': () => ({ tokens: { claims: { aud: 'other' } }, why: /"aud"/ }),
    'of another issuer': () => ({ tokens: { claims: { iss: 'https://evil.example' } }, why: /"iss"/ }),
    'with another nonce': () => ({ tokens: { claims: { nonce: 'other' } }, why: /"nonce"/ }),
    'without a nonce': () => ({ tokens: { claims: { nonce: undefined } }, why: /"nonce"/ }),
    'of another client (azp)': () => ({ tokens: { claims: { azp: 'other' } }, why: /\(azp\)/ }),
    'for several audiences without azp': () => ({
      tokens: { claims: { aud: ['platform', 'other'] } },
      why: /untrusted audiences/,
    }),
    'of another access token (at_hash)': () => ({ tokens: { claims: { at_hash: 'other' } }, why: /\(at_hash\)/ }),
    expired: () => ({ tokens: { claims: { exp: seconds() - 10 } }, why: /"exp"/ }),
    'without expiry': () => ({ tokens: { claims: { exp: undefined } }, why: /"exp"/ }),
    'from the future (iat)': () => ({ tokens: { claims: { iat: seconds() + 60 } }, why: /not valid yet/ }),
    'from the future (nbf)': () => ({ tokens: { claims: { nbf: seconds() + 60 } }, why: /"nbf"/ }),
    'without a subject': () => ({ tokens: { claims: { sub: undefined } }, why: /"sub"/ }),
    'with an invisible subject': () => ({ tokens: { claims: { sub: 'a\u200bda' } }, why: /claim sub/ }),
    'unsigned (none)': () => ({ tokens: { algorithm: 'none' }, why: /"alg"/ }),
    'signed with the client secret (HMAC)': () => ({ tokens: { algorithm: 'HS256' }, why: /"alg"/ }),
    'signed with a foreign key': () => ({ tokens: { foreignKey: true }, why: /signature of the token is invalid/ }),
    'signed with an unpublished key': () => ({
      tokens: { foreignKey: true, header: { kid: 'unpublished' } },
      why: /does not publish/,
    }),
  }
  for (const [what, make] of Object.entries(cases))
    test(what, async () => {
      const { tokens, why } = make()
      at.faults = { tokens }
      const failure = await failureOf(stage.signIn())
      assert.match(failure, /^InvalidResponse: provider corp: /)
      assert.match(failure, why)
    })

  test('longer than 512 KiB, or a response over 1 MiB', async () => {
    at.faults = { tokens: { claims: { more: 'x'.repeat(500_000) } } }
    assert.match(await failureOf(stage.signIn()), /^InvalidResponse: .*longer than 524288 bytes/)
    at.faults = { tokens: { claims: { more: 'x'.repeat(1024 * 1024) } } }
    assert.match(await failureOf(stage.signIn()), /^InvalidResponse: .*larger than 1048576 bytes/)
  })
})

describe('claims are rejected', () => {
  const outcome = async (claims: object) => {
    at.accounts['ada'] = { claims: claims as { [name: string]: unknown } }
    return failureOf(stage.signIn())
  }

  test('if the provider left out the groups (Entra ID)', async () => {
    assert.match(await outcome({ _claim_names: { groups: 'src1' } }), /^Rejected: .*too many groups.*app roles/)
    assert.match(await outcome({ hasgroups: true }), /^Rejected: .*too many groups/)
    const roles = loginOf(at, { claimMappings: { username: { claim: 'sub' }, groups: { claim: 'roles' } } })
    at.accounts['ada'] = { claims: { hasgroups: true, roles: ['dev'] } }
    assert.deepEqual((await withStage([roles], one => one.signIn())).groups, ['corp:dev'])
    const read = { username: { claim: 'sub' }, groups: { expression: 'claims.?groups.orValue([])' } }
    at.accounts['ada'] = { claims: { _claim_names: { groups: 'src1' } } }
    const failure = await withStage([loginOf(at, { claimMappings: read })], one => failureOf(one.signIn()))
    assert.match(failure, /^Rejected: .*too many groups/)
  })

  test('if groups are not a list of strings', async () => {
    for (const groups of ['dev', { dev: true }, ['dev', 1], 7, [['dev']]])
      assert.match(await outcome({ groups }), /^Rejected: .*must be a list of strings/)
  })

  test('if there are too many groups', async () => {
    const many = (count: number) => ({ groups: Array.from({ length: count }, (_, index) => `group-${index}`) })
    assert.match(await outcome(many(201)), /^Rejected: .*more than 200 groups; .*groupPatterns/)
    assert.match(await outcome(many(10_000)), /^Rejected: .*more than 200 groups/)
    assert.match(await outcome(many(10_001)), /^Rejected: .*more than 10000 groups/)
    at.accounts['ada'] = many(200)
    assert.equal((await stage.signIn()).groups.length, 200)
  })

  test('if the username is missing', async () => {
    const mapped = loginOf(at, { claimMappings: { username: { claim: 'upn' } } })
    assert.match(await withStage([mapped], one => failureOf(one.signIn())), /^Rejected: .*no username/)
  })
})

describe('a callback is rejected', () => {
  test('with another state, without one, or with two', async () => {
    for (const change of [
      (search: URLSearchParams) => search.set('state', 'other'),
      (search: URLSearchParams) => search.delete('state'),
      (search: URLSearchParams) => search.append('state', 'other'),
    ]) {
      const { callback, request } = await stage.begin()
      change(callback.searchParams)
      const code = callback.searchParams.get('code') ?? ''
      const before = at.requests['/token']
      assert.match(await failureOf(stage.provider.exchange(callback, request), [code]), /^InvalidResponse: .*state/)
      assert.equal(at.requests['/token'], before, 'the code is not sent')
    }
  })

  test('with another issuer, or without one (mix-up)', async () => {
    for (const iss of ['https://evil.example', undefined]) {
      const { callback, request } = await stage.begin()
      if (iss === undefined) callback.searchParams.delete('iss')
      else callback.searchParams.set('iss', iss)
      const before = at.requests['/token']
      assert.match(await failureOf(stage.provider.exchange(callback, request)), /^InvalidResponse: .*"iss"/)
      assert.equal(at.requests['/token'], before, 'the code is not sent')
    }
  })

  test('if its code is used twice, unknown, or of another browser (PKCE)', async () => {
    const { callback, request } = await stage.begin()
    const code = callback.searchParams.get('code') ?? ''
    await stage.provider.exchange(callback, request)
    assert.match(await failureOf(stage.provider.exchange(callback, request), [code]), /^InvalidGrant/)
    const other = await stage.begin()
    const stolen = stage.provider.exchange(other.callback, { ...other.request, codeVerifier: 'x'.repeat(43) })
    assert.match(await failureOf(stolen), /^InvalidGrant/)
    const unknown = await stage.begin()
    unknown.callback.searchParams.set('code', 'unknown')
    assert.match(await failureOf(stage.provider.exchange(unknown.callback, unknown.request)), /^InvalidGrant/)
  })

  test('if the provider does not let the person in', async () => {
    at.accounts['eve'] = { disabled: true }
    assert.match(await failureOf(stage.signIn('eve')), /^Rejected: .*access_denied \(unknown or disabled account\)/)
  })
})

describe('the provider', () => {
  test('may be down at the start, and sign-in works when it is up', async () => {
    await at.stop()
    const one = await openProviderStage(at, [loginOf(at)])
    try {
      assert.match(await failureOf(one.begin()), /^Unavailable: .*connection refused/)
      await eventually('a log line', async () => one.log().includes('contacting login provider corp failed'))
      await at.start()
      one.skew += 2000
      assert.equal((await one.signIn()).username, 'corp:ada')
    } finally {
      one.stop()
    }
  })

  test('that is down gets one request a second, however many people try', async () => {
    at.faults = { status: 503 }
    const discovery = '/.well-known/openid-configuration'
    await withStage([loginOf(at)], async one => {
      const before = at.requests[discovery] ?? 0
      const failures = await Promise.all(Array.from({ length: 50 }, () => failureOf(one.begin())))
      for (const failure of failures) assert.match(failure, /^Unavailable: .*returned 503/)
      assert.ok((at.requests[discovery] ?? 0) - before <= 2)
    })
  })

  test('keeps working with its metadata while discovery fails', async () => {
    await withStage([loginOf(at)], async one => {
      await one.signIn()
      at.faults = { status: 500, only: '/.well-known/' }
      one.skew = 3_600_000
      assert.ok(await one.provider.authorizationUrl((await stage.begin()).request))
    })
  })

  test('that describes another issuer, or invalid endpoints, is an error of the configuration', async () => {
    for (const [discovery, why] of [
      [{ issuer: 'https://other.example' }, /describes another issuer; issuer\.url must be equal/],
      [{ token_endpoint: undefined }, /token_endpoint .*missing or invalid/],
      [{ authorization_endpoint: 'javascript:alert(1)' }, /authorization_endpoint .*missing or invalid/],
      [{ userinfo_endpoint: 'http://169.254.169.254/latest' }, /userinfo_endpoint .*missing or invalid/],
    ] as const) {
      at.faults = { discovery }
      const failure = await withStage([loginOf(at)], one => failureOf(one.begin()))
      assert.match(failure, /^InvalidResponse/)
      assert.match(failure, why)
    }
    at.faults = { status: 404 }
    const missing = await withStage([loginOf(at)], one => failureOf(one.begin()))
    assert.match(missing, /^InvalidResponse: .*returned 404; check issuer\.url/)
  })

  test('cannot redirect the server elsewhere', async () => {
    at.faults = { status: 302, only: '/token' }
    assert.match(await failureOf(stage.signIn()), /^InvalidResponse/)
    at.faults = { status: 302 }
    assert.match(await withStage([loginOf(at)], one => failureOf(one.begin())), /^InvalidResponse: .*returned 302/)
  })

  test('that returns no JSON is an error, and an interrupted response is temporary', async () => {
    at.faults = { body: '<html>' }
    assert.match(await failureOf(stage.signIn()), /^InvalidResponse: .*(JSON|parsing)/)
    at.faults = { loseTokens: 1 }
    assert.match(await failureOf(stage.signIn()), /^Unavailable/)
  })

  test('that is slow, or never ends a response, is unavailable', async () => {
    const one = await openProviderStage(at, [loginOf(at)], { answerWithin: 500, completeWithin: 1000 })
    const { refreshToken = '' } = await one.signIn()
    const refresh = () => failureOf(one.provider.refresh(refreshToken, { subject: 'ada' }), [refreshToken])
    at.faults = { hold: true, only: '/token' }
    assert.match(await refresh(), /^Unavailable: .*no response/)
    at.faults = { drip: true, only: '/token' }
    assert.match(await refresh(), /^Unavailable: .*no complete response/)
    at.faults = {}
    one.stop()
  })

  test('cannot evade the limit of a response', async () => {
    at.faults = { discovery: { token_endpoint: `${at.url}/token?watch=true` } }
    assert.match(await withStage([loginOf(at)], one => failureOf(one.signIn())), /^InvalidResponse: .*watch/)
  })

  test('with a certificate of an unknown CA is not contacted', async () => {
    const issuer = await startIssuer()
    const login = { ...loginOf(at), issuer: { url: issuer.url } }
    const failure = await withStage([login], one => failureOf(one.begin()))
    assert.match(failure, /^Unavailable: .*certificate is not trusted: issuer\.certificateAuthority/)
    assert.equal(issuer.fetches.discovery, 0)
    await issuer.stop()
  })

  test('with a wrong client secret names the setting', async () => {
    const wrong = loginOf(at, { clientSecretEnv: 'WRONG' })
    const failure = await withStage([wrong], one => failureOf(one.signIn()))
    assert.match(failure, /^InvalidResponse: .*invalid_client.*check clientID and the client secret/)
  })

  test('may rotate its keys', async () => {
    const { refreshToken = '' } = await stage.signIn()
    await at.rotateKeys()
    stage.skew = 60_000 // the cooldown for unknown keys is over
    at.faults = { tokens: { claims: { iat: seconds() + 60, exp: seconds() + 600 } } }
    const next: SignedIn = await stage.provider.refresh(refreshToken, { subject: 'ada' })
    assert.equal(next.username, 'corp:ada')
  })

  test('gets few requests for keys, however many tokens have unknown keys', async () => {
    await withStage([loginOf(at)], async one => {
      await one.signIn()
      const before = at.requests['/jwks'] ?? 0
      for (let index = 0; index < 20; index++) {
        const token = await at.logoutToken({ sub: 'ada' }, { header: { kid: `invented-${index}` } })
        assert.match(await failureOf(one.provider.verifyLogoutToken(token)), /^InvalidResponse: .*does not publish/)
      }
      assert.ok((at.requests['/jwks'] ?? 0) - before <= 1)
    })
  })

  test('may have a clock that differs by 5 seconds, not more', async () => {
    for (const [ahead, isAccepted] of [
      [-3000, true],
      [-30_000, false],
      [598_000, true],
      [620_000, false],
    ] as const) {
      const one = await openProviderStage(at, [loginOf(at)])
      one.skew = ahead
      if (isAccepted) assert.equal((await one.signIn()).username, 'corp:ada')
      else assert.match(await failureOf(one.signIn()), /^InvalidResponse: .*("exp"|not valid yet)/)
      one.stop()
    }
  })
})
