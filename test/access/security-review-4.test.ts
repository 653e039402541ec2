// Findings of the fourth hostile review about access: status reads, owners of copies, scoped keys, conditions and mirrored roles.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { keys, must, openStage, ours, type Person, rbac, refused, type Stage, secrets, soon, teams } from './people.ts'

const group = 'management.platform.sh'
const merge = { 'content-type': 'application/merge-patch+json' }
const roles = `${rbac}/clusterroles`
const projectSecrets = (project: string) => `${ours}/namespaces/p-${project}/projectsecrets`
const encoded = (text: string) => Buffer.from(text).toString('base64')

let stage: Stage
let admin: Person
before(async () => {
  stage = await openStage()
  admin = stage.admin
})
after(() => stage.close())

const rule = (verbs: readonly string[], resources: readonly string[], apiGroup = group) => ({
  verbs,
  apiGroups: [apiGroup],
  resources,
})
async function bind(name: string, rules: readonly object[], namespace?: string): Promise<void> {
  const base = namespace ? `${rbac}/namespaces/${namespace}` : rbac
  const [role, binding, kind] = namespace
    ? ['roles', 'rolebindings', 'Role']
    : ['clusterroles', 'clusterrolebindings', 'ClusterRole']
  await must(admin.ask('POST', `${base}/${role}`, { metadata: { name: `of-${name}` }, rules }))
  await must(
    admin.ask('POST', `${base}/${binding}`, {
      metadata: { name: `of-${name}` },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind, name: `of-${name}` },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name }],
    }),
  )
}
const patch = (who: Person, path: string, body: object) => who.ask('PATCH', path, body, merge)

test('get on the status subresource shows metadata and status, not the secret', async () => {
  const canary = encoded('canary-status')
  await must(admin.ask('POST', secrets(), { metadata: { name: 'watched' }, spec: { data: { p: canary } } }))
  await must(admin.ask('POST', projectSecrets('watched'), { metadata: { name: 'own' }, spec: { data: { p: canary } } }))
  await bind('monitor', [rule(['get'], ['*/status'])])
  const monitor = await stage.invite('monitor')
  for (const path of [`${secrets()}/watched`, `${projectSecrets('watched')}/own`]) {
    await refused(monitor.ask('GET', path), 403)
    const table = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' }
    const answers = [
      await monitor.ask('GET', `${path}/status`),
      await monitor.ask('GET', `${path}/status?includeObject=Object`, undefined, table),
    ]
    for (const { status, text } of answers) {
      assert.equal(status, 200)
      assert.doesNotMatch(text, /"spec"/)
      assert.ok(!text.includes(canary))
    }
  }
  const scope = { rules: [{ verbs: ['get'], resources: [{ group, resources: ['sharedsecrets/status'] }] }] }
  const scoped = stage.person('admin', (await must(admin.ask('POST', keys, { spec: { scope } }))).spec.key)
  await refused(scoped.ask('GET', `${secrets()}/watched`), 403)
  const { text } = await scoped.ask('GET', `${secrets()}/watched/status`)
  assert.ok(!text.includes(canary))
  const own = await must(admin.ask('GET', `${secrets()}/watched/status`))
  assert.deepEqual(own.spec.data, { p: canary }, 'a caller with get sees the whole object, as in Kubernetes')
})

test('a reader cannot keep a copy in sync in the name of another user', async () => {
  const leaver = await stage.invite('leaver')
  await bind('leaver', [rule(['create'], ['projectsecrets'])], 'p-leave')
  await must(admin.ask('POST', teams, { metadata: { name: 'ops' }, spec: { users: ['leaver', 'grace'] } }))
  const access = [{ verbs: ['get'], teams: ['ops'] }]
  await must(
    admin.ask('POST', secrets(), { metadata: { name: 'opskey' }, spec: { data: { p: encoded('one') }, access } }),
  )
  const all = [{ verbs: ['*'], subresources: ['*'], users: ['leaver'] }]
  const reference = { sharedSecretRef: { name: 'opskey' } }
  await must(leaver.ask('POST', projectSecrets('leave'), { metadata: { name: 'k' }, spec: { access: all } }))
  const copy = `${projectSecrets('leave')}/k`
  for (const user of ['grace', 'admin'])
    await refused(patch(leaver, copy, { spec: { owner: { user }, ...reference } }), 403, /impersonate/)
  // In two steps, in both orders.
  await must(patch(leaver, copy, { spec: reference }))
  await refused(patch(leaver, copy, { spec: { owner: { user: 'grace' } } }), 403, /impersonate/)
  await must(patch(leaver, copy, { spec: { sharedSecretRef: null } }))
  await must(patch(leaver, copy, { spec: { owner: { user: 'grace' } } }))
  await refused(patch(leaver, copy, { spec: reference }), 403, /impersonate/)
  await must(patch(admin, copy, { spec: reference }))
  await soon('the owner of an administrator gets the data', async () => {
    const { spec } = await must(admin.ask('GET', copy))
    return spec.data?.p === encoded('one')
  })
})

test('a scoped key does not become the owner of an object without one', async () => {
  const { key } = (await must(admin.ask('POST', keys, { spec: { subject: 'machine' } }))).spec
  await bind('machine', [rule(['create'], ['projectsecrets'])], 'p-free')
  const machine = stage.person('machine', key)
  await must(machine.ask('POST', projectSecrets('free'), { metadata: { name: 'free' }, spec: {} }))
  const bob = await stage.invite('bob')
  await bind('bob', [rule(['*'], ['*'])], 'p-free')
  const made = await must(bob.ask('POST', keys, { spec: { scope: { projects: [{ project: 'free' }] } } }))
  const scoped = stage.person('bob', made.spec.key)
  const path = `${projectSecrets('free')}/free`
  await refused(patch(scoped, path, { spec: { owner: { user: 'bob' } } }), 403, /scope/)
  await must(scoped.ask('POST', projectSecrets('free'), { metadata: { name: 'made' }, spec: {} }))
})

test('the condition of a copy reveals nothing about a source that its owner may not get', async () => {
  const access = [{ verbs: ['get'], users: ['mallory'] }]
  const spec = { data: { p: encoded('one') } }
  await must(admin.ask('POST', secrets(), { metadata: { name: 'prod' }, spec: { ...spec, access } }))
  const mallory = await stage.invite('mallory')
  await bind('mallory', [rule(['create'], ['projectsecrets'])], 'p-mal')
  const own = { metadata: { name: 'k' }, spec: { sharedSecretRef: { name: 'prod' } } }
  await must(mallory.ask('POST', projectSecrets('mal'), own))
  const synced = async () => {
    const { status } = await must(mallory.ask('GET', `${projectSecrets('mal')}/k`))
    return status?.conditions?.find(({ type }: { type: string }) => type === 'Synced')
  }
  await soon('it is copied', async () => (await synced())?.reason === 'Copied')
  await must(admin.ask('DELETE', `${secrets()}/prod`))
  await soon('it is refused', async () => (await synced())?.reason === 'SourceForbidden')
  const missing = await synced()
  await must(admin.ask('POST', secrets(), { metadata: { name: 'prod' }, spec }))
  // The controller handles one object after the other: this one comes later.
  await must(admin.ask('POST', projectSecrets('mal'), { ...own, metadata: { name: 'later' } }))
  await soon('a later copy is created', async () => {
    const { status } = await must(admin.ask('GET', `${projectSecrets('mal')}/later`))
    return status?.conditions?.length > 0
  })
  assert.deepEqual(await synced(), missing)
})

test('access entries of any name become roles and bindings of their own', async () => {
  const names = ['a/b', '..', 'same', 'same', '0', '', 'ünïcode %2f', 'x'.repeat(400), 'a~2f~b']
  const access = names.map((name, at) => ({ name, verbs: ['get'], users: [`user-${at}`] }))
  const { metadata } = await must(admin.ask('POST', teams, { metadata: { name: 'mirrored' }, spec: { access } }))
  const labelled = `?labelSelector=${encodeURIComponent(`platform.sh/mirrors=${metadata.uid}`)}`
  await soon('every entry has a role and a binding', async () => {
    const made = await must(admin.ask('GET', `${roles}${labelled}`))
    const bound = await must(admin.ask('GET', `${rbac}/clusterrolebindings${labelled}`))
    return made.items.length === names.length && bound.items.length === names.length
  })
  const { items } = await must(admin.ask('GET', `${rbac}/clusterrolebindings${labelled}`))
  const bound = items.map((one: { subjects: { name: string }[] }) => one.subjects[0]?.name).toSorted()
  assert.deepEqual(bound, names.map((_, at) => `user-${at}`).toSorted())
  for (const { metadata: own } of items) {
    const { name } = own
    assert.ok(name.length <= 253, name)
    await must(admin.ask('GET', `${roles}/${encodeURIComponent(name)}`))
  }
})
