// The plan of the agent, the names and the comparison of objects, and what one item may do to another.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Resource } from '../../api/object.ts'
import type { DesiredItem } from '../../kinds/cluster-desired.ts'
import { openDesiredState } from './desired-state.ts'
import { bindingName } from './marks.ts'
import { plan } from './plan.ts'
import { type Actual, actualOf, keyOf, merged, targetAt, targetOf, wantedObject } from './wanted-object.ts'

const owner = { uid: 'cluster-uid', groupPrefix: '' }
const item = (name: string, over: object = {}): DesiredItem => ({
  apiVersion: 'management.platform.sh/v1',
  kind: 'ClusterDesiredItem',
  metadata: { name, resourceVersion: '1' },
  secret: {
    namespace: 'shop',
    name: 'token',
    type: 'Opaque',
    data: { a: 'YQ==' },
    source: { namespace: 'p-shop', name, uid: `uid-of-${name}` },
    ...over,
  },
})
const actual = (over: Partial<Actual> = {}): Actual => ({
  ...actualOf(wantedObject(item('a'), owner), owner.uid),
  ...over,
})

test('the plan depends on what is wanted and what is there', () => {
  const wanted = actual()
  for (const [expected, want, there] of [
    ['none', undefined, undefined],
    ['create', wanted, undefined],
    ['none', wanted, wanted],
    ['update', wanted, actual({ digest: 'other' })],
    ['replace', wanted, actual({ fixed: 'kubernetes.io/tls' })],
    ['delete', undefined, wanted],
    ['none', undefined, actual({ isTerminating: true })],
    ['none', wanted, actual({ digest: 'other', isTerminating: true })],
    ['none', undefined, actual({ isOwn: false })],
    ['none', wanted, actual({ digest: 'other', isOwn: false })],
  ] as const)
    assert.equal(plan(want, there), expected)
})

test('a Secret as Kubernetes returns it equals the wanted one; an edit of data, type or source does not', () => {
  const wanted = wantedObject(item('a'), owner)
  const stored = {
    ...wanted,
    metadata: { ...wanted.metadata, uid: 'u', resourceVersion: '9', labels: { ...wanted.metadata.labels, mine: 'x' } },
  }
  assert.equal(plan(actual(), actualOf(stored, owner.uid)), 'none')
  const edits = [{ data: { a: 'Yg==' } }, { data: {} }, { metadata: { ...stored.metadata, annotations: {} } }]
  for (const edit of edits)
    assert.equal(plan(actual(), actualOf({ ...stored, ...edit } as Resource, owner.uid)), 'update')
  for (const edit of [{ type: 'kubernetes.io/tls' }, { immutable: true }])
    assert.equal(plan(actual(), actualOf({ ...stored, ...edit } as Resource, owner.uid)), 'replace')
  assert.deepEqual(merged(stored, wanted).metadata.labels, stored.metadata.labels)
})

test('an object with the labels of another cluster is foreign', () => {
  const other = wantedObject(item('a'), { ...owner, uid: 'another' })
  assert.equal(actualOf(other, owner.uid).isOwn, false)
})

test('names of bindings are unique, and at most 253 characters long', () => {
  assert.equal(bindingName('web', 'view'), 'platform:web:view')
  const names = ['a', 'b'].map(last => bindingName('t'.repeat(63), `${'r'.repeat(250)}${last}`))
  assert.equal(new Set(names).size, 2)
  for (const name of names) assert.equal(name.length, 253)
  const role: DesiredItem = {
    ...item('r'),
    secret: undefined,
    role: { team: 'web', uid: 'u', clusterRole: 'view' },
  } as never
  const target = targetOf(role)
  assert.ok(target)
  assert.deepEqual(targetAt(keyOf(target)), target)
})

test('a new initial state replaces the old one only when it is complete', () => {
  const changed: string[] = []
  const state = openDesiredState(owner, key => changed.push(key))
  state.begin()
  state.put(item('a'))
  state.put(item('b', { name: 'other' }))
  assert.equal(state.isComplete, false)
  assert.deepEqual([...state.keys()], [])
  state.complete({ isTerminating: false })
  assert.deepEqual(changed.splice(0), ['Secret/shop/token', 'Secret/shop/other'])
  const [before] = state.at('Secret/shop/token')
  state.begin()
  state.put(item('a'))
  assert.deepEqual([...state.keys()], ['Secret/shop/token', 'Secret/shop/other'])
  state.complete({ isTerminating: false })
  assert.deepEqual(changed.splice(0), ['Secret/shop/other'])
  assert.equal(state.at('Secret/shop/token')[0], before, 'unchanged data is not kept twice')
  state.put(item('a', { name: 'moved', namespace: 'jobs' }))
  assert.deepEqual(changed.splice(0).toSorted(), ['Secret/jobs/moved', 'Secret/shop/token'])
  assert.deepEqual([...state.namespaces()], ['jobs'])
  state.remove('a')
  assert.deepEqual(changed, ['Secret/jobs/moved'])
})
