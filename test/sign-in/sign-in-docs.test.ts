// The examples of docs/SIGN-IN.md, with claims as GitHub, GitLab and Kubernetes issue them.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonObject } from '../../src/api/object.ts'
import { loadAuthConfig } from '../../src/auth/jwt/auth-config.ts'
import { blocksOf, readDocument } from '../support/docs.ts'

const env = { CORP_CLIENT_SECRET: 'secret' }
const configs = blocksOf(readDocument('docs/SIGN-IN.md'))
  .filter(({ how }) => how === 'yaml')
  .map(({ text }) => {
    const config = loadAuthConfig(Buffer.from(text), () => ({ problem: 'no files here' }), env)
    assert.deepEqual(config.problems, [])
    return config
  })
const issuers = configs.flatMap(({ issuers: found }) => found)
const logins = configs.flatMap(({ logins: found }) => found)
const map = (name: string, claims: JsonObject) => {
  const issuer = issuers.find(one => one.name === name)
  assert.ok(issuer, name)
  const { username, groups, extra } = issuer.mapping.map(claims)
  return { username, groups, extra }
}

test('GitHub Actions: the repository and branch decide, and not their names', () => {
  const claims = {
    sub: 'repo:octo-org@5/octo-repo@74:environment:prod',
    repository: 'octo-org/octo-repo',
    repository_id: '74',
    ref: 'refs/heads/main',
    ref_type: 'branch',
    event_name: 'push',
    environment: 'prod',
    run_id: '1234',
  }
  assert.deepEqual(map('github', claims), {
    username: 'github:repository-74',
    groups: ['github:environment-prod'],
    extra: { 'github.example.org/run': ['1234'] },
  })
  assert.throws(() => map('github', { ...claims, repository_id: '75' }), /repository_id/)
  assert.throws(() => map('github', { ...claims, ref: 'refs/heads/evil' }), /only pushes to main/)
  assert.throws(() => map('github', { ...claims, event_name: 'pull_request' }), /only pushes to main/)
})

test('GitLab: only protected branches of one project', () => {
  const claims = { project_id: '22', project_path: 'a/b', ref: 'main', ref_type: 'branch', ref_protected: 'true' }
  const { username, groups } = map('gitlab', claims)
  assert.deepEqual([username, groups], ['gitlab:project-22', ['gitlab:ref-main']])
  for (const change of [{ project_id: '23' }, { ref_type: 'tag' }, { ref_protected: 'false' }])
    assert.throws(() => map('gitlab', { ...claims, ...change }), /only protected branches/)
})

test('Kubernetes: only service accounts of one namespace', () => {
  const claims = (namespace: string) => ({
    sub: `system:serviceaccount:${namespace}:robot`,
    'kubernetes.io': { namespace, serviceaccount: { name: 'robot', uid: 'a' }, pod: { name: 'b', uid: 'c' } },
  })
  const { username, groups } = map('prod', claims('deploy'))
  assert.deepEqual([username, groups], ['prod:deploy/robot', ['prod:namespace-deploy']])
  assert.throws(() => map('prod', claims('kube-system')), /only service accounts of the namespace deploy/)
})

test('people: the username and the groups that match a pattern', () => {
  const corp = logins.find(({ name }) => name === 'corp')
  const person = corp?.map({ sub: '1', preferred_username: 'ada', groups: ['platform-dev', 'mail'] })
  assert.deepEqual([person?.username, person?.groups], ['corp:ada', ['corp:platform-dev']])
  assert.deepEqual(corp?.lifetimes, { refreshAfter: 600, refreshGrace: 3600, idle: 43_200, max: 604_800 })
})
