// The AuthenticationConfiguration of docs/CLUSTERS.md: the shape that kube-apiserver takes, and rules that fit the tokens we issue.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parse } from 'yaml'
import { audiencesOf } from '../../src/auth/token.ts'
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
      assert.ok(Object.hasOwn(wanted, key), `${at}.${key} is no field`)
      check(member, (wanted as Shape)[key] as Shape[string], `${at}.${key}`)
    }
}

const page = blocksOf(readDocument('docs/CLUSTERS.md')).filter(({ how }) => how === 'yaml')
const config = page.map(({ text }) => parse(text)).find(({ kind }) => kind === 'AuthenticationConfiguration')
const asked = page.map(({ text }) => parse(text)).find(({ kind }) => kind === 'DirectClusterEndpointToken')

test('it has the fields that kube-apiserver knows, and no others', () => {
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

test('it accepts the audience of one cluster alone, which the token of the page has and no wider one has', () => {
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

test('its rules speak of claims that our tokens have, with balanced brackets', () => {
  const [jwt] = config.jwt
  const rules: string[] = [
    ...jwt.claimValidationRules.map((one: { expression: string }) => one.expression),
    ...jwt.claimMappings.extra.map((one: { valueExpression: string }) => one.valueExpression),
    jwt.claimMappings.username.expression,
    jwt.claimMappings.groups.expression,
  ]
  const known = ['sub', 'groups', 'exp', 'iat', 'jti', 'platform.sh']
  for (const rule of rules) {
    const named = [...rule.matchAll(/claims(?:\.(\w+)|\["([^"]+)"\])/g)].map(
      ([, plain, quoted]) => plain ?? quoted ?? '',
    )
    assert.ok(named.length, rule)
    for (const claim of named) assert.ok(known.includes(claim), `${claim} in ${rule}`)
    for (const [open, close] of ['()', '[]'])
      assert.equal(rule.split(open as string).length, rule.split(close as string).length, rule)
  }
})
