// The holes that a hostile review found, one test each: nobody gains what they were not given, keeps what was taken away,
// or destroys what belongs to others (D60–D62).

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { keys, must, openStage, ours, type Person, rbac, refused, type Stage, secrets, soon, teams } from './people.ts'

const api = 'rbac.authorization.k8s.io'
const group = 'management.platform.sh'
const types = {
  merge: { 'content-type': 'application/merge-patch+json' },
  json: { 'content-type': 'application/json-patch+json' },
  apply: { 'content-type': 'application/apply-patch+yaml' },
  strategic: { 'content-type': 'application/strategic-merge-patch+json' },
}
const roles = `${rbac}/clusterroles`
const bindings = `${rbac}/clusterrolebindings`
const projectSecrets = `${ours}/namespaces/p-shop/projectsecrets`

let stage: Stage
before(async () => {
  stage = await openStage()
})
after(() => stage.close())

/** Somebody with a key, and with these rules through a role of their own. */
async function someone(name: string, rules: readonly object[], spec: object = {}): Promise<Person> {
  const { admin } = stage
  await must(admin.ask('POST', roles, { metadata: { name: `of-${name}` }, rules }))
  await bind(`of-${name}`, `of-${name}`, 'User', name)
  return stage.invite(name, spec)
}
const bind = (name: string, role: string, kind: 'User' | 'Group', subject: string) =>
  must(
    stage.admin.ask('POST', bindings, {
      metadata: { name },
      roleRef: { apiGroup: api, kind: 'ClusterRole', name: role },
      subjects: [{ apiGroup: api, kind, name: subject }],
    }),
  )
const mayWrite = (resources: readonly string[], apiGroup = group) => ({
  verbs: ['create', 'get', 'list', 'update', 'patch', 'delete'],
  apiGroups: [apiGroup],
  resources,
})

describe('E1: every write checks all rules of roles and bindings', () => {
  let mallory: Person
  before(async () => {
    const { admin } = stage
    mallory = await someone('e1', [mayWrite(['clusterroles', 'clusterrolebindings', 'roles', 'rolebindings'], api)])
    await must(
      admin.ask('POST', roles, {
        metadata: { name: 'e1-sum' },
        aggregationRule: { clusterRoleSelectors: [{ matchLabels: { sum: 'e1' } }] },
      }),
    )
    await bind('e1-sum', 'e1-sum', 'User', 'e1')
    const rules = [{ verbs: ['get'], apiGroups: [group], resources: ['sharedsecrets'] }]
    await must(admin.ask('POST', roles, { metadata: { name: 'e1-strong' }, rules }))
    await must(
      admin.ask('POST', `${rbac}/namespaces/default/roles`, {
        metadata: { name: 'e1-strong', namespace: 'default' },
        rules,
      }),
    )
    await bind('e1-others', 'e1-strong', 'User', 'somebody')
  })

  const labelled = { metadata: { labels: { sum: 'e1' } } }
  const bodies: { readonly [type in keyof typeof types]: (kind: string, name: string) => unknown } = {
    merge: () => labelled,
    strategic: () => labelled,
    json: () => [{ op: 'add', path: '/metadata/labels', value: { sum: 'e1' } }],
    apply: (kind, name) => ({ apiVersion: `${api}/v1`, kind, metadata: { name, ...labelled.metadata } }),
  }
  for (const [type, body] of Object.entries(bodies) as [keyof typeof types, (kind: string, name: string) => unknown][])
    test(`a label by ${type} patch on a role whose permissions the caller lacks`, async () => {
      const query = type === 'apply' ? '?fieldManager=e1&force=true' : ''
      for (const name of ['platform-admin', 'e1-strong'])
        await refused(mallory.ask('PATCH', `${roles}/${name}${query}`, body('ClusterRole', name), types[type]), 403)
      await refused(
        mallory.ask(
          'PATCH',
          `${rbac}/namespaces/default/roles/e1-strong${query}`,
          body('Role', 'e1-strong'),
          types[type],
        ),
        403,
      )
      await refused(
        mallory.ask('PATCH', `${bindings}/e1-others${query}`, body('ClusterRoleBinding', 'e1-others'), types[type]),
        403,
      )
      await refused(mallory.ask('GET', `${secrets()}/anything`), 403)
    })

  test('a label by replacing the role', async () => {
    for (const name of ['platform-admin', 'e1-strong']) {
      const role = await must(stage.admin.ask('GET', `${roles}/${name}`))
      role.metadata.labels = { ...role.metadata.labels, sum: 'e1' }
      await refused(mallory.ask('PUT', `${roles}/${name}`, role), 403)
    }
  })

  test('an annotation on an aggregated role requires the aggregated permissions', async () => {
    await refused(mallory.ask('PATCH', `${roles}/e1-sum`, { metadata: { annotations: { a: 'b' } } }, types.merge), 403)
  })

  test('callers with the permissions of a role may label it', async () => {
    await must(stage.admin.ask('PATCH', `${roles}/of-e1`, { metadata: { annotations: { a: 'b' } } }, types.merge))
    await must(mallory.ask('PATCH', `${roles}/of-e1`, { metadata: { annotations: { a: 'c' } } }, types.merge))
  })

  test('a change of only finalizers or owner references lets the garbage collector finish', async () => {
    await must(stage.admin.ask('PATCH', `${roles}/e1-strong`, { metadata: { finalizers: ['x.io/hold'] } }, types.merge))
    await must(mallory.ask('PATCH', `${roles}/e1-strong`, { metadata: { finalizers: null } }, types.merge))
  })

  test('users cannot change labels, rules and owners of a built-in role or binding, or create one', async () => {
    const { admin } = stage
    const owner = { apiVersion: `${api}/v1`, kind: 'ClusterRole', name: 'of-e1', uid: 'x' }
    for (const body of [
      { metadata: { labels: { sum: 'e1' } } },
      { rules: [] },
      { aggregationRule: { clusterRoleSelectors: [{ matchLabels: { a: 'b' } }] } },
      { metadata: { ownerReferences: [owner] } },
    ])
      await refused(admin.ask('PATCH', `${roles}/platform-viewer`, body, types.merge), 403, /built-in/)
    for (const body of [{ metadata: { labels: { a: 'b' } } }, { subjects: [] }])
      await refused(admin.ask('PATCH', `${bindings}/platform-admin`, body, types.merge), 403, /built-in/)
    await must(admin.ask('PATCH', `${roles}/platform-viewer`, { metadata: { annotations: { a: 'b' } } }, types.merge))
    await refused(admin.ask('DELETE', `${roles}/platform-viewer`), 403, /built-in/)
  })
})

test('a terminating role or binding grants nothing, whatever its finalizers', async () => {
  const { admin } = stage
  const rule = { verbs: ['list'], apiGroups: [group], resources: ['teams'] }
  const eve = await someone('held-eve', [rule])
  const dan = await someone('held-dan', [rule])
  const allowed = async (who: Person) => {
    const review = { spec: { resourceAttributes: { verb: 'list', group, resource: 'teams' } } }
    const { status } = await must(who.ask('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', review))
    return status.allowed
  }
  for (const path of [`${bindings}/of-held-eve`, `${roles}/of-held-dan`]) {
    await must(admin.ask('PATCH', path, { metadata: { finalizers: ['x.io/hold'] } }, types.merge))
    await must(admin.ask('DELETE', path))
  }
  assert.deepEqual([await allowed(eve), await allowed(dan)], [false, false])
})

test('E2: no key, rotation or token is issued while impersonating, and no key is strengthened', async () => {
  const { admin } = stage
  const mallory = await someone('e2', [
    { verbs: ['impersonate'], apiGroups: [''], resources: ['users'], resourceNames: ['e2-ada'] },
  ])
  const ada = await stage.invite('e2-ada')
  const own = await must(ada.ask('POST', keys, { metadata: { name: 'e2-own' }, spec: { ttl: 3600, disabled: true } }))
  const as = { 'impersonate-user': 'e2-ada' }
  await refused(mallory.ask('POST', keys, { spec: {} }, as), 403, /impersonat/)
  await refused(mallory.ask('POST', `${keys}?dryRun=All`, { spec: {} }, as), 403, /impersonat/)
  await refused(mallory.ask('POST', `${keys}/e2-own/rotate`, {}, as), 403, /impersonat/)
  await refused(mallory.ask('POST', `${ours}/directclusterendpointtokens`, { spec: {} }, as), 403)
  for (const spec of [{ ttl: 7200 }, { disabled: false }])
    await refused(mallory.ask('PATCH', `${keys}/e2-own`, { spec }, { ...types.merge, ...as }), 403, /impersonat/)
  await refused(admin.ask('POST', keys, { spec: {} }, as), 403, /impersonat/)
  await must(mallory.ask('PATCH', `${keys}/e2-own`, { spec: { displayName: 'x' } }, { ...types.merge, ...as }))
  assert.ok(own.spec.key)
})

test('E3: rotating or enabling a key requires the permissions of the key, extra groups included', async () => {
  const { admin } = stage
  const mallory = await stage.invite('e3')
  await must(admin.ask('POST', teams, { metadata: { name: 'e3' }, spec: { owner: { user: 'e3' }, users: ['e3'] } }))
  await bind('e3-strong', 'platform-admin', 'Group', 'e3-strong')
  const spec = { team: 'e3', groups: ['e3-strong'] }
  await must(admin.ask('POST', keys, { metadata: { name: 'e3-strong' }, spec }))
  await must(admin.ask('POST', keys, { metadata: { name: 'e3-off' }, spec: { ...spec, disabled: true } }))
  await refused(mallory.ask('POST', `${keys}/e3-strong/rotate`, {}), 403, /e3-strong/)
  await refused(mallory.ask('PATCH', `${keys}/e3-off`, { spec: { disabled: false } }, types.merge), 403, /e3-strong/)
  await must(mallory.ask('PATCH', `${keys}/e3-strong`, { spec: { disabled: true } }, types.merge))
  const plain = await must(mallory.ask('POST', keys, { spec: { team: 'e3' } }))
  await must(mallory.ask('POST', `${keys}/${plain.metadata.name}/rotate`, {}))
})

test('a member of a team cannot create a key of the team if more is bound to the username of its keys', async () => {
  const { admin } = stage
  const eve = await stage.invite('named-eve')
  await must(
    admin.ask('POST', teams, {
      metadata: { name: 'named' },
      spec: { owner: { user: 'named-eve' }, users: ['named-eve'] },
    }),
  )
  await must(eve.ask('POST', keys, { metadata: { name: 'named' }, spec: { team: 'named' } }))
  await bind('named', 'platform-admin', 'User', 'platform:team:named')
  await refused(eve.ask('POST', keys, { spec: { team: 'named' } }), 403, /not currently held/)
  await refused(eve.ask('POST', `${keys}/named/rotate`, {}), 403, /not currently held/)
})

describe('E4: only the server writes labels and annotations of platform.sh', () => {
  test('on every kind, in every way', async () => {
    const { admin } = stage
    const owned = await must(
      admin.ask('POST', teams, { metadata: { name: 'e4' }, spec: { access: [{ verbs: ['get'], users: ['x'] }] } }),
    )
    const mark = { 'platform.sh/mirrors': owned.metadata.uid }
    const made = (path: string, metadata: object, rest: object) => admin.ask('POST', path, { metadata, ...rest })
    for (const metadata of [{ labels: mark }, { annotations: mark }]) {
      await refused(made(roles, { name: 'e4-a', ...metadata }, { rules: [] }), 422, /platform\.sh\//)
      await refused(made(teams, { name: 'e4-a', ...metadata }, {}), 422, /platform\.sh\//)
      await refused(made(secrets(), { name: 'e4-a', ...metadata }, {}), 422, /platform\.sh\//)
      await refused(admin.ask('PATCH', `${roles}/of-e1`, { metadata }, types.merge), 422, /platform\.sh\//)
      await refused(admin.ask('PATCH', `${roles}/platform-admin`, { metadata }, types.merge), 422)
      await refused(
        admin.ask(
          'PATCH',
          `${teams}/e4?fieldManager=x`,
          { apiVersion: `${group}/v1`, kind: 'Team', metadata: { name: 'e4', ...metadata } },
          types.apply,
        ),
        422,
      )
    }
    await must(admin.ask('GET', `${roles}/platform-admin`))
  })

  test('a replace that omits labels of the server keeps them', async () => {
    const { admin } = stage
    const mirror = `${roles}/access:teams:e4:0`
    await soon('the mirror is there', async () => (await admin.ask('GET', mirror)).status === 200)
    const { metadata, ...role } = await must(admin.ask('GET', mirror))
    const { labels, ...bare } = metadata
    const replaced = await must(admin.ask('PUT', mirror, { ...role, metadata: bare }))
    assert.deepEqual(replaced.metadata.labels, labels)
    await must(admin.ask('PUT', mirror, { ...replaced, metadata: { ...replaced.metadata, annotations: { a: 'b' } } }))
  })
})

test('every verb on an object does not include its subresources, which an owner has', async () => {
  const { admin } = stage
  const eve = await stage.invite('owner-eve')
  const access = [{ verbs: ['*'], users: ['owner-eve'] }]
  await must(admin.ask('POST', secrets(), { metadata: { name: 'owned' }, spec: { access, data: { a: 'aGk=' } } }))
  const take = { spec: { owner: { user: 'owner-eve' } } }
  await refused(eve.ask('PATCH', `${secrets()}/owned`, take, types.merge), 403, /subresources/)
  await refused(eve.ask('GET', `${secrets()}/owned/history`), 403)
  const more = [{ verbs: ['*'], subresources: ['*'], users: ['owner-eve'] }]
  await must(admin.ask('PATCH', `${secrets()}/owned`, { spec: { access: more } }, types.merge))
  await must(eve.ask('PATCH', `${secrets()}/owned`, take, types.merge))
})

test('E5: a scoped key cannot change access, owners, members, roles or bindings', async () => {
  const { admin } = stage
  const ada = await someone('e5', [
    mayWrite(['projectsecrets', 'teams']),
    mayWrite(['clusterroles', 'clusterrolebindings'], api),
  ])
  await must(
    ada.ask('POST', projectSecrets, { metadata: { name: 'e5' }, spec: { access: [{ verbs: ['get'], users: ['a'] }] } }),
  )
  await must(ada.ask('POST', teams, { metadata: { name: 'e5' }, spec: { users: ['x'] } }))
  const scoped = async (scope: object) =>
    stage.person('e5', (await must(ada.ask('POST', keys, { spec: { scope } }))).spec.key)
  const inProject = await scoped({ projects: [{ project: 'shop' }] })
  const patch = (spec: object) => inProject.ask('PATCH', `${projectSecrets}/e5`, { spec }, types.merge)
  await refused(patch({ access: [{ verbs: ['*'], users: ['mallory'] }] }), 403, /scope/)
  await refused(patch({ access: [] }), 403, /scope/)
  await refused(patch({ owner: { user: 'mallory' } }), 403, /scope/)
  await must(patch({ displayName: 'fine', data: { a: 'aGk=' } }))
  await must(inProject.ask('POST', projectSecrets, { metadata: { name: 'e5-own' }, spec: { data: { a: 'aGk=' } } }))
  const access = [{ verbs: ['get'], users: ['mallory'] }]
  await refused(
    inProject.ask('POST', projectSecrets, { metadata: { name: 'e5-more' }, spec: { access } }),
    403,
    /scope/,
  )
  const everywhere = await scoped({ rules: [{ verbs: ['*'] }] })
  await refused(everywhere.ask('PATCH', `${teams}/e5`, { spec: { users: ['x', 'y'] } }, types.merge), 403, /scope/)
  await refused(everywhere.ask('PATCH', `${teams}/e5`, { spec: { users: [] } }, types.merge), 403, /scope/)
  await refused(everywhere.ask('POST', roles, { metadata: { name: 'e5-empty' }, rules: [] }), 403, /scope/)
  await must(everywhere.ask('PATCH', `${teams}/e5`, { spec: { displayName: 'fine' } }, types.merge))
  assert.equal((await must(admin.ask('GET', `${teams}/e5`))).spec.users.length, 1)
})

describe('E6: a recreated team is another team', () => {
  const again = async (name: string, spec: object = {}) => {
    await must(stage.admin.ask('DELETE', `${teams}/${name}`))
    await must(stage.admin.ask('POST', teams, { metadata: { name }, spec }))
  }

  test('keys of the old team stay invalid', async () => {
    const { admin } = stage
    await must(admin.ask('POST', teams, { metadata: { name: 'e6-keys' } }))
    const old = await must(admin.ask('POST', keys, { metadata: { name: 'e6-old' }, spec: { team: 'e6-keys' } }))
    const holder = stage.person('e6-keys', old.spec.key)
    await must(holder.ask('GET', '/api'))
    await again('e6-keys')
    await refused(holder.ask('GET', '/api'), 401, /team of the access key/)
    await must(admin.ask('PATCH', `${keys}/e6-old`, { spec: { displayName: 'x' } }, types.merge))
    await refused(holder.ask('GET', '/api'), 401)
    const fresh = await must(admin.ask('POST', `${keys}/e6-old/rotate`, {}))
    await must(stage.person('e6-keys', fresh.spec.key).ask('GET', '/api'))
    await refused(holder.ask('GET', '/api'), 401)
  })

  test('owner, access entries and bindings refer to the old team until somebody with permission names it again', async () => {
    const { admin } = stage
    const spec = { users: ['e6-eve'] }
    const eve = await stage.invite('e6-eve')
    await must(admin.ask('POST', teams, { metadata: { name: 'e6' }, spec }))
    await must(
      admin.ask('POST', secrets(), {
        metadata: { name: 'e6-owned' },
        spec: { owner: { team: 'e6' }, data: { a: 'aGk=' } },
      }),
    )
    await must(
      admin.ask('POST', secrets(), {
        metadata: { name: 'e6-shared' },
        spec: { access: [{ verbs: ['get'], teams: ['e6'] }], data: { a: 'aGk=' } },
      }),
    )
    await must(
      admin.ask('POST', secrets(), {
        metadata: { name: 'e6-named' },
        spec: { access: [{ verbs: ['get'], users: ['platform:team:e6'] }], data: { a: 'aGk=' } },
      }),
    )
    const { key: oldKey } = (await must(admin.ask('POST', keys, { spec: { team: 'e6' } }))).spec
    await must(stage.person('e6', oldKey).ask('GET', `${secrets()}/e6-named`))
    await bind('e6', 'platform-viewer-like', 'Group', 'platform:team:e6')
    await must(
      admin.ask('POST', roles, {
        metadata: { name: 'platform-viewer-like' },
        rules: [{ verbs: ['list'], apiGroups: [group], resources: ['teams'] }],
      }),
    )
    const tries = {
      owner: () => eve.ask('GET', `${secrets()}/e6-owned`),
      access: () => eve.ask('GET', `${secrets()}/e6-shared`),
      binding: () =>
        eve
          .ask('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
            spec: { resourceAttributes: { verb: 'list', group, resource: 'teams' } },
          })
          .then(answer => ({ ...answer, status: answer.body.status.allowed ? 200 : 403 })),
    }
    for (const ask of Object.values(tries)) assert.equal((await ask()).status, 200)
    await again('e6', spec)
    for (const [what, ask] of Object.entries(tries)) assert.equal((await ask()).status, 403, what)
    const { key: newKey } = (await must(admin.ask('POST', keys, { spec: { team: 'e6' } }))).spec
    await refused(stage.person('e6', newKey).ask('GET', `${secrets()}/e6-named`), 403)
    // Somebody without the rights touches them: nothing changes hands.
    const clerk = await someone('e6-clerk', [
      { verbs: ['get', 'patch'], apiGroups: [group], resources: ['sharedsecrets'] },
    ])
    await must(clerk.ask('PATCH', `${secrets()}/e6-owned`, { spec: { displayName: 'x' } }, types.merge))
    assert.equal((await tries.owner()).status, 403)
    const boxed = await must(admin.ask('POST', keys, { spec: { user: 'admin', scope: { rules: [{ verbs: ['*'] }] } } }))
    const scoped = stage.person('admin', boxed.spec.key)
    await must(scoped.ask('PATCH', `${secrets()}/e6-owned`, { spec: { displayName: 'y' } }, types.merge))
    assert.equal((await tries.owner()).status, 403)
    // The administrator writes the same words again: now they mean the new team.
    await must(admin.ask('PATCH', `${secrets()}/e6-owned`, { metadata: { labels: { a: 'b' } } }, types.merge))
    await must(admin.ask('PATCH', `${secrets()}/e6-shared`, { metadata: { labels: { a: 'b' } } }, types.merge))
    await must(admin.ask('PATCH', `${bindings}/e6`, { metadata: { labels: { a: 'b' } } }, types.merge))
    for (const [what, ask] of Object.entries(tries)) assert.equal((await ask()).status, 200, what)
  })

  test('references written before the team existed mean the first team of that name', async () => {
    const { admin } = stage
    const dan = await stage.invite('e6-dan')
    await must(
      admin.ask('POST', secrets(), {
        metadata: { name: 'e6-later' },
        spec: { access: [{ verbs: ['get'], teams: ['e6-later'] }], data: { a: 'aGk=' } },
      }),
    )
    const spec = { users: ['e6-dan'] }
    await must(admin.ask('POST', teams, { metadata: { name: 'e6-later' }, spec }))
    await must(dan.ask('GET', `${secrets()}/e6-later`))
    await soon('the team is pinned', async () => {
      const { metadata } = await must(admin.ask('GET', `${secrets()}/e6-later`))
      return metadata.annotations?.['platform.sh/team-uids'] !== undefined
    })
    await again('e6-later', spec)
    await refused(dan.ask('GET', `${secrets()}/e6-later`), 403)
  })

  test('a key for a missing team is rejected', async () => {
    await refused(stage.admin.ask('POST', keys, { spec: { team: 'e6-nobody' } }), 422, /spec\.team/)
  })
})

describe('E7: a key does not outlive the key that created it', () => {
  let ada: Person
  let short: Person
  before(async () => {
    ada = await stage.invite('e7')
    const made = await must(ada.ask('POST', keys, { metadata: { name: 'e7-short' }, spec: { ttl: 3600 } }))
    short = stage.person('e7', made.spec.key)
    await must(ada.ask('POST', keys, { metadata: { name: 'e7-long' }, spec: {} }))
    await must(ada.ask('POST', keys, { metadata: { name: 'e7-other' }, spec: { ttl: 600 } }))
  })

  test('creating', async () => {
    await refused(short.ask('POST', keys, { spec: {} }), 403, /ttl/)
    await refused(short.ask('POST', keys, { spec: { ttl: 7200 } }), 403, /ttl/)
    await refused(
      short.ask('POST', keys, { spec: { ttl: 600, ttlAfterLastActivity: true } }),
      403,
      /ttlAfterLastActivity/,
    )
    await must(short.ask('POST', keys, { spec: { ttl: 600 } }))
    await must(ada.ask('POST', keys, { spec: { ttl: 600, ttlAfterLastActivity: true } }))
  })

  test('rotating', async () => {
    await refused(short.ask('POST', `${keys}/e7-long/rotate`, {}), 403, /ttl/)
    await must(short.ask('POST', `${keys}/e7-other/rotate`, {}))
  })

  test('changing a lifetime', async () => {
    const patch = (name: string, spec: object) => short.ask('PATCH', `${keys}/${name}`, { spec }, types.merge)
    await refused(patch('e7-other', { ttl: null }), 403, /ttl/)
    await refused(patch('e7-other', { ttl: 86400 }), 403, /ttl/)
    await refused(patch('e7-other', { ttlAfterLastActivity: true }), 403, /ttlAfterLastActivity/)
    await must(patch('e7-other', { ttl: 300 }))
    await must(patch('e7-long', { displayName: 'x' }))
  })

  test('with the old secret of a rotated key, during the overlap', async () => {
    const made = await must(ada.ask('POST', keys, { metadata: { name: 'e7-rotated' }, spec: {} }))
    const before = stage.person('e7', made.spec.key)
    await must(ada.ask('POST', `${keys}/e7-rotated/rotate`, { spec: { overlapSeconds: 600 } }))
    await refused(before.ask('POST', keys, { spec: {} }), 403, /ttl/)
    await must(before.ask('POST', keys, { spec: { ttl: 60 } }))
  })

  test('administrators are exempt', async () => {
    const made = await must(stage.admin.ask('POST', keys, { spec: { ttl: 3600 } }))
    await must(stage.person('admin', made.spec.key).ask('POST', keys, { spec: {} }))
  })
})

test('E9: a recreated secret is not followed', async () => {
  const { admin } = stage
  const ada = await someone('e9', [mayWrite(['projectsecrets', 'sharedsecrets'])])
  const data = (text: string) => ({ a: Buffer.from(text).toString('base64') })
  const source = await must(admin.ask('POST', secrets(), { metadata: { name: 'e9' }, spec: { data: data('old') } }))
  const made = await must(
    ada.ask('POST', projectSecrets, { metadata: { name: 'e9' }, spec: { sharedSecretRef: { name: 'e9' } } }),
  )
  assert.equal(made.spec.sharedSecretRef.uid, source.metadata.uid)
  const now = async () => await must(ada.ask('GET', `${projectSecrets}/e9`))
  await soon('it follows', async () => (await now()).spec.data?.a === data('old').a)
  await must(admin.ask('DELETE', `${secrets()}/e9`))
  const other = await must(admin.ask('POST', secrets(), { metadata: { name: 'e9' }, spec: { data: data('new') } }))
  const synced = async () =>
    (await now()).status.conditions.find((one: { type: string }) => one.type === 'Synced') as {
      status: string
      reason: string
      message: string
    }
  await soon('it says so', async () => (await synced()).reason === 'SourceReplaced')
  assert.equal((await synced()).status, 'False')
  assert.match((await synced()).message, new RegExp(other.metadata.uid))
  assert.equal((await now()).spec.data.a, data('old').a)
  // An unrelated change does not follow it either; naming the new one does.
  await must(ada.ask('PATCH', `${projectSecrets}/e9`, { spec: { displayName: 'x' } }, types.merge))
  assert.equal((await now()).spec.data.a, data('old').a)
  const repin = (uid: string, who: Person) =>
    who.ask('PATCH', `${projectSecrets}/e9`, { spec: { sharedSecretRef: { uid } } }, types.merge)
  await refused(repin('8f14e45f-ceea-467f-a8b5-5c2b9f0a6d1e', ada), 422, /sharedSecretRef\.uid/)
  const clerk = await someone('e9-clerk', [mayWrite(['projectsecrets'])])
  await refused(repin(other.metadata.uid, clerk), 403)
  await must(repin(other.metadata.uid, ada))
  await soon('it follows the new one', async () => (await now()).spec.data.a === data('new').a)
})

describe('E11: a mistyped field whose absence means unrestricted', () => {
  const wrong = [
    { scope: { project: [{ project: 'shop' }] } },
    { scope: { projects: [{ projects: 'shop' }] } },
    { scope: { roles: [{ role: 'agent', project: ['shop'] }] } },
    { scope: { rules: [{ verb: ['get'] }] } },
    { scope: { rules: [{ resources: [{ group: '', resource: ['teams'] }] }] } },
    { scopes: { projects: [{ project: 'shop' }] } },
    { tttl: 60 },
  ]
  for (const spec of wrong)
    test(JSON.stringify(spec), async () => {
      const { admin } = stage
      const name = 'e11'
      for (const validation of ['', '?fieldValidation=Ignore', '?fieldValidation=Warn', '?fieldValidation=Strict']) {
        const and = validation ? `${validation}&` : '?'
        await refused(admin.ask('POST', `${keys}${validation}`, { spec }), 422, /unknown field/)
        await refused(
          admin.ask(
            'PATCH',
            `${keys}/${name}${and}fieldManager=x`,
            { apiVersion: `${group}/v1`, kind: 'OwnedAccessKey', metadata: { name }, spec },
            types.apply,
          ),
          422,
          /unknown field/,
        )
      }
      if ('scope' in spec)
        await refused(admin.ask('POST', `${ours}/directclusterendpointtokens?fieldValidation=Ignore`, { spec }), 422)
      const there = await must(admin.ask('POST', keys, { spec: { scope: { projects: [{ project: 'shop' }] } } }))
      const path = `${keys}/${there.metadata.name}?fieldValidation=Ignore`
      await refused(admin.ask('PATCH', path, { spec }, types.merge), 422, /unknown field/)
      const [[field = '', value] = []] = Object.entries(spec)
      await refused(admin.ask('PATCH', path, [{ op: 'add', path: `/spec/${field}`, value }], types.json), 422)
      await refused(
        admin.ask('PUT', path, { ...there, spec: { ...there.spec, key: undefined, ...spec } }),
        422,
        /unknown field/,
      )
    })

  test('rules of roles and selectors of aggregated roles', async () => {
    const { admin } = stage
    const rule = { verbs: ['get'], apiGroups: [group], resources: ['teams'] }
    for (const body of [
      { rules: [{ ...rule, resourceName: ['web'] }] },
      { aggregationRule: { clusterRoleSelectors: [{ matchLabel: { a: 'b' } }] } },
    ])
      await refused(
        admin.ask('POST', `${roles}?fieldValidation=Ignore`, { metadata: { name: 'e11' }, ...body }),
        422,
        /unknown field/,
      )
  })
})

test('R2: only administrators set the secret of a key, and a dry run does not reveal whether it is in use', async () => {
  const { admin } = stage
  const ada = await stage.invite('r2')
  const free = 'r2-'.padEnd(40, 'x')
  for (const key of [admin.key, free])
    for (const query of ['', '?dryRun=All'])
      await refused(ada.ask('POST', `${keys}${query}`, { spec: { key } }), 403, /spec\.key/)
  const own = await must(ada.ask('POST', keys, { spec: {} }))
  for (const key of [admin.key, free])
    await refused(ada.ask('PATCH', `${keys}/${own.metadata.name}`, { spec: { key } }, types.merge), 403, /spec\.key/)
  for (const key of [ada.key, free]) await must(admin.ask('POST', `${keys}?dryRun=All`, { spec: { key } }))
  await refused(admin.ask('POST', keys, { spec: { key: ada.key } }), 422, /in use/)
  await must(admin.ask('POST', keys, { spec: { key: free } }))
})
