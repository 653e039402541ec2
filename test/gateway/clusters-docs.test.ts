// The AuthenticationConfiguration of docs/CLUSTERS.md: the shape that kube-apiserver takes, and its rules, evaluated over the claims we sign.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { evaluate } from '@marcbachmann/cel-js'
import { parse } from 'yaml'
import type { Scope } from '../../src/api/caller.ts'
import { audiencesOf, type Claims, claimsOf } from '../../src/auth/tokens/token.ts'
import { blocksOf, readDocument } from '../support/docs.ts'

type Shape = { readonly [key: string]: Shape | readonly [Shape] | 'text' | 'texts' }

/** apiserver.config.k8s.io: the fields of it that are used here. Others are refused, as kube-apiserver refuses unknown ones. */
const shape: Shape = {
  apiVersion: 'text',
  kind: 'text',
  jwt: [
    {
      issuer: { url: 'text', audiences: 'texts', audienceMatchPolicy: 'text', certificateAuthority: 'text' },
      claimValidationRules: [{ expression: 'text', message: 'text' }],
      claimMappings: {
        username: { expression: 'text' },
        groups: { expression: 'text' },
        extra: [{ key: 'text', valueExpression: 'text' }],
      },
      userValidationRules: [{ expression: 'text', message: 'text' }],
    },
  ],
}

function check(value: unknown, wanted: Shape[string], at: string): void {
  if (wanted === 'text') assert.equal(typeof value, 'string', at)
  else if (wanted === 'texts') for (const one of value as unknown[]) assert.equal(typeof one, 'string', at)
  else if (Array.isArray(wanted)) {
    assert.ok(Array.isArray(value) && value.length, at)
    for (const [index, one] of value.entries()) check(one, wanted[0], `${at}[${index}]`)
  } else
    for (const [key, member] of Object.entries(value as object)) {
      assert.ok(Object.hasOwn(wanted, key), `${at}.${key} is an unknown field`)
      check(member, (wanted as Shape)[key] as Shape[string], `${at}.${key}`)
    }
}

const page = blocksOf(readDocument('docs/CLUSTERS.md')).filter(({ how }) => how === 'yaml')
const config = page.map(({ text }) => parse(text)).find(({ kind }) => kind === 'AuthenticationConfiguration')
const asked = page.map(({ text }) => parse(text)).find(({ kind }) => kind === 'DirectClusterEndpointToken')

test('it has only fields that kube-apiserver knows', () => {
  check(config, shape, 'configuration')
  assert.match(config.apiVersion, /^apiserver\.config\.k8s\.io\/v1(beta1)?$/)
  const [{ issuer, claimMappings }] = config.jwt
  assert.match(issuer.url, /^https:\/\//)
  assert.equal(issuer.audienceMatchPolicy, 'MatchAny')
  for (const { key } of claimMappings.extra)
    assert.match(key, /^[a-z0-9.-]+\.[a-z]+\/[a-z0-9-]+$/, 'a domain and a path')
  for (const { expression } of [claimMappings.username, claimMappings.groups])
    assert.match(expression, /"platform:" \+/)
})

/** kube-apiserver types a claim as any, which CEL cannot iterate; the values inside a claim are dyn. */
const overAny = /(?<!dyn\()\bclaims(?:\.\w+|\["[^"]*"\])(?:\.(?:map|filter|all|exists|exists_one)\()/

test('no rule iterates over a claim itself, which kube-apiserver does not compile', () => {
  assert.match('claims.groups.map(group, group)', overAny)
  assert.match('claims["groups"].all(group, true)', overAny)
  const [{ claimValidationRules, claimMappings }] = config.jwt
  for (const { expression, valueExpression = expression } of [
    ...claimValidationRules,
    claimMappings.username,
    claimMappings.groups,
    ...claimMappings.extra,
  ])
    assert.doesNotMatch(valueExpression, overAny)
})

test('it accepts only the audience of one cluster, which the token of the page has and wider ones lack', () => {
  const [{ issuer }] = config.jwt
  const { ttl, scope } = asked.spec
  assert.equal(issuer.audiences.length, 1)
  assert.ok(audiencesOf(scope, ttl).includes(issuer.audiences[0]))
  for (const [wider, seconds] of [
    [scope, ttl + 1],
    [{ clusters: [{ cluster: 'prod' }, { cluster: 'dev' }] }, ttl],
    [{ clusters: [{ cluster: '*' }] }, ttl],
    [{ ...scope, projects: [{ project: 'web' }] }, ttl],
    [undefined, ttl],
  ] as const)
    assert.ok(!audiencesOf(wider, seconds).includes(issuer.audiences[0]))
})

const now = Date.parse('2026-11-15T12:00:00Z')

function claimsFor(scope: Scope | undefined, ttl: number, username = 'ada'): Claims {
  const groups = ['system:authenticated', `platform:user:${username}`, 'platform:team:web']
  return claimsOf({
    issuer: config.jwt[0].issuer.url,
    caller: { username, groups, identity: 'User', keyUid: 'key-1' },
    scope,
    now,
    expires: now + ttl * 1000,
    id: 'token-1',
  })
}

type User = {
  readonly username: string
  readonly groups: readonly string[]
  readonly extra: { readonly [key: string]: string }
}

/** Numbers as CEL has them: whole, or with a point, as JSON is read by whom. */
const numbers = [(value: number) => BigInt(value), (value: number) => value]

/**
 * The identity that the JWT authenticator of kube-apiserver derives from a token with a valid signature; throws with
 * the reason of a rejection.
 */
function authenticate(claims: Claims): User {
  const [{ issuer, claimValidationRules, claimMappings, userValidationRules }] = config.jwt
  const seconds = now / 1000
  assert.equal(claims.iss, issuer.url, 'issuer')
  assert.ok(
    claims.aud.some(one => issuer.audiences.includes(one)),
    'audience',
  )
  assert.ok(claims.exp > seconds && claims.nbf <= seconds, 'time')
  const [user] = numbers.map(as => {
    const seen = { claims: { ...claims, iat: as(claims.iat), nbf: as(claims.nbf), exp: as(claims.exp) } }
    // A rule that cannot be evaluated refuses, as one that says no does.
    for (const { expression, message } of claimValidationRules) assert.equal(evaluate(expression, seen), true, message)
    const extra = claimMappings.extra.map(({ key, valueExpression }: { key: string; valueExpression: string }) => [
      key,
      evaluate(valueExpression, seen),
    ])
    const user: User = {
      username: evaluate(claimMappings.username.expression, seen) as string,
      groups: evaluate(claimMappings.groups.expression, seen) as string[],
      extra: Object.fromEntries(extra),
    }
    for (const { expression, message } of userValidationRules)
      assert.equal(evaluate(expression, { user }), true, message)
    return user
  })
  return user as User
}

test('a token for only this cluster with at most 15 minutes is accepted, with a prefixed username', () => {
  for (const [scope, ttl] of [
    [asked.spec.scope, asked.spec.ttl],
    [{ clusters: [{ cluster: 'prod' }] }, 60],
    [{ clusters: [{ cluster: 'prod' }], projects: [], allowPlatformCli: false }, 900],
  ] as const)
    assert.deepEqual(authenticate(claimsFor(scope, ttl)), {
      username: 'platform:ada',
      groups: ['platform:system:authenticated', 'platform:platform:user:ada', 'platform:platform:team:web'],
      extra: { 'authentication.platform.sh/token': 'token-1', 'authentication.platform.sh/key': 'key-1' },
    })
})

const prod = { clusters: [{ cluster: 'prod' }] }
const others: readonly (readonly [string, Scope | undefined, number])[] = [
  ['no scope', undefined, 900],
  ['an empty scope', {}, 900],
  ['another cluster', { clusters: [{ cluster: 'dev' }] }, 900],
  ['all clusters', { clusters: [{ cluster: '*' }] }, 900],
  ['two clusters', { clusters: [{ cluster: 'prod' }, { cluster: 'dev' }] }, 900],
  ['the cluster twice', { clusters: [{ cluster: 'prod' }, { cluster: 'prod' }] }, 900],
  ['a project besides', { ...prod, projects: [{ project: 'web' }] }, 900],
  ['a space besides', { ...prod, spaces: [{ project: 'web', space: 'shop' }] }, 900],
  ['a virtual cluster besides', { ...prod, virtualClusters: [{ project: 'web', virtualCluster: 'vc' }] }, 900],
  ['a role besides', { ...prod, roles: [{ role: 'platform-cli' }] }, 900],
  ['rules besides', { ...prod, rules: [{ verbs: ['get'] }] }, 900],
  ['the command line besides', { ...prod, allowPlatformCli: true }, 900],
  ['a second more', prod, 901],
  ['an hour', prod, 3600],
]

test('any other scope and any longer lifetime is rejected, by its audience and by the rules alone', () => {
  for (const [what, scope, ttl] of others) {
    const claims = claimsFor(scope, ttl)
    assert.throws(() => authenticate(claims), /audience/, what)
    // As if the audience had been given to it all the same.
    const given = { ...claims, aud: [...claims.aud, 'platform:cluster:prod'] }
    assert.throws(
      () => authenticate(given),
      (error: Error) => !/^(audience|time|issuer)$/.test(error.message),
      what,
    )
  }
})

test('another issuer, audience or time is rejected', () => {
  const good = claimsFor(prod, 900)
  const later = { iat: good.iat + 60, nbf: good.iat + 60, exp: good.exp + 60 }
  for (const wrong of [
    { iss: 'https://evil.test' },
    { aud: ['platform:direct-cluster-endpoint'] },
    { aud: ['platform:cluster:dev'] },
    { exp: good.iat },
    later,
  ])
    assert.throws(() => authenticate({ ...good, ...wrong }), /^AssertionError.*: (issuer|audience|time)/)
})

test('no token becomes a user or group of the cluster itself, even without a prefix', () => {
  const [{ userValidationRules }] = config.jwt
  const decide = (user: object) =>
    userValidationRules.every(({ expression }: { expression: string }) => evaluate(expression, { user }) === true)
  assert.ok(decide({ username: 'ada', groups: ['ops'] }))
  assert.ok(!decide({ username: 'system:admin', groups: [] }))
  assert.ok(!decide({ username: 'ada', groups: ['ops', 'system:masters'] }))
})
