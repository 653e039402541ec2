// Tests the promises about access entries, conditions, warnings, owners, team usernames and pull secrets (D23, D26, D60, D61).

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { kinds } from '../../src/kinds/index.ts'
import type { Answer } from '../support/request.ts'
import { keys, must, openStage, ours, type Person, rbac, refused, type Stage, secrets, soon, teams } from './people.ts'

const projectSecrets = (project: string) => `${ours}/namespaces/p-${project}/projectsecrets`
const merge = { 'content-type': 'application/merge-patch+json' }
const json = { 'content-type': 'application/json-patch+json' }
const apply = { 'content-type': 'application/apply-patch+yaml' }
const data = { password: 'aHVudGVyMg==' }

let stage: Stage
let admin: Person
before(async () => {
  stage = await openStage()
  admin = stage.admin
})
after(() => stage.close())

type Condition = { readonly [field: string]: string }
const conditionsOf = (object: { status?: { conditions?: Condition[] } }) => object.status?.conditions ?? []
const conditionOf = (object: { status?: { conditions?: Condition[] } }, type: string) =>
  conditionsOf(object).find(one => one['type'] === type)
const get = (path: string) => must(admin.ask('GET', path))
const until = (path: string, type: string, status: string) =>
  soon(`${path} ${type}=${status}`, async () => conditionOf(await get(path), type)?.['status'] === status)
const warningOf = ({ headers }: Answer) => String(headers['warning'] ?? '')

type Mirror = { metadata: { name: string; uid: string; labels?: object; ownerReferences?: { uid: string }[] } }
/** The generated objects of an owner. */
async function mirrorsOf(path: string, uid: string): Promise<Mirror[]> {
  const { items } = (await get(path)) as { items: Mirror[] }
  return items.filter(({ metadata }) => metadata.ownerReferences?.some(one => one.uid === uid))
}
const roles = `${rbac}/namespaces/default/roles`
const bindings = `${rbac}/namespaces/default/rolebindings`

describe('access entries become roles and bindings (D26):', () => {
  const everyEntry = async (uid: string, count: number) =>
    soon(`${count} roles and bindings`, async () => {
      const found = [await mirrorsOf(roles, uid), await mirrorsOf(bindings, uid)]
      return found.every(list => list.length === count)
    })

  test('with duplicate, empty and odd names', async () => {
    const names = ['same', 'same', '', undefined, 'a/b', '100%', '..', 'ünï', 'x'.repeat(300), '~2f~', '0', 'same:1']
    const access = names.map(name => ({ ...(name === undefined ? {} : { name }), verbs: ['get'], users: ['eve'] }))
    const { metadata } = await must(admin.ask('POST', secrets(), { metadata: { name: 'odd' }, spec: { data, access } }))
    await everyEntry(metadata.uid, names.length)
  })

  test('with empty user names and subresources, many subjects, and none', async () => {
    const users = Array.from({ length: 250 }, (_, index) => `user-${index}`)
    const access = [
      { verbs: ['get'], users: ['', 'eve'], teams: [''], subresources: [''] },
      { name: 'many', verbs: ['get'], users },
      { name: 'nobody', verbs: ['get'] },
    ]
    const { metadata } = await must(
      admin.ask('POST', secrets(), { metadata: { name: 'crowd' }, spec: { data, access } }),
    )
    await until(`${secrets()}/crowd`, 'AccessApplied', 'True')
    assert.equal((await mirrorsOf(roles, metadata.uid)).length, 3)
    const found = (await mirrorsOf(bindings, metadata.uid)) as (Mirror & { subjects?: { name: string }[] })[]
    const subjects = new Set(found.flatMap(one => one.subjects ?? []).map(one => one.name))
    assert.equal(subjects.size, users.length + 1)
  })

  test('with many entries', async () => {
    const access = Array.from({ length: 240 }, (_, index) => ({
      name: `n${index % 7}`,
      verbs: ['get'],
      users: ['eve'],
    }))
    const { metadata } = await must(
      admin.ask('POST', secrets(), { metadata: { name: 'long' }, spec: { data, access } }),
    )
    await everyEntry(metadata.uid, 240)
  })

  test('although somebody else uses the name', async () => {
    const rules = [{ verbs: ['get'], apiGroups: [''], resources: ['namespaces'] }]
    await must(admin.ask('POST', roles, { metadata: { name: 'access:sharedsecrets:taken:read' }, rules }))
    const access = [{ name: 'read', verbs: ['get'], users: ['eve'] }]
    const { metadata } = await must(
      admin.ask('POST', secrets(), { metadata: { name: 'taken' }, spec: { data, access } }),
    )
    await everyEntry(metadata.uid, 1)
    assert.deepEqual((await get(`${roles}/access:sharedsecrets:taken:read`)).rules, rules)
  })

  test('and are restored after an edit or a deletion', async () => {
    const access = [{ name: 'read', verbs: ['get'], users: ['eve'] }]
    const { metadata } = await must(
      admin.ask('POST', secrets(), { metadata: { name: 'mended' }, spec: { data, access } }),
    )
    await everyEntry(metadata.uid, 1)
    const [role, binding] = [
      `${roles}/access:sharedsecrets:mended:read`,
      `${bindings}/access:sharedsecrets:mended:read`,
    ]
    const was = { role: await get(role), binding: await get(binding) }
    await must(admin.ask('PATCH', role, { rules: [] }, merge))
    await soon('the rules are back', async () => (await get(role)).rules?.length === 1)
    await must(admin.ask('PATCH', binding, { subjects: null }, merge))
    await soon('the subjects are back', async () => (await get(binding)).subjects?.[0]?.name === 'eve')
    await must(admin.ask('PATCH', binding, { metadata: { ownerReferences: null } }, merge))
    await soon('the owner is back', async () => (await get(binding)).metadata.ownerReferences?.length === 1)
    for (const [path, before] of [
      [role, was.role],
      [binding, was.binding],
    ] as const) {
      await must(admin.ask('DELETE', path))
      await soon(`${path} is back`, async () => {
        const { status, body } = await admin.ask('GET', path)
        return status === 200 && body.metadata.uid !== before.metadata.uid
      })
      assert.deepEqual((await get(path)).rules, before.rules)
    }
  })

  test('and obsolete ones are removed', async () => {
    const access = ['one', 'two'].map(name => ({ name, verbs: ['get'], users: ['eve'] }))
    const { metadata } = await must(
      admin.ask('POST', secrets(), { metadata: { name: 'shrinks' }, spec: { data, access } }),
    )
    await everyEntry(metadata.uid, 2)
    await must(admin.ask('PATCH', `${secrets()}/shrinks`, { spec: { access: access.slice(1) } }, merge))
    await everyEntry(metadata.uid, 1)
    await must(admin.ask('PATCH', `${secrets()}/shrinks`, { spec: { access: null } }, merge))
    await everyEntry(metadata.uid, 0)
  })
})

describe('conditions (D23):', () => {
  const created = async (path: string, body: object) => must(admin.ask('POST', path, body))

  test('a new object without access entries is Ready in the response to its create', async () => {
    for (const [path, body] of [
      [secrets(), { metadata: { name: 'plain' }, spec: { data } }],
      [projectSecrets('web'), { metadata: { name: 'plain' }, spec: { data } }],
      [teams, { metadata: { name: 'plain' }, spec: { users: ['eve'] } }],
    ] as const) {
      const object = await created(path, body)
      assert.equal(conditionOf(object, 'Ready')?.['status'], 'True', path)
      assert.equal(conditionOf(object, 'AccessApplied')?.['status'], 'True', path)
      assert.equal(conditionOf(object, 'RolesResolved')?.['status'], path === teams ? 'True' : undefined)
      assert.equal(object.status.observedGeneration, 1)
      const stored = await get(`${path}/plain`)
      assert.equal(stored.metadata.resourceVersion, object.metadata.resourceVersion)
      assert.deepEqual(stored.status, object.status)
    }
  })

  test('have the declared shape', async () => {
    const object = await created(secrets(), { metadata: { name: 'shape' }, spec: { data } })
    for (const { type, status, severity, lastTransitionTime, reason, message, ...others } of conditionsOf(object)) {
      assert.deepEqual(others, {})
      assert.match(`${type} ${status}`, /^(Ready|AccessApplied) True$/)
      assert.equal(severity, undefined, 'only conditions that are not True have a severity')
      assert.match(lastTransitionTime ?? '', /^\d{4}-.*Z$/)
      assert.match(reason ?? '', /^[A-Z]\w+$/)
      assert.equal(message, undefined, 'and only those have a message')
    }
  })

  test('follow a change: the generation at once, AccessApplied when the roles exist', async () => {
    await created(secrets(), { metadata: { name: 'moves' }, spec: { data } })
    const access = [{ verbs: ['get'], users: ['eve'] }]
    const changed = await must(admin.ask('PATCH', `${secrets()}/moves`, { spec: { access } }, merge))
    assert.equal(changed.metadata.generation, 2)
    assert.equal(changed.status.observedGeneration, 2)
    assert.notEqual(conditionOf(changed, 'AccessApplied')?.['status'], 'True')
    assert.notEqual(conditionOf(changed, 'Ready')?.['status'], 'True')
    await until(`${secrets()}/moves`, 'Ready', 'True')
    assert.equal((await mirrorsOf(bindings, changed.metadata.uid)).length, 1)
  })

  test('are written once: later states and a no-op write keep the resourceVersion', async () => {
    const access = [{ verbs: ['get'], users: ['eve'] }]
    await created(secrets(), { metadata: { name: 'calm' }, spec: { data, access } })
    await until(`${secrets()}/calm`, 'Ready', 'True')
    const calm = await get(`${secrets()}/calm`)
    // Another object passes all queues after it.
    await created(secrets(), { metadata: { name: 'later' }, spec: { data, access } })
    await until(`${secrets()}/later`, 'Ready', 'True')
    await must(admin.ask('PUT', `${secrets()}/calm`, calm))
    const same = await get(`${secrets()}/calm`)
    assert.equal(same.metadata.resourceVersion, calm.metadata.resourceVersion)
    const history = []
    const from = `${secrets()}?watch=true&fieldSelector=metadata.name=calm&resourceVersion=${calm.metadata.resourceVersion}`
    const watch = admin.watch(from)
    await must(admin.ask('PATCH', `${secrets()}/calm`, { spec: { description: 'new' } }, merge))
    for await (const { object } of watch) {
      history.push(object)
      break
    }
    assert.equal(history[0].spec.description, 'new')
    assert.equal(
      conditionOf(history[0], 'Ready')?.['status'],
      'True',
      'a change of the description keeps the conditions',
    )
    assert.equal(history[0].status.observedGeneration, 2)
  })

  test('RolesResolved of a team names the missing roles, and follows the roles', async () => {
    const team = `${teams}/resolves`
    const clusterRoles = [{ name: 'platform-viewer' }, { name: 'no-such-role' }, { name: 'neither' }]
    const object = await created(teams, { metadata: { name: 'resolves' }, spec: { clusterRoles } })
    const missing = conditionOf(object, 'RolesResolved')
    assert.equal(missing?.['status'], 'False')
    assert.match(missing?.['message'] ?? '', /no-such-role.*neither/)
    assert.doesNotMatch(missing?.['message'] ?? '', /platform-viewer/)
    assert.ok(missing?.['severity'])
    await until(team, 'AccessApplied', 'True')
    await until(team, 'Ready', 'False')
    const role = (name: string) => ({ metadata: { name }, rules: [] })
    await created(`${rbac}/clusterroles`, role('neither'))
    await soon('one role is missing', async () => {
      const message = conditionOf(await get(team), 'RolesResolved')?.['message'] ?? ''
      return /no-such-role/.test(message) && !/neither/.test(message)
    })
    await created(`${rbac}/clusterroles`, role('no-such-role'))
    await until(team, 'RolesResolved', 'True')
    await until(team, 'Ready', 'True')
    await must(admin.ask('DELETE', `${rbac}/clusterroles/neither`))
    await until(team, 'Ready', 'False')
  })

  test('a project secret is Ready when its copy is in sync', async () => {
    await created(secrets(), { metadata: { name: 'source' }, spec: { data } })
    const object = await created(projectSecrets('web'), {
      metadata: { name: 'copy' },
      spec: { sharedSecretRef: { name: 'source' } },
    })
    assert.notEqual(conditionOf(object, 'Ready')?.['status'], 'True', 'it has no data yet')
    await until(`${projectSecrets('web')}/copy`, 'Ready', 'True')
    await must(admin.ask('DELETE', `${secrets()}/source`))
    await until(`${projectSecrets('web')}/copy`, 'Ready', 'False')
    assert.equal(conditionOf(await get(`${projectSecrets('web')}/copy`), 'Synced')?.['status'], 'False')
  })

  test('a dry run that changes nothing changes no condition', async () => {
    const live = await get(`${teams}/plain`)
    const patched = await must(admin.ask('PATCH', `${teams}/plain?dryRun=All`, { spec: { users: ['eve'] } }, merge))
    assert.deepEqual(patched, live)
    assert.deepEqual(await must(admin.ask('PUT', `${teams}/plain?dryRun=All`, live)), live)
  })
})

describe('names that refer to nothing get a Warning:', () => {
  const spec = { data, owner: { team: 'ghost-owner' }, access: [{ verbs: ['get'], teams: ['ghost-reader'] }] }
  const names = /ghost-owner.*ghost-reader|ghost-reader.*ghost-owner/

  test('on create, update, patch, apply and dry run of a secret', async () => {
    const path = `${secrets()}/warned`
    const config = { apiVersion: 'management.platform.sh/v1', kind: 'SharedSecret', metadata: { name: 'warned' }, spec }
    assert.match(warningOf(await admin.ask('POST', `${secrets()}?dryRun=All`, config)), names)
    const made = await admin.ask('POST', secrets(), config)
    assert.equal(made.status, 201, made.text)
    assert.match(warningOf(made), names)
    // The controller of conditions may write between get and put.
    let put = await admin.ask('PUT', path, await get(path))
    while (put.status === 409) put = await admin.ask('PUT', path, await get(path))
    assert.match(warningOf(put), names)
    assert.match(warningOf(await admin.ask('PATCH', path, { spec: { description: 'x' } }, merge)), names)
    assert.match(warningOf(await admin.ask('PATCH', `${path}?fieldManager=a&force=true`, config, apply)), names)
    assert.match(
      warningOf(await admin.ask('PATCH', `${path}?fieldManager=a&force=true&dryRun=All`, config, apply)),
      names,
    )
  })

  test('for the pull secrets and roles of a team, and for teams in bindings', async () => {
    const imagePullSecrets = [{ kind: 'SharedSecret', secretName: 'ghost-pull', secretNamespace: 'default' }]
    const made = await admin.ask('POST', teams, { metadata: { name: 'warned' }, spec: { imagePullSecrets } })
    assert.equal(made.status, 201, made.text)
    assert.match(warningOf(made), /ghost-pull/)
    const binding = await admin.ask('POST', bindings, {
      metadata: { name: 'warned' },
      roleRef: { kind: 'ClusterRole', name: 'platform-viewer' },
      subjects: [{ kind: 'Group', name: 'platform:team:ghost-bound' }],
    })
    assert.match(warningOf(binding), /ghost-bound/)
  })

  test('for a project without any object', async () => {
    const imagePullSecrets = [{ kind: 'ProjectSecret', secretName: 'pull', secretNamespace: 'p-ghost-project' }]
    const made = await admin.ask('POST', teams, { metadata: { name: 'warned-2' }, spec: { imagePullSecrets } })
    assert.match(warningOf(made), /ghost-project/)
  })

  test('but not for names that the caller may not read', async () => {
    const ned = await stage.invite('ned')
    const access = [{ verbs: ['patch'], users: ['ned'], teams: ['ghost-unseen'] }]
    await must(admin.ask('POST', secrets(), { metadata: { name: 'unseen' }, spec: { data, access } }))
    const imagePullSecrets = [{ secretName: 'ghost-unseen' }]
    await must(admin.ask('POST', teams, { metadata: { name: 'unseen' }, spec: { access, imagePullSecrets } }))
    for (const path of [`${secrets()}/unseen`, `${teams}/unseen`]) {
      const answer = await ned.ask('PATCH', path, { spec: { description: 'x' } }, merge)
      assert.equal(answer.status, 200, answer.text)
      assert.equal(warningOf(answer), '')
    }
  })

  test('and names that exist get none', async () => {
    await must(admin.ask('POST', teams, { metadata: { name: 'known' } }))
    const made = await admin.ask('POST', secrets(), {
      metadata: { name: 'unwarned' },
      spec: { data, owner: { team: 'known' }, access: [{ verbs: ['get'], teams: ['known'], users: ['eve'] }] },
    })
    assert.equal(made.status, 201, made.text)
    assert.equal(warningOf(made), '')
  })
})

describe('a patch that sets one owner replaces the other (D23):', () => {
  const path = `${secrets()}/owned`
  const owner = async () => (await get(path)).spec.owner
  before(async () => {
    await must(admin.ask('POST', teams, { metadata: { name: 'owners' } }))
    await must(admin.ask('POST', secrets(), { metadata: { name: 'owned' }, spec: { data } }))
  })
  const config = (spec: object) => ({
    apiVersion: 'management.platform.sh/v1',
    kind: 'SharedSecret',
    metadata: { name: 'owned' },
    spec,
  })

  test('merge patch', async () => {
    await must(admin.ask('PATCH', path, { spec: { owner: { team: 'owners' } } }, merge))
    assert.deepEqual(await owner(), { team: 'owners' })
    await must(admin.ask('PATCH', path, { spec: { owner: { user: 'admin' } } }, merge))
    assert.deepEqual(await owner(), { user: 'admin' })
  })

  test('JSON Patch', async () => {
    await must(admin.ask('PATCH', path, [{ op: 'add', path: '/spec/owner/team', value: 'owners' }], json))
    assert.deepEqual(await owner(), { team: 'owners' })
    await must(admin.ask('PATCH', path, [{ op: 'add', path: '/spec/owner/user', value: 'admin' }], json))
    assert.deepEqual(await owner(), { user: 'admin' })
  })

  test('server-side apply, which leaves no field to its former manager', async () => {
    await must(admin.ask('PATCH', `${path}?fieldManager=a`, config({ owner: { team: 'owners' } }), apply))
    assert.deepEqual(await owner(), { team: 'owners' })
    const fields = JSON.stringify((await get(path)).metadata.managedFields)
    assert.ok(!fields.includes('f:user'), fields)
    await must(admin.ask('PATCH', `${path}?fieldManager=b`, config({ owner: { user: 'admin' } }), apply))
    assert.deepEqual(await owner(), { user: 'admin' })
  })

  test('a team and a project secret, too', async () => {
    await must(admin.ask('PATCH', `${teams}/owners`, { spec: { owner: { team: 'owners' } } }, merge))
    assert.deepEqual((await get(`${teams}/owners`)).spec.owner, { team: 'owners' })
    await must(admin.ask('POST', projectSecrets('web'), { metadata: { name: 'owned' }, spec: { data } }))
    const own = `${projectSecrets('web')}/owned`
    await must(admin.ask('PATCH', own, { spec: { owner: { team: 'owners' } } }, merge))
    assert.deepEqual((await get(own)).spec.owner, { team: 'owners' })
  })

  test('but two owners in one patch or update are 422', async () => {
    const both = { owner: { user: 'admin', team: 'owners' } }
    await refused(admin.ask('PATCH', path, { spec: both }, merge), 422)
    await refused(admin.ask('PATCH', `${path}?fieldManager=c`, config(both), apply), 422)
    await refused(admin.ask('PATCH', path, [{ op: 'replace', path: '/spec/owner', value: both.owner }], json), 422)
    const live = await get(path)
    await refused(admin.ask('PUT', path, { ...live, spec: { ...live.spec, ...both } }), 422)
  })

  test('and the new owner still passes the gate', async () => {
    const eve = await stage.invite('eve')
    const access = [{ verbs: ['get', 'patch', 'update'], users: ['eve'] }]
    await must(admin.ask('POST', secrets(), { metadata: { name: 'guarded' }, spec: { data, access } }))
    await refused(eve.ask('PATCH', `${secrets()}/guarded`, { spec: { owner: { team: 'owners' } } }, merge), 403)
  })
})

describe('the username of a team names it (D23):', () => {
  let member: Person
  before(async () => {
    await must(admin.ask('POST', teams, { metadata: { name: 'shop' }, spec: { username: 'store', users: ['mia'] } }))
    member = await stage.invite('mia')
  })
  const reads = (name: string) => member.ask('GET', `${secrets()}/${name}`)

  test('as owner, also of teams and project secrets', async () => {
    const made = await admin.ask('POST', secrets(), {
      metadata: { name: 'by-owner' },
      spec: { data, owner: { team: 'store' } },
    })
    assert.equal(made.status, 201, made.text)
    assert.match(warningOf(made), /is the username of the team/)
    await must(reads('by-owner'))
    await must(member.ask('PATCH', `${secrets()}/by-owner`, { spec: { description: 'x' } }, merge))
    const { items } = await must(member.ask('GET', secrets()))
    assert.deepEqual(
      items.map((one: Mirror) => one.metadata.name),
      ['by-owner'],
    )
    await must(admin.ask('POST', teams, { metadata: { name: 'sub' }, spec: { owner: { team: 'store' } } }))
    await must(member.ask('GET', `${teams}/sub`))
  })

  test('in access entries, also as user', async () => {
    const share = (name: string, access: object) =>
      must(
        admin.ask('POST', secrets(), { metadata: { name }, spec: { data, access: [{ verbs: ['get'], ...access }] } }),
      )
    await share('by-team', { teams: ['store'] })
    await must(reads('by-team'))
    const object = await share('by-user', { users: ['platform:team:store'] })
    await refused(reads('by-user'), 403)
    assert.deepEqual(object.spec.access[0].users, ['platform:team:shop'])
  })

  test('in bindings', async () => {
    const rules = [{ verbs: ['get'], apiGroups: ['management.platform.sh'], resources: ['projectsecrets'] }]
    await must(admin.ask('POST', `${rbac}/namespaces/p-shop/roles`, { metadata: { name: 'reader' }, rules }))
    await must(admin.ask('POST', projectSecrets('shop'), { metadata: { name: 'bound' }, spec: { data } }))
    await refused(member.ask('GET', `${projectSecrets('shop')}/bound`), 403)
    await must(
      admin.ask('POST', `${rbac}/namespaces/p-shop/rolebindings`, {
        metadata: { name: 'reader' },
        roleRef: { kind: 'Role', name: 'reader' },
        subjects: [{ kind: 'Group', name: 'platform:team:store' }],
      }),
    )
    await must(member.ask('GET', `${projectSecrets('shop')}/bound`))
  })

  test('in keys, also in an update, a dry run and a field selector', async () => {
    const made = await must(admin.ask('POST', keys, { metadata: { name: 'store-key' }, spec: { team: 'store' } }))
    const review = await must(
      stage.person('store', made.spec.key).ask('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', {}),
    )
    assert.equal(review.status.userInfo.username, 'platform:team:shop')
    for (const name of ['store', 'shop']) {
      const { items } = await get(`${keys}?fieldSelector=spec.team=${name}`)
      assert.deepEqual(
        items.map((one: Mirror) => one.metadata.name),
        ['store-key'],
      )
    }
    assert.deepEqual((await get(`${keys}?fieldSelector=spec.team=nobody`)).items, [])
    const { spec } = await get(`${keys}/store-key`)
    await must(admin.ask('PATCH', `${keys}/store-key`, { spec: { team: 'store', displayName: 'x' } }, merge))
    await refused(admin.ask('PATCH', `${keys}/store-key`, { spec: { team: 'owners' } }, merge), 422)
    assert.equal((await get(`${keys}/store-key`)).spec.team, spec.team)
  })

  test('an apply of the username changes nothing the second time', async () => {
    const config = {
      apiVersion: 'management.platform.sh/v1',
      kind: 'SharedSecret',
      metadata: { name: 'by-apply' },
      spec: { data, owner: { team: 'store' }, access: [{ verbs: ['get'], teams: ['store'] }] },
    }
    const path = `${secrets()}/by-apply`
    await must(admin.ask('PATCH', `${path}?fieldManager=a`, config, apply))
    await until(path, 'Ready', 'True')
    const live = await get(path)
    assert.deepEqual(await must(admin.ask('PATCH', `${path}?fieldManager=a&dryRun=All`, config, apply)), live)
    assert.equal(
      (await must(admin.ask('PATCH', `${path}?fieldManager=a`, config, apply))).metadata.resourceVersion,
      live.metadata.resourceVersion,
    )
  })

  test('teams can be selected by it', async () => {
    const { items } = await get(`${teams}?fieldSelector=spec.username=store`)
    assert.deepEqual(
      items.map((one: Mirror) => one.metadata.name),
      ['shop'],
    )
  })

  test('it is unique among the names and usernames of all teams', async () => {
    await refused(admin.ask('POST', teams, { metadata: { name: 'copycat' }, spec: { username: 'store' } }), 422)
    await refused(admin.ask('POST', teams, { metadata: { name: 'copycat' }, spec: { username: 'shop' } }), 422)
    await refused(admin.ask('POST', teams, { metadata: { name: 'store' } }), 422)
    await refused(admin.ask('POST', teams, { metadata: { name: 'store' }, spec: { username: 'other' } }), 422)
    await refused(admin.ask('PATCH', `${teams}/known`, { spec: { username: 'shop' } }, merge), 422)
    await refused(admin.ask('PATCH', `${teams}/known`, { spec: { username: 'store' } }, merge), 422)
  })

  test('a write by somebody who may not grant to the team is 403, also by username', async () => {
    const eve = await stage.invite('eve')
    await must(
      admin.ask('POST', roles, {
        metadata: { name: 'creator' },
        rules: [{ verbs: ['create'], apiGroups: ['management.platform.sh'], resources: ['sharedsecrets'] }],
      }),
    )
    await must(
      admin.ask('POST', bindings, {
        metadata: { name: 'creator' },
        roleRef: { kind: 'Role', name: 'creator' },
        subjects: [{ kind: 'User', name: 'eve' }],
      }),
    )
    await refused(
      eve.ask('POST', secrets(), { metadata: { name: 'pushed' }, spec: { data, owner: { team: 'store' } } }),
      403,
    )
    await refused(eve.ask('POST', keys, { spec: { team: 'store' } }), 403)
  })
})

describe('image pull secrets of a team (D23, D60, D61):', () => {
  let member: Person
  const pull = (secretName: string, more = {}) => ({
    kind: 'SharedSecret',
    secretName,
    secretNamespace: 'default',
    ...more,
  })
  before(async () => {
    member = await stage.invite('pia')
    for (const name of ['pulled', 'pulled-2', 'hidden'])
      await must(admin.ask('POST', secrets(), { metadata: { name }, spec: { data } }))
    await must(admin.ask('POST', projectSecrets('web'), { metadata: { name: 'pulled' }, spec: { data } }))
    const imagePullSecrets = [pull('pulled'), { kind: 'ProjectSecret', secretName: 'pulled', secretNamespace: 'p-web' }]
    await must(admin.ask('POST', teams, { metadata: { name: 'pullers' }, spec: { users: ['pia'], imagePullSecrets } }))
  })

  test('members may get them, and nothing else of them', async () => {
    assert.deepEqual((await must(member.ask('GET', `${secrets()}/pulled`))).spec.data, data)
    await must(member.ask('GET', `${projectSecrets('web')}/pulled`))
    await refused(member.ask('GET', `${secrets()}/hidden`), 403)
    await refused(member.ask('GET', `${secrets()}/pulled/history`), 403)
    await refused(member.ask('PATCH', `${secrets()}/pulled`, { spec: { description: 'x' } }, merge), 403)
    await refused(member.ask('DELETE', `${secrets()}/pulled`), 403)
  })

  test('a filtered list shows them', async () => {
    const { items } = await must(member.ask('GET', secrets()))
    assert.deepEqual(
      items.map((one: Mirror) => one.metadata.name),
      ['pulled'],
    )
  })

  test('the permissions of the team and who-can show them', async () => {
    const { status } = await get(`${teams}/pullers/permissions`)
    assert.ok(JSON.stringify(status.permissions).includes('"resourceNames":["pulled"]'), JSON.stringify(status))
    const resourceAttributes = {
      verb: 'get',
      group: 'management.platform.sh',
      resource: 'sharedsecrets',
      namespace: 'default',
      name: 'pulled',
    }
    const { status: who } = await must(
      admin.ask('POST', `${ours}/accessexplanations`, { spec: { whoCan: true, resourceAttributes } }),
    )
    assert.match(JSON.stringify(who), /platform:team:pullers/)
  })

  test('the permission ends with the membership, with the entry, and with the secret', async () => {
    await must(
      admin.ask('PATCH', `${teams}/pullers`, { spec: { imagePullSecrets: [pull('pulled'), pull('pulled-2')] } }, merge),
    )
    await must(member.ask('GET', `${secrets()}/pulled-2`))
    await refused(member.ask('GET', `${projectSecrets('web')}/pulled`), 403)
    await must(admin.ask('DELETE', `${secrets()}/pulled-2`))
    await must(admin.ask('POST', secrets(), { metadata: { name: 'pulled-2' }, spec: { data } }))
    await refused(member.ask('GET', `${secrets()}/pulled-2`), 403)
    await must(admin.ask('PATCH', `${teams}/pullers`, { spec: { description: 'seen' } }, merge))
    await refused(member.ask('GET', `${secrets()}/pulled-2`), 403)
    for (const entries of [[pull('pulled')], [pull('pulled'), pull('pulled-2')]])
      await must(admin.ask('PATCH', `${teams}/pullers`, { spec: { imagePullSecrets: entries } }, merge))
    await must(member.ask('GET', `${secrets()}/pulled-2`))
    await must(admin.ask('PATCH', `${teams}/pullers`, { spec: { users: [] } }, merge))
    await refused(member.ask('GET', `${secrets()}/pulled`), 403)
    await must(admin.ask('PATCH', `${teams}/pullers`, { spec: { users: ['pia'] } }, merge))
    await must(member.ask('GET', `${secrets()}/pulled`))
  })

  test('a re-created secret is not granted by somebody who may not read it', async () => {
    const lead = await stage.invite('lea')
    await must(
      admin.ask(
        'PATCH',
        `${teams}/pullers`,
        { spec: { access: [{ verbs: ['get', 'update', 'patch'], users: ['lea'] }] } },
        merge,
      ),
    )
    await must(admin.ask('DELETE', `${secrets()}/pulled-2`))
    await must(admin.ask('POST', secrets(), { metadata: { name: 'pulled-2' }, spec: { data } }))
    await must(lead.ask('PATCH', `${teams}/pullers`, { spec: { description: 'unrelated' } }, merge))
    await refused(member.ask('GET', `${secrets()}/pulled-2`), 403)
    await refused(
      lead.ask(
        'PATCH',
        `${teams}/pullers`,
        { spec: { imagePullSecrets: [pull('pulled'), pull('pulled-2'), pull('hidden')] } },
        merge,
      ),
      403,
      /hidden/,
    )
    await refused(lead.ask('PATCH', `${teams}/pullers`, { spec: { users: ['pia', 'lea'] } }, merge), 403)
  })

  test('a scoped key cannot add one', async () => {
    const scoped = await stage.invite('admin', {
      scope: { rules: [{ verbs: ['*'], resources: [{ group: 'management.platform.sh' }] }] },
    })
    await refused(scoped.ask('PATCH', `${teams}/pullers`, { spec: { imagePullSecrets: [pull('hidden')] } }, merge), 403)
  })

  test('incomplete references and other kinds are 422', async () => {
    const create = (imagePullSecrets: unknown[]) =>
      admin.ask('POST', `${teams}?dryRun=All`, { metadata: { name: 'bad' }, spec: { imagePullSecrets } })
    await refused(create([{}, {}]), 422)
    await refused(create([pull('')]), 422)
    await refused(create([pull('x', { kind: 'Secret' })]), 422)
    await refused(create([pull('x', { kind: 'OwnedAccessKey' })]), 422)
    await refused(create([pull('x', { apiGroup: 'v1' })]), 422)
    await refused(create([pull('x', { kind: 'ProjectSecret' })]), 422, /p-/)
    await refused(create([pull('x', { key: 'a/b' })]), 422)
    await must(create([{ secretName: 'pulled' }]))
  })
})

test('the kinds with conditions are those with access entries, User (D63) and Cluster (D68)', () => {
  const having = kinds.filter(({ status }) => JSON.stringify(status ?? {}).includes('observedGeneration'))
  assert.deepEqual(having.map(one => one.kind).sort(), ['Cluster', 'ProjectSecret', 'SharedSecret', 'Team', 'User'])
})
