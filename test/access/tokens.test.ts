// Direct-cluster tokens from a whole server: who gets which, what the issuer publishes, and what makes them invalid (D31–D33).

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { JwtVerifier } from 'aws-jwt-verify'
import type { Claims } from '../../src/auth/tokens/token.ts'
import { keys, must, openStage, ours, type Person, rbac, refused, type Stage, soon, teams } from './people.ts'

const tokens = `${ours}/directclusterendpointtokens`
const revocations = `${ours}/tokenrevocations`
const signingKeys = `${ours}/signingkeys`
const rotations = `${ours}/signingkeyrotations`
const merge = { 'Content-Type': 'application/merge-patch+json' }

const claimsIn = (token: string): Claims => JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
const headerOf = (token: string) => JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString())

describe('direct-cluster tokens', () => {
  let stage: Stage
  let ada: Person
  before(async () => {
    stage = await openStage()
    ada = await stage.invite('ada')
  })
  after(() => stage.close())

  const mint = (person: Person, spec: object = {}, query = '') =>
    person.ask('POST', `${tokens}${query}`, { apiVersion: 'management.platform.sh/v1', spec })
  const claims = async (person: Person, spec: object = {}) => claimsIn((await must(mint(person, spec))).status.token)
  const page = async (path: string) => {
    const response = await fetch(`${stage.server.http}${path}`)
    assert.equal(response.status, 200, path)
    // biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came, and fail where it is something else
    return { body: (await response.json()) as any, headers: response.headers }
  }
  /** Reasons of what was revoked about somebody or something. */
  const revoked = async (word: string): Promise<{ reason: string; keyUID?: string }[]> => {
    const { items } = await must(stage.admin.ask('GET', revocations))
    return items
      .map((item: { spec: object }) => item.spec)
      .filter((spec: object) => JSON.stringify(spec).includes(word))
  }

  test('an empty spec yields a token for an hour, for the caller with all their groups (SPEC §2.5, D31)', async () => {
    const { status } = await must(mint(ada))
    const said = claimsIn(status.token)
    assert.equal(said.exp - said.iat, 3600)
    assert.equal(Date.parse(status.expirationTimestamp) / 1000, said.exp)
    assert.deepEqual([said.sub, said.iss, said.aud], ['ada', stage.server.https, ['platform:direct-cluster-endpoint']])
    assert.deepEqual([...said.groups].sort(), ['platform:user:ada', 'system:authenticated'])
    const { items } = await must(ada.ask('GET', keys))
    assert.deepEqual(said['platform.sh'], { kind: 'User', name: 'ada', key: items[0].metadata.uid })
    assert.match(said.jti, /^[0-9a-f-]{36}$/)
  })

  test('an independent library that knows only the issuer accepts a token, and rejects every modification', async () => {
    const { token } = (await must(mint(ada, { ttl: 60, scope: { clusters: [{ cluster: 'prod' }] } }))).status
    const { body: metadata, headers } = await page('/.well-known/openid-configuration')
    assert.equal(metadata.issuer, stage.server.https)
    assert.match(headers.get('cache-control') ?? '', /public, max-age=\d+/)
    assert.ok(metadata.jwks_uri.startsWith(metadata.issuer))
    const { body: keySet } = await page(new URL(metadata.jwks_uri).pathname)
    for (const audience of ['platform:direct-cluster-endpoint', 'platform:cluster:prod']) {
      const verifier = JwtVerifier.create({ issuer: metadata.issuer, audience, jwksUri: metadata.jwks_uri })
      verifier.cacheJwks(keySet)
      assert.equal((await verifier.verify(token)).sub, 'ada')
      const [head, , signature] = token.split('.')
      const body = Buffer.from(JSON.stringify({ ...claimsIn(token), sub: 'root' })).toString('base64url')
      await assert.rejects(verifier.verify(`${head}.${body}.${signature}`))
    }
    const elsewhere = JwtVerifier.create({
      issuer: metadata.issuer,
      audience: 'platform:cluster:dev',
      jwksUri: 'https://x',
    })
    elsewhere.cacheJwks(keySet)
    await assert.rejects(elsewhere.verify(token))
    for (const key of keySet.keys) assert.equal(key.d, undefined, 'the private half stays here')
  })

  test('a ttl above a day is rejected, zero means an hour, and no token outlives its key (D31)', async () => {
    await refused(mint(ada, { ttl: 86_401 }), 422, /spec.ttl.*86400/)
    await refused(mint(ada, { ttl: -1 }), 422)
    const { exp, iat } = await claims(ada, { ttl: 0 })
    assert.equal(exp - iat, 3600)
    const brief = await stage.invite('brief', { ttl: 120 })
    const short = await claims(brief, { ttl: 3600 })
    assert.ok(short.exp - short.iat <= 120)
  })

  test('a token has the scope of its key, or a narrower one (D32)', async () => {
    const scope = { clusters: [{ cluster: 'prod' }, { cluster: 'dev' }] }
    const scoped = await stage.invite('scoped', { scope })
    assert.deepEqual((await claims(scoped))['platform.sh'].scope, scope)
    assert.deepEqual((await claims(scoped, { scope: {} }))['platform.sh'].scope, scope)
    const narrow = { clusters: [{ cluster: 'dev' }] }
    assert.deepEqual((await claims(scoped, { scope: narrow }))['platform.sh'].scope, narrow)
    for (const wider of [
      { clusters: [{ cluster: '*' }] },
      { clusters: [{ cluster: 'test' }] },
      { projects: [{ project: '*' }] },
      { ...narrow, roles: [{ role: 'platform-cli' }] },
      { rules: [{}] },
    ])
      await refused(mint(scoped, { scope: wider }), 403, /must not be wider/)
    await refused(mint(ada, { scope: { rules: [{ nonResourceURLs: ['/a*'] }] } }), 422)
  })

  test('duplicates in a scope are removed, so that a token for exactly one cluster stays one (D31)', async () => {
    const twice = { clusters: [{ cluster: 'prod' }, { cluster: 'prod' }] }
    const keyed = await stage.invite('twice', { scope: twice })
    for (const made of [await claims(ada, { ttl: 60, scope: twice }), await claims(keyed, { ttl: 60 })]) {
      assert.deepEqual(made['platform.sh'].scope, { clusters: [{ cluster: 'prod' }] })
      assert.deepEqual(made.aud, ['platform:direct-cluster-endpoint', 'platform:cluster:prod'])
    }
  })

  test('tokens are not stored, a dry run issues none, and impersonation issues none for others', async () => {
    await refused(stage.admin.ask('GET', tokens), 405)
    const dry = await must(mint(ada, {}, '?dryRun=All'))
    assert.equal(dry.status, undefined)
    await refused(
      stage.admin.ask('POST', tokens, { spec: {} }, { 'Impersonate-User': 'ada' }),
      403,
      /without impersonation/,
    )
  })

  test('signing keys are not served; a rotation signs with a new key immediately and keeps publishing the old one (D2, D31)', async () => {
    const before = headerOf((await must(mint(ada))).status.token).kid
    for (const method of ['GET', 'POST'])
      await refused(stage.admin.ask(method, signingKeys, method === 'GET' ? undefined : {}), 404)
    await refused(ada.ask('POST', rotations, {}), 403)
    assert.equal((await must(stage.admin.ask('POST', `${rotations}?dryRun=All`, {}))).status, undefined)
    const { key } = (await must(stage.admin.ask('POST', rotations, {}))).status
    await soon('the new key signs', async () => headerOf((await must(mint(ada))).status.token).kid === key)
    const { body } = await page('/.well-known/jwks.json')
    assert.deepEqual(body.keys.map((key: { kid: string }) => key.kid).sort(), [before, key].sort())
  })

  test('weakening a key revokes its tokens in the same commit (D33)', async () => {
    const cases: [string, object, object | 'DELETE' | 'rotate', RegExp][] = [
      ['gone', {}, 'DELETE', /was deleted/],
      ['off', {}, { disabled: true }, /was disabled/],
      ['narrowed', {}, { scope: { clusters: [{ cluster: 'dev' }] } }, /was narrowed/],
      ['poorer', { groups: ['ops'] }, { groups: [] }, /lost groups/],
      ['shorter', {}, { ttl: 3600 }, /ends earlier/],
      ['rotated', {}, 'rotate', /was replaced/],
    ]
    for (const [user, spec, change, reason] of cases) {
      const person = await stage.invite(user, spec)
      const uid = (await claims(person))['platform.sh'].key
      const { items } = await must(stage.admin.ask('GET', keys))
      const { name } = items.find((item: { metadata: { uid: string } }) => item.metadata.uid === uid).metadata
      assert.deepEqual(await revoked(uid), [])
      if (change === 'DELETE') await must(stage.admin.ask('DELETE', `${keys}/${name}`))
      else if (change === 'rotate') await must(stage.admin.ask('POST', `${keys}/${name}/rotate`, {}))
      else await must(stage.admin.ask('PATCH', `${keys}/${name}`, { spec: change }, merge))
      const [found, ...more] = await revoked(uid)
      assert.match(found?.reason ?? `nothing for ${user}`, reason)
      assert.equal(more.length, 0)
    }
  })

  test('a rotation with overlap, a wider scope or another description revokes nothing', async () => {
    const person = await stage.invite('calm', { scope: { clusters: [{ cluster: 'dev' }] } })
    const uid = (await claims(person))['platform.sh'].key
    const { items } = await must(stage.admin.ask('GET', keys))
    const { name } = items.find((item: { metadata: { uid: string } }) => item.metadata.uid === uid).metadata
    await must(stage.admin.ask('POST', `${keys}/${name}/rotate`, { spec: { overlapSeconds: 60 } }))
    for (const spec of [{ description: 'x' }, { scope: { clusters: [{ cluster: '*' }] } }, { ttl: 0 }])
      await must(stage.admin.ask('PATCH', `${keys}/${name}`, { spec }, merge))
    assert.deepEqual(await revoked(uid), [])
  })

  test('removing a member or deleting a team revokes their tokens (D33)', async () => {
    await must(
      stage.admin.ask('POST', teams, { metadata: { name: 'crew' }, spec: { users: ['leaver'], groups: ['g1', 'g2'] } }),
    )
    await must(stage.admin.ask('PATCH', `${teams}/crew`, { spec: { users: [], groups: ['g2'] } }, merge))
    assert.match((await revoked('leaver'))[0]?.reason ?? '', /left team crew/)
    assert.equal((await revoked('"g1"')).length, 1)
    assert.equal((await revoked('"g2"')).length, 0)
    await must(stage.admin.ask('DELETE', `${teams}/crew`))
    assert.match((await revoked('platform:team:crew'))[0]?.reason ?? '', /team crew was deleted/)
  })

  test('a manual revocation says which tokens, since when and until when; agents may only watch it', async () => {
    const { spec } = await must(stage.admin.ask('POST', revocations, { spec: { jti: 'some-id', reason: 'lost' } }))
    assert.ok(Date.parse(spec.until) - Date.parse(spec.notBefore) >= 86_400_000)
    await refused(stage.admin.ask('POST', revocations, { spec: {} }), 422, /at least one of keyUID, jti/)
    await refused(ada.ask('POST', revocations, { spec: { jti: 'x' } }), 403)
    const { spec: made } = await must(
      stage.admin.ask('POST', keys, { spec: { user: 'admin', scope: { roles: [{ role: 'agent' }] } } }),
    )
    const agent = stage.person('agent', made.key)
    assert.ok((await must(agent.ask('GET', revocations))).items.length > 0)
    for (const path of [teams, keys]) assert.deepEqual((await must(agent.ask('GET', path))).items, [], path)
    await refused(agent.ask('POST', teams, { metadata: { name: 'x' } }), 403)
  })

  test('revocations are readable as a whole or not at all; a watch that loses permission ends', {
    timeout: 120_000,
  }, async () => {
    const agent = await stage.invite('agent')
    const binding = {
      metadata: { name: 'agents' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'platform-gateway' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'agent' }],
    }
    await must(stage.admin.ask('POST', revocations, { metadata: { name: 'one' }, spec: { jti: 'a' } }))
    await refused(agent.ask('GET', revocations), 403, /cannot list/)
    await refused(agent.ask('GET', `${revocations}?watch=1`), 403, /cannot watch/)
    await must(stage.admin.ask('POST', `${rbac}/clusterrolebindings`, binding))
    const all = (await must(stage.admin.ask('GET', revocations))).items.length
    assert.equal((await must(agent.ask('GET', revocations))).items.length, all)
    const events = agent.watch(`${revocations}?watch=1`)
    assert.equal((await events.next()).value?.type, 'ADDED')
    await must(stage.admin.ask('DELETE', `${rbac}/clusterrolebindings/agents`))
    while (!(await events.next()).done);
    await refused(agent.ask('GET', revocations), 403)
  })
})
