// @kubernetes/client-node, a client nobody here wrote: list, watch, informer with reconnect, patch, server-side apply.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import {
  ApiException,
  CustomObjectsApi,
  KubeConfig,
  type KubernetesListObject,
  type KubernetesObject,
  KubernetesObjectApi,
  makeInformer,
  PatchStrategy,
  setHeaderOptions,
  Watch,
} from '@kubernetes/client-node'
import { type Server, startServer } from '../support/server.ts'

type Team = KubernetesObject & { spec?: { displayName?: string; users?: string[] } }

const at = { group: 'management.platform.sh', version: 'v1', plural: 'teams' }
const path = `/apis/${at.group}/${at.version}/${at.plural}`
const team = (name: string, spec: Team['spec'] = {}): Team => ({
  apiVersion: `${at.group}/${at.version}`,
  kind: 'Team',
  metadata: { name },
  spec,
})

let server: Server
let config: KubeConfig
let teams: CustomObjectsApi
before(async () => {
  server = await startServer()
  config = new KubeConfig()
  config.loadFromFile(server.kubeconfig)
  teams = config.makeApiClient(CustomObjectsApi)
})
after(() => server.stop())

const create = async (name: string, spec?: Team['spec']) =>
  (await teams.createClusterCustomObject({ ...at, body: team(name, spec) })) as Team
const list = async (options = {}) =>
  (await teams.listClusterCustomObject({ ...at, ...options })) as KubernetesListObject<Team>
const rename = (name: string, displayName: string) =>
  teams.patchClusterCustomObject(
    { ...at, name, body: { spec: { displayName } } },
    setHeaderOptions('Content-Type', PatchStrategy.MergePatch),
  )

/** Looks again until it holds; the limit only ends a test that has failed. */
async function until(holds: () => boolean, what: string): Promise<void> {
  for (const end = Date.now() + 30_000; !holds(); await pause(10)) assert.ok(Date.now() < end, `never came: ${what}`)
}

test('create, get, list in pages, and delete over TLS', async () => {
  for (const name of ['a', 'b', 'c']) await create(name, { displayName: name.toUpperCase() })
  assert.equal(((await teams.getClusterCustomObject({ ...at, name: 'b' })) as Team).spec?.displayName, 'B')
  const first = await list({ limit: 2 })
  assert.deepEqual(
    first.items.map(item => item.metadata?.name),
    ['a', 'b'],
  )
  const rest = await list({
    limit: 2,
    _continue: first.metadata?._continue ?? (first.metadata as { continue?: string }).continue,
  })
  assert.deepEqual(
    rest.items.map(item => item.metadata?.name),
    ['c'],
  )
  for (const name of ['a', 'b', 'c']) await teams.deleteClusterCustomObject({ ...at, name })
  assert.deepEqual((await list()).items, [])
})

test('an error is an ApiException with the Status', async () => {
  await assert.rejects(teams.getClusterCustomObject({ ...at, name: 'nope' }), (error: ApiException<string>) => {
    assert.ok(error instanceof ApiException)
    assert.equal(error.code, 404)
    assert.match(JSON.stringify(error.body), /teams\.management\.platform\.sh .{1,4}nope.{1,4} not found/)
    return true
  })
})

test('json and merge patches change the object', async () => {
  await create('patched', { users: ['ada'] })
  const operations = [{ op: 'add', path: '/spec/users/-', value: 'grace' }]
  const json = (await teams.patchClusterCustomObject(
    { ...at, name: 'patched', body: operations },
    setHeaderOptions('Content-Type', PatchStrategy.JsonPatch),
  )) as Team
  assert.deepEqual(json.spec?.users, ['ada', 'grace'])
  assert.equal(((await rename('patched', 'Patched')) as Team).spec?.displayName, 'Patched')
})

test('server-side apply creates, shares ownership, conflicts and forces', async () => {
  const apply = async (fieldManager: string, spec: Team['spec'], force?: boolean) =>
    (await teams.patchClusterCustomObject(
      { ...at, name: 'applied', body: team('applied', spec), fieldManager, ...(force && { force }) },
      setHeaderOptions('Content-Type', PatchStrategy.ServerSideApply),
    )) as Team
  assert.equal((await apply('one', { displayName: 'One' })).metadata?.generation, 1)
  assert.deepEqual((await apply('two', { users: ['ada'] })).spec?.users, ['ada'])
  await assert.rejects(apply('two', { displayName: 'Two' }), { code: 409 })
  const forced = await apply('two', { displayName: 'Two' }, true)
  assert.equal(forced.spec?.displayName, 'Two')
  assert.equal(forced.spec?.users, undefined)
})

test('the object API finds the kind through discovery', async () => {
  const objects = KubernetesObjectApi.makeApiClient(config)
  await objects.create(team('found', { displayName: 'Found' }))
  const read = await objects.read({ ...team('found'), metadata: { name: 'found' } })
  assert.equal((read as Team).spec?.displayName, 'Found')
  assert.equal(
    (await objects.list(`${at.group}/v1`, 'Team')).items.some(item => item.metadata?.name === 'found'),
    true,
  )
  await objects.delete(team('found'))
})

test('a watch delivers every event in order, after the list', async () => {
  await create('before')
  const { metadata } = await list()
  const seen: string[] = []
  let ended: unknown
  const request = await new Watch(config).watch(
    path,
    { resourceVersion: metadata?.resourceVersion },
    (type: string, object: Team) => seen.push(`${type} ${object.metadata?.name} ${object.spec?.displayName}`),
    (error: unknown) => {
      ended = error
    },
  )
  await create('watched', { displayName: 'A' })
  await rename('watched', 'B')
  await teams.deleteClusterCustomObject({ ...at, name: 'watched' })
  await until(() => seen.length >= 3, `three events, only ${seen.join(', ')} ${ended}`)
  request.abort()
  assert.deepEqual(seen, ['ADDED watched A', 'MODIFIED watched B', 'DELETED watched B'])
})

test('an informer survives a restart of the server and misses no change', async () => {
  await create('kept', { displayName: '0' })
  await create('dropped')
  const informer = makeInformer<Team>(config, path, () => list())
  const seen: string[] = []
  const note = (type: string) => (object: Team) => {
    if (['kept', 'dropped', 'late'].includes(object.metadata?.name ?? ''))
      seen.push(`${type} ${object.metadata?.name} ${object.spec?.displayName ?? ''}`.trimEnd())
  }
  let stopped = false
  informer.on('add', note('add'))
  informer.on('update', note('update'))
  informer.on('delete', note('delete'))
  // The library's documentation says to start again after an error.
  informer.on('error', () => void pause(20).then(() => (stopped ? undefined : informer.start())))
  await informer.start()
  try {
    await rename('kept', '1')
    await until(() => informer.get('kept')?.spec?.displayName === '1', 'the change before the restart')

    const changes = rename('kept', '2')
    await changes
    await server.restart()
    await rename('kept', '3')
    await create('late')
    await teams.deleteClusterCustomObject({ ...at, name: 'dropped' })
    await until(() => seen.at(-1) === 'delete dropped', `the changes after the restart; ${seen.join(', ')}`)
    await rename('late', 'Late')
    await until(() => informer.get('late')?.spec?.displayName === 'Late', 'a change on the new watch')
  } finally {
    stopped = true
    await informer.stop()
  }
  assert.deepEqual(seen.toSorted(), seen.filter((one, index) => seen.indexOf(one) === index).toSorted(), 'none twice')
  assert.deepEqual(
    seen.filter(one => /kept/.test(one)),
    ['add kept 0', 'update kept 1', 'update kept 2', 'update kept 3'],
  )
  assert.deepEqual(
    seen.filter(one => !/kept/.test(one)),
    ['add dropped', 'add late', 'delete dropped', 'update late Late'],
  )
  assert.equal(informer.get('dropped'), undefined)
})
