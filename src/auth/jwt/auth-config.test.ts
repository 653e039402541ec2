// An auth.yaml of any shape gives problems and never an exception.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadAuthConfig } from './auth-config.ts'

const entry = {
  name: 'ci',
  issuer: { url: 'https://issuer.example', audiences: ['https://platform.example'] },
  claimMappings: { username: { claim: 'sub' }, extra: [{ key: 'example.org/a', valueExpression: 'claims.a' }] },
  claimValidationRules: [{ claim: 'a', requiredValue: 'b' }],
  userValidationRules: [{ expression: 'user.username != ""' }],
  scope: { projects: [{ project: 'shop' }], roles: [{ role: 'agent' }], rules: [{ verbs: ['get'] }] },
}
const login = {
  name: 'corp',
  displayName: 'Corp',
  issuer: { url: 'https://login.example' },
  clientID: 'platform',
  clientSecretEnv: 'SECRET',
  scopes: ['groups'],
  userInfo: true,
  claimMappings: { username: { claim: 'sub', prefix: '' }, groups: { claim: 'groups' }, email: { claim: 'mail' } },
  groupPatterns: ['a-*'],
  lifetimes: { refreshAfter: '1m', max: '1h' },
}
const load = (jwt: unknown, logins: unknown = []) => {
  const config = { apiVersion: 'config.platform.sh/v1', kind: 'AuthConfig', jwt, login: logins }
  return loadAuthConfig(Buffer.from(JSON.stringify(config)), () => ({ problem: 'does not exist' }), {
    SECRET: 'x',
  })
}

/** Copies of the value, each with one part replaced. */
function* withOnePart(value: unknown, part: unknown): Generator<unknown> {
  yield part
  if (typeof value !== 'object' || value === null) return
  for (const [key, member] of Object.entries(value))
    for (const changed of withOnePart(member, part))
      yield Array.isArray(value) ? value.with(Number(key), changed) : { ...value, [key]: changed }
}

test('a part of the wrong type is a problem', () => {
  assert.deepEqual(load([entry], [login]).problems, [])
  for (const part of [null, 1, 'x', [], [null], [1], {}, { x: null }])
    for (const jwt of withOnePart([entry], part)) load(jwt)
  for (const part of [null, 1, 'x', [], [null], {}, { x: null }])
    for (const logins of withOnePart([login], part)) load([entry], logins)
  for (const part of [null, 1, { x: null }]) assert.notDeepEqual(load([{ ...entry, issuer: part }]).problems, [])
})
