// Regressions from the second security review (D6, D18, D22, D25, D26, D27, D61).

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { keys, must, openStage, ours, type Person, rbac, refused, type Stage, secrets, soon, teams } from './people.ts'

const api = 'rbac.authorization.k8s.io'
const group = 'management.platform.sh'
const merge = { 'content-type': 'application/merge-patch+json' }
const json = { 'content-type': 'application/json-patch+json' }
const roles = `${rbac}/clusterroles`
const bindings = `${rbac}/clusterrolebindings`

let stage: Stage
before(async () => {
  stage = await openStage()
})
after(() => stage.close())

async function someone(name: string, rules: readonly object[]): Promise<Person> {
  await must(stage.admin.ask('POST', roles, { metadata: { name: `of-${name}` }, rules }))
  await must(
    stage.admin.ask('POST', bindings, {
      metadata: { name: `of-${name}` },
      roleRef: { apiGroup: api, kind: 'ClusterRole', name: `of-${name}` },
      subjects: [{ apiGroup: api, kind: 'User', name }],
    }),
  )
  return stage.invite(name)
}
const rule = (verbs: readonly string[], resources: readonly string[], apiGroup = group) => ({
  verbs,
  apiGroups: [apiGroup],
  resources,
})
const asked = async (who: Person, verb: string, resource: string, name: string, namespace = '') =>
  (
    await must(
      who.ask('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
        spec: { resourceAttributes: { verb, group, resource, name, namespace } },
      }),
    )
  ).status.allowed

test('a role that mirrors access entries grants nothing when it is bound', async () => {
  const mia = await someone('mia', [
    rule(['create', 'watch'], ['sharedsecrets']),
    rule(['create'], ['roles', 'rolebindings'], api),
  ])
  const entry = { name: 'x', users: ['mia'] }
  await must(
    mia.ask('POST', secrets(), { metadata: { name: 'mine' }, spec: { access: [{ ...entry, verbs: ['watch'] }] } }),
  )
  const mirror = `${rbac}/namespaces/default/roles/access:sharedsecrets:mine:x`
  await soon('the mirror is there', async () => (await stage.admin.ask('GET', mirror)).status === 200)
  const binding = {
    metadata: { name: 'laundered' },
    roleRef: { apiGroup: api, kind: 'Role', name: 'access:sharedsecrets:mine:x' },
    subjects: [{ apiGroup: api, kind: 'User', name: 'mia' }],
  }
  await refused(mia.ask('POST', `${rbac}/namespaces/default/rolebindings`, binding), 403)
  await must(stage.admin.ask('POST', `${rbac}/namespaces/default/rolebindings`, binding))
  await must(stage.admin.ask('DELETE', `${secrets()}/mine`))
  await must(
    stage.admin.ask('POST', secrets(), {
      metadata: { name: 'mine' },
      spec: { access: [{ ...entry, users: ['x'], verbs: ['*'] }] },
    }),
  )
  await soon('the mirror is there again', async () => (await stage.admin.ask('GET', mirror)).status === 200)
  assert.equal(await asked(mia, 'get', 'sharedsecrets', 'mine', 'default'), false)
})

describe('built-in roles and bindings', () => {
  test('cannot be deleted or get finalizers', async () => {
    const mallory = await someone('mallory', [rule(['get', 'list', 'patch', 'delete', 'deletecollection'], ['*'], api)])
    for (const path of [`${bindings}/platform-admin`, `${roles}/platform-user`]) {
      await refused(mallory.ask('PATCH', path, { metadata: { finalizers: ['x.io/y'] } }, merge), 403, /built-in/)
      await refused(mallory.ask('DELETE', path), 403, /built-in/)
      await refused(stage.admin.ask('DELETE', path), 403, /built-in/)
    }
    await refused(mallory.ask('DELETE', `${bindings}?labelSelector=platform.sh/built-in=true`), 403, /built-in/)
    await must(stage.admin.ask('GET', `${bindings}/platform-admin`))
  })

  test('a scoped key cannot set a finalizer on a role', async () => {
    await must(stage.admin.ask('POST', roles, { metadata: { name: 'plain' }, rules: [] }))
    const { spec } = await must(stage.admin.ask('POST', keys, { spec: { scope: { rules: [{ verbs: ['*'] }] } } }))
    const boxed = stage.person('admin', spec.key)
    await refused(boxed.ask('PATCH', `${roles}/plain`, { metadata: { finalizers: ['x.io/y'] } }, merge), 403, /scope/)
  })
})

test('an activity report does not revive an expired key', async () => {
  const made = await must(
    stage.admin.ask('POST', keys, {
      metadata: { name: 'sliding' },
      spec: { user: 'gus', ttl: 1, ttlAfterLastActivity: true },
    }),
  )
  const gus = stage.person('gus', made.spec.key)
  await soon(
    'it expires',
    async () => (await stage.admin.ask('GET', '/version')).status === 200 && (await expired(made.spec.key)),
  )
  const { status } = await must(
    stage.admin.ask('POST', `${ours}/accesskeyactivities`, {
      spec: { keys: [{ uid: made.metadata.uid, lastActivity: new Date().toISOString().replace(/\.\d+/, '') }] },
    }),
  )
  assert.equal(status.recorded ?? 0, 0)
  await refused(gus.ask('GET', '/api'), 401, /expired/)
})

/** Without using the key: a use would make it live on. */
async function expired(key: string): Promise<boolean> {
  const { status } = await must(
    stage.admin.ask('POST', '/apis/authentication.k8s.io/v1/tokenreviews', { spec: { token: key } }),
  )
  return status.authenticated !== true
}

test('a rotation does not revive an expired secret', async () => {
  const owner = await stage.invite('rob')
  const made = await must(owner.ask('POST', keys, { metadata: { name: 'brief' }, spec: { ttl: 1 } }))
  await soon('it expires', () => expired(made.spec.key))
  const fresh = await must(owner.ask('POST', `${keys}/brief/rotate`, { spec: { overlapSeconds: 3600 } }))
  assert.equal(fresh.status.keys, undefined)
  await refused(stage.person('rob', made.spec.key).ask('GET', '/api'), 401, /rotated/)
})

test('the username of a team is pinned if it was written before the team existed', async () => {
  const { admin } = stage
  const spec = { access: [{ verbs: ['get'], users: ['platform:team:ghost'] }] }
  await must(admin.ask('POST', secrets(), { metadata: { name: 'by-username' }, spec }))
  await must(admin.ask('POST', teams, { metadata: { name: 'ghost' } }))
  await soon('it is pinned', async () => {
    const { metadata } = await must(admin.ask('GET', `${secrets()}/by-username`))
    return metadata.annotations?.['platform.sh/team-uids'] !== undefined
  })
  await must(admin.ask('DELETE', `${teams}/ghost`))
  await must(admin.ask('POST', teams, { metadata: { name: 'ghost' } }))
  const key = await must(admin.ask('POST', keys, { spec: { team: 'ghost' } }))
  await refused(stage.person('ghost', key.spec.key).ask('GET', `${secrets()}/by-username`), 403)
})

test('a member cannot create a key for permissions that only the username of the team has', async () => {
  const { admin } = stage
  const bob = await stage.invite('bob')
  await must(admin.ask('POST', teams, { metadata: { name: 'tt' }, spec: { users: ['bob'], owner: { user: 'bob' } } }))
  const spec = { access: [{ verbs: ['get'], users: ['platform:team:tt'] }] }
  await must(admin.ask('POST', secrets(), { metadata: { name: 'only-key' }, spec }))
  await refused(bob.ask('GET', `${secrets()}/only-key`), 403)
  await refused(bob.ask('POST', keys, { spec: { team: 'tt' } }), 403)
})

test('the owner of an object does not match all users', async () => {
  await refused(
    stage.admin.ask('POST', secrets(), { metadata: { name: 'everybodys' }, spec: { owner: { user: '*' } } }),
    422,
    /spec\.owner\.user/,
  )
})

test('the verb patch without get reveals nothing', async () => {
  const { admin } = stage
  const pat = await someone('pat', [rule(['patch'], ['teams', 'sharedsecrets'])])
  await must(
    admin.ask('POST', teams, { metadata: { name: 'quiet' }, spec: { description: 'merger', users: ['alice'] } }),
  )
  const patch = (...operations: object[]) => pat.ask('PATCH', `${teams}/quiet?dryRun=All`, operations, json)
  await refused(patch({ op: 'copy', from: '/spec/description', path: '/metadata/labels' }), 422)
  await refused(patch({ op: 'move', from: '/spec/users', path: '/metadata/finalizers' }), 422)
  const guess = async (value: string) => (await patch({ op: 'test', path: '/spec/users/0', value })).text
  assert.equal(await guess('alice'), await guess('bob'))
  const answer = await must(pat.ask('PATCH', `${teams}/quiet`, { metadata: { labels: { a: 'b' } } }, merge))
  assert.equal(answer.metadata.managedFields, undefined)
  assert.equal(JSON.stringify(answer).includes('alice'), false)
})

test('a denial names no object that its caller may not see', async () => {
  const { admin } = stage
  const tom = await someone('tom', [rule(['create'], ['teams'])])
  const spec = { access: [{ verbs: ['get'], teams: ['fresh'] }] }
  await must(admin.ask('POST', secrets(), { metadata: { name: 'top-secret-merger' }, spec }))
  const { status, text } = await tom.ask('POST', `${teams}?dryRun=All`, { metadata: { name: 'fresh' } })
  assert.equal(status, 403)
  assert.equal(text.includes('top-secret-merger'), false)
})

test('a misplaced restriction is an error', async () => {
  const { admin } = stage
  for (const body of [{ scope: { clusters: [{ cluster: 'x' }] } }, { Spec: { ttl: 60 } }, { spec: {}, ttl: 60 }])
    await refused(admin.ask('POST', `${keys}?fieldValidation=Ignore`, body), 422, /unknown field/)
  await refused(
    admin.ask('POST', `${ours}/directclusterendpointtokens`, { scope: { clusters: [] } }),
    422,
    /unknown field/,
  )
  await must(admin.ask('POST', secrets(), { metadata: { name: 'kept' } }))
  await refused(admin.ask('DELETE', `${secrets()}/kept`, { preconditions: { UID: 'bogus' } }), 400, /preconditions/)
  await must(admin.ask('GET', `${secrets()}/kept`))
})

test('a scoped key of an administrator cannot create a key with a longer lifetime', async () => {
  const scope = { rules: [{ resources: [{ group, resources: ['ownedaccesskeys'] }] }] }
  const { spec } = await must(stage.admin.ask('POST', keys, { spec: { ttl: 600, scope } }))
  await refused(stage.person('admin', spec.key).ask('POST', keys, { spec: { scope } }), 403, /ttl/)
})
