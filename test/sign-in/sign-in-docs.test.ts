// The examples of docs/SIGN-IN.md, with claims as GitHub, GitLab and Kubernetes issue them, and its commands, flags and settings.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parse } from 'yaml'
import type { JsonObject } from '../../src/api/object.ts'
import { flagOf, readSettings } from '../../src/apiserver/settings.ts'
import { table } from '../../src/apiserver/settings-table.ts'
import { loadAuthConfig } from '../../src/auth/jwt/auth-config.ts'
import { commands } from '../../src/cmd/commands.ts'
import { type Command, loaded } from '../../src/host/command.ts'
import { readFlags } from '../../src/host/read-flags.ts'
import { blocksOf, readDocument } from '../support/docs.ts'

const env = { CORP_CLIENT_SECRET: 'secret' }
const document = readDocument('docs/SIGN-IN.md')
const blocks = blocksOf(document).filter(({ how }) => how === 'yaml')
const configs = blocks
  .filter(({ text }) => text.includes('kind: AuthConfig'))
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

test('the example of Dex has the client of the entry, and connectors that send groups', () => {
  const [example] = blocks.map(({ text }) => parse(text)).filter(({ connectors }) => connectors)
  const entry = logins.find(({ name }) => name === 'dex')
  assert.equal(example.issuer, entry?.url)
  const [client] = example.staticClients
  assert.equal(client.id, entry?.clientID)
  assert.deepEqual(client.redirectURIs, ['https://platform.example.org/auth/callback/dex'])
  const [ldap, saml] = example.connectors
  assert.deepEqual([ldap.type, saml.type], ['ldap', 'saml'])
  assert.equal(ldap.config.groupSearch.nameAttr, 'cn')
  assert.equal(ldap.config.userSearch.preferredUsernameAttr, 'uid')
  assert.ok(saml.config.groupsAttr)
  // Unverified certificates and responses are not an example.
  assert.doesNotMatch(JSON.stringify(example), /insecure/i)
})

/** The words of every code span that matches, as a shell splits them. */
const spans = (pattern: RegExp) =>
  [...document.replace(/^```[\s\S]*?^```/gm, '').matchAll(/`([^`]+)`/g)]
    .map(([, text = '']) => text)
    .filter(text => pattern.test(text))
    .map(text => [...text.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, word]) => quoted ?? word ?? ''))

const isServe = ({ words }: Command) => words.join(' ') === 'serve'

/** Throws if the program does not accept the arguments. */
async function accept(command: Command, args: readonly string[]): Promise<void> {
  if (isServe(command)) await readSettings(args, {})
  else readFlags({ ...command, positionals: [{ name: 'ARGUMENT', what: '', optional: true, many: true }] }, args, {})
}

test('the program accepts every command of the page', async () => {
  const found = spans(/^platform [a-z]/).map(words => words.slice(1))
  assert.ok(found.length > 10)
  for (const words of found) {
    const rows = commands.filter(row => row.words.every((word, index) => word === words[index]))
    const row = rows.toSorted((one, other) => other.words.length - one.words.length)[0]
    assert.ok(row, `platform ${words.join(' ')}`)
    const command = await loaded(row)
    const args = words.slice(command.words.length)
    // Only the name of a command.
    if (args.length) readFlags(command, args, {})
  }
})

test('the program accepts every flag of the page as it is written', async () => {
  const all = await Promise.all(commands.map(loaded))
  const own = all.filter(({ words }) => /^(serve|login|logout|admin emergency-key)$/.test(words.join(' ')))
  assert.equal(own.length, 4)
  const flagsOf = (command: Command) => (isServe(command) ? Object.keys(table).map(flagOf) : Object.keys(command.flags))
  const found = spans(/^--[a-z]/)
  assert.ok(found.length > 15)
  for (const args of found) {
    const [flag = '', value] = [...(args[0] ?? '').slice(2).split('='), ...args.slice(1)]
    const takers = own.filter(command => flagsOf(command).includes(flag))
    assert.ok(takers.length, `no command has --${flag}`)
    for (const command of takers) {
      const isSwitch = command.flags[flag]?.type === 'switch'
      // Only the name of a flag with a value.
      if (value === undefined && !isSwitch) continue
      await accept(command, args)
    }
  }
  assert.equal((await readSettings(['--auth-pasted-keys=false'], {}))['auth.pastedKeys'], false)
})

test('every setting of the page exists', () => {
  const found = spans(/^(auth|limits|gateway|token|audit)\.\w+$/)
    .flat()
    .filter(name => name !== 'auth.yaml')
  assert.ok(found.length >= 3)
  for (const name of found) assert.ok(Object.hasOwn(table, name), name)
})
