// Filtered lists and watches on random worlds: the index of who may see an object changes their cost, never their result (D27).

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Caller } from '../../src/api/caller.ts'
import { ApiError } from '../../src/api/errors.ts'
import type { Kind } from '../../src/api/kind.ts'
import type { Json, JsonObject } from '../../src/api/object.ts'
import type { Document, ListOptions, Resources, Selection, Watch } from '../../src/api/resources.ts'
import type { ApiServer } from '../../src/apiserver/api-server.ts'
import { kinds as allKinds } from '../../src/kinds/index.ts'
import { OwnedAccessKey } from '../../src/kinds/owned-access-key.ts'
import { ProjectSecret } from '../../src/kinds/project-secret.ts'
import { ClusterRole, Role, RoleBinding } from '../../src/kinds/rbac.ts'
import { SharedSecret } from '../../src/kinds/shared-secret.ts'
import { Team } from '../../src/kinds/team.ts'
import { build, type Dice, dice, makeWorld, spaces, teamNames, users } from './random-objects.ts'

const worlds = 120
const kinds = [Team, SharedSecret, ProjectSecret, OwnedAccessKey, Role, RoleBinding, ClusterRole]
const seed = Number(process.env['FILTERED_SEED'] ?? Date.now() % 1e9)

const label = ({ object, ref }: Document) => `${ref.namespace}/${ref.name}@${object.metadata.resourceVersion}`

/** The objects of a kind that this caller may see with the current permissions; undefined: all of them, or none. */
function selectionOf(apiServer: ApiServer, authorization: string, { group, plural }: Kind, verb: string) {
  const caller = callerOf(apiServer, authorization)
  if (!caller) return undefined
  const verdict = apiServer.authorizer.authorize(caller, { verb, target: { group, resource: plural, namespace: '' } })
  return verdict.answer === 'only' ? { caller, only: verdict.filter, among: verdict.among } : undefined
}

function callerOf({ authenticate }: ApiServer, authorization: string): Caller | undefined {
  try {
    return authenticate(authorization, true)
  } catch (error) {
    assert.ok(error instanceof ApiError && error.code === 401, String(error))
    return undefined
  }
}

async function inPages(resources: Resources, kind: Kind, options: ListOptions): Promise<readonly Document[]> {
  // The token names the version of every later page.
  const { resourceVersion: _, resourceVersionMatch: __, ...later } = options
  const first = await resources.list(kind, { ...options, limit: 3 })
  const items = [...first.items]
  for (let token = first.continue; token !== undefined; ) {
    const page = await resources.list(kind, { ...later, limit: 3, continue: token })
    items.push(...page.items)
    token = page.continue
  }
  return items
}

/** The ways to read a collection that differ in how the store walks it. */
function readingsOf(kind: Kind, versions: readonly string[]): ListOptions[] {
  const places = kind.namespaced ? ['', ...spaces] : ['']
  return [
    ...places.map(namespace => ({ namespace })),
    ...versions.map(resourceVersion => ({ resourceVersion, resourceVersionMatch: 'Exact' })),
    { labelSelector: 'on=yes' },
    { fieldSelector: 'metadata.name=one' },
  ]
}

/** Changes that decide who sees what: owners, access entries, members, roles, bindings; and objects that come and go. */
async function change({ registry: { internalClient } }: ApiServer, die: Dice): Promise<void> {
  const secret = die.pick([SharedSecret, ProjectSecret])
  const ref = { namespace: die.pick(['p-web', 'p-ops']), name: die.pick(['one', 'two', 'three']) }
  const owner = die.chance(0.5) ? { user: die.pick(users), team: null } : { user: null, team: die.pick(teamNames) }
  const access = [
    { verbs: [die.pick(['get', 'update', '*'])], users: die.some([...users, '*'], 1), teams: die.some(teamNames, 1) },
  ]
  const merge = (body: JsonObject) => ({ type: 'merge' as const, body: body as Json })
  const team = { namespace: '', name: die.pick(teamNames) }
  const binding = { namespace: die.pick(['', ...spaces]), name: `b${Math.floor(die.next() * 6)}` }
  const changes: (() => Promise<unknown>)[] = [
    () => internalClient.patch(secret, ref, merge({ spec: die.pick([{ owner }, { access }, { owner, access }]) })),
    () => internalClient.patch(secret, ref, merge({ metadata: { labels: { on: die.pick(['yes', 'no']) } } })),
    () => internalClient.delete(secret, ref),
    () =>
      internalClient.create(secret, ref.namespace, {
        metadata: { name: ref.name, labels: { on: 'yes' } },
        spec: { access },
      }),
    () =>
      internalClient.patch(
        Team,
        team,
        merge({ spec: die.pick([{ owner }, { access }, { users: die.some(users, 2) }]) }),
      ),
    () => internalClient.delete(Team, team),
    () =>
      internalClient.create(Team, '', { metadata: { name: team.name }, spec: { users: die.some(users, 2), access } }),
    () => internalClient.delete(RoleBinding, binding),
    () =>
      internalClient.create(RoleBinding, die.pick(spaces), {
        metadata: { generateName: 'new-' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: die.pick(['r1', 'r2']) },
        subjects: users.map(name => ({ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name })),
      }),
    () =>
      internalClient.patch(
        Role,
        { namespace: die.pick(spaces), name: 'r1' },
        merge({
          rules: [
            {
              verbs: ['get'],
              apiGroups: ['*'],
              resources: [die.pick(['*', secret.plural])],
              resourceNames: die.some(['one', 'three', 'r2'], 2),
            },
          ],
        }),
      ),
  ]
  // An object that is not there, or there already, is as good a case as any.
  await die
    .pick(changes)()
    .catch(error => assert.ok(error instanceof ApiError && [404, 409].includes(error.code), error))
}

/** Lets everybody who follows a change see it. */
const settle = async () => {
  for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
}

async function inWorlds(
  many: number,
  check: (apiServer: ApiServer, keys: readonly string[], die: Dice, at: string) => Promise<void>,
): Promise<void> {
  for (let index = 0; index < many; index++) {
    const die = dice(seed + index)
    const { apiServer, storage, secrets } = await build(makeWorld(die))
    const keys = [...secrets.values()].map(key => `Bearer ${key}`)
    await check(apiServer, keys, die, `seed ${seed}, world ${index}`)
    apiServer.stop()
    await storage.close()
  }
}

test('a filtered list equals an evaluation of every object, for every way to read it', async context => {
  const count = { lists: 0, indexed: 0, shown: 0 }
  await inWorlds(worlds, async (apiServer, keys, die, at) => {
    const { internalClient } = apiServer.registry
    const versions: string[] = []
    for (let step = 0; step < 12; step++) {
      await change(apiServer, die)
      if (step % 5 === 0) versions.push((await internalClient.list(Team)).resourceVersion)
    }
    await settle()
    for (const [index, authorization] of keys.entries())
      for (const kind of kinds) {
        const verb = die.pick(['list', 'watch'])
        const seen = selectionOf(apiServer, authorization, kind, verb)
        if (!seen) continue
        const { caller, only, among } = seen
        const resources = apiServer.registry.as(caller)
        if (among()) count.indexed++
        const all = (await internalClient.list(kind)).items
        const { group, plural: resource } = kind
        const allowed = all.filter(({ ref }) =>
          ['get', verb].some(
            one => apiServer.authorizer.decide(caller, { verb: one, target: { group, resource, ...ref } }).allowed,
          ),
        )
        const newest = await resources.list(kind, { only, among })
        const what = `${at}, key ${index} (${caller.username}), ${kind.plural}`
        assert.deepEqual(newest.items.map(label), allowed.map(label), what)
        for (const reading of readingsOf(kind, versions)) {
          const expected = (await resources.list(kind, { ...reading, only })).items.map(label)
          const where = `${what}, ${JSON.stringify(reading)}`
          assert.deepEqual((await resources.list(kind, { ...reading, only, among })).items.map(label), expected, where)
          assert.deepEqual((await inPages(resources, kind, { ...reading, only, among })).map(label), expected, where)
          count.lists++
          count.shown += expected.length
        }
      }
  })
  context.diagnostic(`${count.lists} lists, ${count.shown} objects; ${count.indexed} callers and kinds by the index`)
  assert.ok(count.shown > count.lists / 4, `${count.shown} objects in ${count.lists} lists`)
  assert.ok(count.indexed > worlds, `${count.indexed} callers and kinds were answered by the index`)
})

test('a filtered watch delivers every change of the filtered list', async () => {
  await inWorlds(worlds, async (apiServer, keys, die, at) => {
    const watched: {
      readonly what: string
      readonly kind: Kind
      readonly authorization: string
      readonly watch: Watch
      readonly shown: Map<string, string>
    }[] = []
    const [authorization = ''] = keys
    for (const kind of kinds) {
      const seen = selectionOf(apiServer, authorization, kind, 'watch')
      if (!seen) continue
      const now = () => selectionOf(apiServer, authorization, kind, 'watch')
      const selection: Selection = {
        only: object => now()?.only(object) ?? false,
        among: () => now()?.among(),
        refilter: apiServer.permissionsChanged,
      }
      const resources = apiServer.registry.as(seen.caller)
      const watch = await resources.watch(kind, { ...selection, resourceVersion: '0' })
      watched.push({ what: `${at}, ${kind.plural}`, kind, authorization, watch, shown: new Map() })
    }
    const reading = watched.map(async ({ watch, shown, what }) => {
      for (let events = await watch.next(); events; events = await watch.next())
        for (const { type, document } of events) {
          const slot = `${document.ref.namespace}/${document.ref.name}`
          assert.notEqual(type, 'ERROR', what)
          assert.equal(shown.has(slot), type !== 'ADDED', `${what}: ${type} ${slot}`)
          if (type === 'DELETED') shown.delete(slot)
          else shown.set(slot, label(document))
        }
    })
    for (let step = 0; step < 12; step++) {
      await change(apiServer, die)
      if (die.chance(0.5)) await settle()
    }
    await settle()
    for (const { kind, shown, what } of watched) {
      const seen = selectionOf(apiServer, authorization, kind, 'watch')
      // Permission for the whole kind, or none at all, is another kind of watch: the server ends this one.
      if (!seen) continue
      const { items } = await apiServer.registry.as(seen.caller).list(kind, { only: seen.only })
      assert.deepEqual([...shown.values()].sort(), items.map(label).sort(), what)
    }
    for (const { watch } of watched) watch.stop()
    await Promise.all(reading)
  })
})

test('every kind whose objects grant permissions declares their candidates', () => {
  const missing = allKinds.filter(kind => kind.stored && kind.rights && !kind.readers)
  assert.deepEqual(
    missing.map(kind => kind.kind),
    [],
  )
})
