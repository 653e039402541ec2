// Flux and Argo CD read the state of an object from its conditions, by the rules of kstatus. The conditions of every kind follow them.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Kind } from '../../src/api/kind.ts'
import { pathOf } from '../../src/api/paths.ts'
import { kinds } from '../../src/kinds/index.ts'
import { must, rbac, soon, teams } from '../access/people.ts'
import { type Server, startServer } from '../support/server.ts'

type Condition = { readonly type: string; readonly status: string; readonly reason?: string; readonly message?: string }
type Observed = {
  readonly metadata: { readonly name: string; readonly generation?: number; readonly deletionTimestamp?: string }
  readonly status?: { readonly observedGeneration?: number; readonly conditions?: readonly Condition[] }
}

/** The generic rules of kstatus, for kinds that it does not know. */
function stateOf({ metadata, status = {} }: Observed): 'Current' | 'InProgress' | 'Failed' | 'Terminating' {
  const { observedGeneration, conditions = [] } = status
  const is = (type: string, value: string) => conditions.some(one => one.type === type && one.status === value)
  if (metadata.deletionTimestamp) return 'Terminating'
  if (observedGeneration !== undefined && observedGeneration !== metadata.generation) return 'InProgress'
  if (is('Reconciling', 'True')) return 'InProgress'
  if (is('Stalled', 'True')) return 'Failed'
  return is('Ready', 'False') || is('Ready', 'Unknown') ? 'InProgress' : 'Current'
}

let server: Server
before(async () => {
  server = await startServer()
})
after(() => server.stop())

const withConditions = kinds.filter(kind => kind.served && kind.status?.properties?.['conditions'])
const collectionOf = (kind: Kind) =>
  pathOf(kind, kind.namespaced ? { namespace: 'p-web' } : {}).replace(/^.*?(?=\/apis\/)/, '')
const metadataOf = (kind: Kind) => ({ name: 'one', ...(kind.namespaced ? { namespace: 'p-web' } : {}) })

for (const kind of withConditions)
  test(`${kind.kind} has observedGeneration, and no condition that contradicts Ready`, async () => {
    assert.ok(kind.status?.properties?.['observedGeneration'])
    const body = { ...kind.sample, metadata: metadataOf(kind) }
    await must(server.request('POST', collectionOf(kind), { body }))
    const path = `${collectionOf(kind)}/one`
    const read = (): Promise<Observed> => must(server.request('GET', path))
    // A Cluster is ready when its agent reports, and there is none here.
    const expected = kind.kind === 'Cluster' ? 'InProgress' : 'Current'
    await soon(`${kind.kind} is ${expected}`, async () => stateOf(await read()) === expected)
    const headers = { 'Content-Type': 'application/merge-patch+json' }
    await must(server.request('PATCH', path, { body: { spec: { displayName: 'Changed' } }, headers }))
    // The conditions of most kinds are part of the write. A controller writes those of a Cluster.
    await soon(`${kind.kind} is observed`, async () => (await read()).status?.observedGeneration === 2)
    const { metadata, status } = await read()
    assert.equal(metadata.generation, 2)
    for (const { type, status: value, reason } of status?.conditions ?? []) {
      assert.ok(['True', 'False', 'Unknown'].includes(value), type)
      assert.match(reason ?? '', /^[A-Z][A-Za-z]+$/, type)
      // Both mean that something is wrong, unlike all conditions of this server.
      assert.ok(!['Reconciling', 'Stalled'].includes(type), type)
    }
    assert.equal(status?.conditions?.filter(one => one.type === 'Ready').length, 1)
  })

test('the kinds with conditions are known', () => {
  const names = withConditions.map(({ kind }) => kind).toSorted()
  assert.deepEqual(names, ['Cluster', 'ProjectSecret', 'SharedSecret', 'Team', 'User'])
})

test('an object with a problem is in progress with its reason, and current when the problem is gone', async () => {
  const spec = { clusterRoles: [{ name: 'later' }] }
  await must(server.request('POST', teams, { body: { metadata: { name: 'late' }, spec } }))
  const read = (): Promise<Observed> => must(server.request('GET', `${teams}/late`))
  await soon('the role is missing', async () => {
    const ready = (await read()).status?.conditions?.find(({ type }) => type === 'Ready')
    return ready?.reason === 'RolesMissing' && ready.message === 'missing cluster roles: later'
  })
  assert.equal(stateOf(await read()), 'InProgress')
  await must(server.request('POST', `${rbac}/clusterroles`, { body: { metadata: { name: 'later' }, rules: [] } }))
  await soon('the team is current', async () => stateOf(await read()) === 'Current')
})
