// Findings of the sixth security review: writes that were checked with one state and committed with another.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { eventually } from '../support/wire.ts'
import { group, openPeople, ours, type People, rbac, secrets } from './direct-people.ts'

const many = (count: number, prefix: string) => Array.from({ length: count }, (_, at) => `${prefix}${at}`)
const turns = async (count: number) => {
  for (let turn = 0; turn < count; turn++) await new Promise(setImmediate)
}

/** Makes the comparison with the permissions of a team take many turns of the event loop. */
async function growTeam(ask: People['admin'] | ReturnType<People['person']>, team: string): Promise<void> {
  const access = [{ verbs: many(100, 'verb'), subresources: many(199, 'sub'), teams: [team] }]
  for (const name of many(9, `${team}-`)) await ask('POST', secrets, { metadata: { name }, spec: { access } })
}

test('a patch that is retried after a conflict copies nothing that its caller may not get', async t => {
  const server = await openPeople()
  const { promise, resolve: release } = Promise.withResolvers<void>()
  t.after(() => {
    release()
    return server.close()
  })
  const mallory = await server.invite('mallory')
  await server.allow('mallory', { verbs: ['patch'], apiGroups: [group], resources: ['sharedsecrets'] })
  await server.admin('POST', secrets, {
    metadata: { name: 'app', annotations: { a: 'b' } },
    spec: { data: { pw: 'b2xk' }, access: [{ verbs: ['get'], users: ['mallory'] }] },
  })
  // The server generates a role and a binding, and no longer writes then.
  await eventually('the secret is settled', async () => {
    const app = await server.admin('GET', `${secrets}/app`)
    return JSON.stringify(app).includes('"status":"True","type":"Ready"')
  })
  server.disk.held = promise
  const changed = server.admin('PATCH', `${secrets}/app`, { spec: { access: [], data: { pw: 'bmV3' } } })
  await eventually('the change waits for the disk', async () => server.disk.waiting === 1)
  const copy = [{ op: 'copy', from: '/spec/data/pw', path: '/metadata/annotations/leak' }]
  const leaking = mallory.ask('PATCH', `${secrets}/app`, copy, 'application/json-patch+json')
  await eventually('the patch waits for the disk', async () => server.disk.waiting === 2)
  release()
  await changed
  const { code } = await leaking
  assert.equal(code, 422)
  const { metadata } = await server.admin('GET', `${secrets}/app`)
  assert.equal(metadata.annotations?.['leak'], undefined)
})

describe('permissions that change while a long check runs', () => {
  test('a key of a team that is created again is not a key of the new team', async t => {
    const server = await openPeople()
    t.after(server.close)
    const mallory = await server.invite('mallory')
    await server.allow(
      'mallory',
      { verbs: ['create'], apiGroups: [group], resources: ['sharedsecrets'] },
      { verbs: ['get', 'update'], apiGroups: [group], resources: ['teams'] },
    )
    await server.admin('POST', `${rbac}/clusterroles`, {
      metadata: { name: 'power' },
      rules: [{ verbs: ['get'], apiGroups: [group], resources: ['sharedsecrets'] }],
    })
    await server.admin('POST', secrets, { metadata: { name: 'hidden' }, spec: { data: { pw: 'dG9wIQ==' } } })
    await server.admin('POST', `${ours}/teams`, { metadata: { name: 'crew' } })
    await growTeam(mallory.ask, 'crew')
    const running = mallory.ask('POST', `${ours}/ownedaccesskeys`, { spec: { team: 'crew' } })
    await turns(3)
    await server.admin('DELETE', `${ours}/teams/crew`)
    await server.admin('POST', `${ours}/teams`, {
      metadata: { name: 'crew' },
      spec: { clusterRoles: [{ name: 'power' }] },
    })
    const { code, body } = await running
    if (code === 201) {
      const read = await server.person(body.spec.key)('GET', `${secrets}/hidden`)
      assert.notEqual(read.code, 200)
    } else assert.ok([403, 409, 422].includes(code), `${code}`)
  })

  for (const [what, change] of Object.entries({
    'leaves the team that owns it': ['PATCH', 'teams/managers', { spec: { users: [] } }],
    'has a disabled key': ['PATCH', 'ownedaccesskeys/mallory', { spec: { disabled: true } }],
  } as const))
    for (const [wish, request, isGranted] of [
      [
        'creates no key of a team',
        ['POST', 'ownedaccesskeys', { spec: { team: 'crew' } }],
        async (server: People) =>
          (await server.admin('GET', `${ours}/ownedaccesskeys`)).items.some(
            ({ metadata }) => !/^(admin|mallory)$/.test(metadata.name),
          ),
      ],
      [
        'does not join a team',
        ['PATCH', 'teams/crew', { spec: { users: ['mallory'] } }],
        async (server: People) =>
          JSON.stringify((await server.admin('GET', `${ours}/teams/crew`)).spec).includes('mallory'),
      ],
    ] as const)
      test(`a user who ${what} ${wish}`, async t => {
        const server = await openPeople()
        t.after(server.close)
        const mallory = await server.invite('mallory')
        await server.allow('mallory', { verbs: ['create'], apiGroups: [group], resources: ['sharedsecrets'] })
        await server.admin('POST', `${ours}/teams`, { metadata: { name: 'managers' }, spec: { users: ['mallory'] } })
        await server.admin('POST', `${ours}/teams`, {
          metadata: { name: 'crew' },
          spec: { owner: { team: 'managers' } },
        })
        await growTeam(mallory.ask, 'crew')
        const running = mallory.ask(request[0], `${ours}/${request[1]}`, request[2])
        await turns(3)
        await server.admin(change[0], `${ours}/${change[1]}`, change[2])
        const { code } = await running
        assert.ok([401, 403, 409].includes(code), `${code}`)
        assert.equal(await isGranted(server), false)
      })

  test('a user without roles binds none', async t => {
    const server = await openPeople()
    t.after(server.close)
    const mallory = await server.invite('mallory')
    const names = many(900, 'n')
    const rule = (verbs: string[]) => ({
      verbs,
      apiGroups: [group],
      resources: ['sharedsecrets'],
      resourceNames: names,
    })
    const bindings = { apiGroups: ['rbac.authorization.k8s.io'], resources: ['rolebindings'] }
    await server.allow('mallory', { verbs: ['create'], ...bindings }, rule(many(50, 'one')), rule(many(50, 'other')))
    await server.admin('POST', `${rbac}/namespaces/default/roles`, {
      metadata: { name: 'mixed' },
      rules: [rule([...many(50, 'one'), ...many(50, 'other')])],
    })
    const roleRef = { kind: 'Role', name: 'mixed' }
    const running = mallory.ask('POST', `${rbac}/namespaces/default/rolebindings`, {
      metadata: { name: 'late' },
      roleRef,
      subjects: [{ kind: 'User', name: 'other' }],
    })
    await turns(3)
    await server.admin('DELETE', `${rbac}/clusterrolebindings/role-of-mallory`)
    const { code } = await running
    assert.ok([403, 409].includes(code), `${code}`)
    const { items } = await server.admin('GET', `${rbac}/namespaces/default/rolebindings`)
    assert.deepEqual(
      items.filter(({ metadata }) => metadata.name === 'late'),
      [],
    )
  })
})

test('a secret follows its source for a team that was created again only if the author may read the source', async t => {
  const server = await openPeople()
  t.after(server.close)
  const mallory = await server.invite('mallory')
  const copies = `${ours}/namespaces/p-shop/projectsecrets`
  const shared = (uid: string) => ({ verbs: ['get'], teams: [uid] })
  await server.admin('POST', `${ours}/teams`, { metadata: { name: 'crew' }, spec: { owner: { user: 'admin' } } })
  await server.admin('POST', secrets, {
    metadata: { name: 'source' },
    spec: { data: { pw: 'b2xk' }, access: [shared('crew')] },
  })
  await server.admin('POST', copies, {
    metadata: { name: 'copy' },
    spec: {
      sharedSecretRef: { name: 'source', namespace: 'default' },
      owner: { team: 'crew' },
      access: [{ verbs: ['*'], subresources: ['*'], users: ['mallory'] }],
    },
  })
  const copied = async () => (await server.admin('GET', `${copies}/copy`)).spec.data?.['pw']
  await eventually('the data is copied', async () => (await copied()) === 'b2xk')
  await server.admin('DELETE', `${ours}/teams/crew`)
  await server.admin('POST', `${ours}/teams`, { metadata: { name: 'crew' }, spec: { owner: { user: 'mallory' } } })
  // Names the new team.
  await server.admin('PATCH', `${secrets}/source`, { spec: { data: { pw: 'bmV3' }, access: [] } })
  await server.admin('PATCH', `${secrets}/source`, { spec: { access: [shared('crew')] } })
  assert.equal((await mallory.ask('GET', `${secrets}/source`)).code, 403)
  const { code } = await mallory.ask('PATCH', `${copies}/copy`, { metadata: { labels: { x: 'y' } } })
  assert.equal(code, 200)
  // The controller has seen the write once it has also copied to this one.
  await server.admin('POST', copies, {
    metadata: { name: 'later' },
    spec: { sharedSecretRef: { name: 'source', namespace: 'default' }, owner: { user: 'admin' } },
  })
  await eventually('the other secret has the data', async () => {
    const { spec } = await server.admin('GET', `${copies}/later`)
    return spec.data?.['pw'] === 'bmV3'
  })
  assert.equal(await copied(), 'b2xk')
})

test('a token does not wait for the checks of other requests', async t => {
  const server = await openPeople()
  t.after(server.close)
  const [mallory, bob] = [await server.invite('mallory'), await server.invite('bob')]
  await server.allow('mallory', { verbs: ['create'], apiGroups: [group], resources: ['sharedsecrets'] })
  await server.admin('POST', `${ours}/teams`, { metadata: { name: 'crew' }, spec: { owner: { user: 'mallory' } } })
  await growTeam(mallory.ask, 'crew')
  const mint = () => bob.ask('POST', `${ours}/directclusterendpointtokens`, { spec: { ttl: 60 } })
  await eventually('the signing key exists', async () => (await mint()).code === 201)
  let isChecked = false
  const running = mallory
    .ask('PATCH', `${ours}/teams/crew?dryRun=All`, { spec: { users: ['someone'] } })
    .then(answer => {
      isChecked = true
      return answer
    })
  await turns(3)
  assert.equal((await mint()).code, 201)
  assert.equal(isChecked, false, 'the token came first')
  assert.equal((await running).code, 200)
})
