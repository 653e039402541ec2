// Setting a secret to its current value prints `unchanged`, writes nothing, and reveals nothing to callers who may not read it.

import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { signedIn } from '../support/cli-home.ts'

const { home } = await signedIn({ storage: 'memory' })
before(() => home.ok('set secret db password=-', { stdin: 'canary-same' }))

/** The fields that a write would change: the version of the object, and those of its data. */
const standOf = async (where: string) => {
  const { metadata } = JSON.parse(await home.ok(`get secret ${where} -o json`))
  return { version: metadata.resourceVersion, history: await home.ok(`history secret ${where} -o name`) }
}

test('set of the current value prints unchanged and writes nothing', async () => {
  const before = await standOf('db')
  const same = () => home.ok('set secret db password=-', { stdin: 'canary-same' })
  assert.equal(await same(), 'sharedsecret/db unchanged\n')
  assert.equal(
    await home.ok('set secret db password=- --dry-run=server', { stdin: 'canary-same' }),
    'sharedsecret/db unchanged (dry run)\n',
  )
  assert.equal(
    await home.ok('set secret db password=- --dry-run=server', { stdin: 'canary-other' }),
    'sharedsecret/db changed (dry run)\n',
  )
  assert.deepEqual(await standOf('db'), before)
  assert.equal(await home.ok('set secret db password=-', { stdin: 'canary-other' }), 'sharedsecret/db changed\n')
  assert.notDeepEqual(await standOf('db'), before)
  assert.equal(await same(), 'sharedsecret/db changed\n', 'an earlier value is another one')
})

test('one differing key of several is a change', async () => {
  await home.ok('set secret pair name=web port=80')
  assert.equal(await home.ok('set secret pair name=web port=80'), 'sharedsecret/pair unchanged\n')
  assert.equal(await home.ok('set secret pair name=web port=443'), 'sharedsecret/pair changed\n')
  assert.equal(await home.ok('set secret pair name=web host=a'), 'sharedsecret/pair changed\n')
})

test('import of the current data prints unchanged, also with --replace, and for a project', async () => {
  const app = 'import secret app -f - --format json --project shop'
  const stdin = '{"A":"1","B":"2"}'
  assert.equal(await home.ok(app, { stdin }), 'projectsecret/app created: 2 keys set\n')
  const before = await standOf('app --project shop')
  assert.equal(await home.ok(app, { stdin }), 'projectsecret/app unchanged: the values are already set\n')
  assert.equal(
    await home.ok(`${app} --replace --yes`, { stdin }),
    'projectsecret/app unchanged: the values are already set\n',
  )
  assert.equal(
    await home.ok(`${app} --dry-run=server`, { stdin }),
    'projectsecret/app unchanged (dry run): the values are already set\n',
  )
  assert.deepEqual(await standOf('app --project shop'), before)
})

test('set does not count as reading', async () => {
  await home.ok('set secret unread a=-', { stdin: 'canary-unread' })
  assert.equal(await home.ok('set secret unread a=-', { stdin: 'canary-unread' }), 'sharedsecret/unread unchanged\n')
  assert.match(await home.ok('list secrets -o wide'), /^unread .*\bnever\b/m)
})

test('a caller who may write but not read always gets changed, so that it cannot guess the value (D5)', async () => {
  const writer = {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: 'writer' },
    rules: [{ apiGroups: ['management.platform.sh'], resources: ['sharedsecrets'], verbs: ['create', 'patch'] }],
  }
  const binding = {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: 'writer' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'writer' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'wim' }],
  }
  await home.ok('create -f -', { stdin: `${JSON.stringify(writer)}\n---\n${JSON.stringify(binding)}\n` })
  const key = await home.ok('create accesskey wim --for-user wim --ttl 1h -o connection')
  const env = { PLATFORM_ACCESS_KEY: key.trim() }
  await home.ok('set secret blind a=-', { stdin: 'canary-blind' })
  for (const stdin of ['canary-blind', 'canary-guess', 'canary-guess'])
    assert.equal(await home.ok('set secret blind a=-', { env, stdin }), 'sharedsecret/blind changed\n')
  assert.equal(await home.ok('set secret fresh a=-', { env, stdin: 'canary-fresh' }), 'sharedsecret/fresh created\n')
})
