// References in both directions and modes, label selectors, and the import policy.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Json, JsonObject } from '../../api/object.ts'
import { hostName, shortName } from '../sync/names.ts'
import { importDenied } from './import-policy.ts'
import { rewriteSelector } from './label-selector.ts'
import { type Direction, type ReferencedObject, type RewriteOptions, rewriteReference } from './reference.ts'

const vcluster = { name: 'vc', namespace: 'host' }
const secret = { apiVersion: 'v1', kind: 'Secret' }
const mapping = {
  toHost: (name: string) => (name.startsWith('team-') ? `host-${name}` : undefined),
  toVirtual: (name: string) => (name.startsWith('host-') ? name.slice(5) : undefined),
}
const base = { vcluster, namespace: 'default', path: ['metadata', 'annotations', 'secret'], virtualValue: undefined }
const rewrite = (value: Json, direction: Direction, more: Partial<RewriteOptions> = {}) =>
  JSON.parse(JSON.stringify(rewriteReference(value, { ...base, reference: secret, direction, ...more }))) as {
    value?: Json
    skipped?: string
    referenced?: ReferencedObject
  }

test('in single-namespace mode a name becomes a generated one that starts with v, and the referenced object is returned', () => {
  const name = shortName('db', 'default', 'vc')
  assert.match(name, /^v/)
  assert.deepEqual(rewrite('db', 'toHost'), {
    value: name,
    referenced: {
      ...secret,
      namespace: 'default',
      name: 'db',
      hostNamespace: 'host',
      hostName: name,
      path: 'metadata.annotations.secret',
    },
  })
})

test('kinds with readable host names keep them', () => {
  const reference = { apiVersion: 'v1', kind: 'Service' }
  const name = hostName('web', 'default', 'vc')
  assert.equal(rewrite('web', 'toHost', { reference }).value, name)
  assert.equal(rewrite(name, 'toVirtual', { reference }).value, 'web', 'and can be reversed')
})

test('a generated name is reversed with the virtual object; an unknown name does not change', () => {
  const name = shortName('db', 'default', 'vc')
  assert.equal(rewrite(name, 'toVirtual', { virtualValue: 'db' }).value, 'db')
  assert.match(rewrite(name, 'toVirtual').skipped ?? '', /is not a name of this virtual cluster/)
  assert.match(rewrite('other', 'toVirtual', { virtualValue: 'db' }).skipped ?? '', /"other" is not a name/)
})

test('in multi-namespace mode names do not change and namespaces are mapped', () => {
  const reference = { ...secret, namePath: 'name', namespacePath: 'namespace' }
  const options = { reference, multiNamespace: mapping, namespace: 'team-a' }
  const there = rewrite({ name: 'db', namespace: 'team-b' }, 'toHost', options)
  assert.deepEqual(there.value, { name: 'db', namespace: 'host-team-b' })
  assert.equal(there.referenced?.hostNamespace, 'host-team-b')
  assert.deepEqual(rewrite(there.value as Json, 'toVirtual', options).value, { name: 'db', namespace: 'team-b' })
  assert.equal(
    rewrite({ name: 'db' }, 'toHost', options).referenced?.namespace,
    'team-a',
    'falls back to metadata.namespace',
  )
  assert.match(rewrite({ name: 'db', namespace: 'x' }, 'toHost', options).skipped ?? '', /namespace "x" is not synced/)
})

test('kindPath and apiVersionPath select the kind and fall back to the fixed values', () => {
  const reference = { ...secret, namePath: 'ref.name', kindPath: 'ref.kind', apiVersionPath: 'ref["apiVersion"]' }
  const value = { ref: { name: 'web', kind: 'Service', apiVersion: 'v1', other: [1] } }
  const there = rewrite(value, 'toHost', { reference })
  assert.deepEqual(there.value, { ref: { ...value.ref, name: 'web-x-default-x-vc' } })
  assert.equal(there.referenced?.kind, 'Service')
  assert.equal(rewrite({ ref: { name: 'db' } }, 'toHost', { reference }).referenced?.kind, 'Secret')
})

test('in single-namespace mode a namespace in the value is translated in both directions', () => {
  const reference = { ...secret, namePath: 'name', namespacePath: 'namespace' }
  const value = { name: 'db', namespace: 'prod' }
  const there = rewrite(value, 'toHost', { reference })
  assert.deepEqual(there.value, { name: shortName('db', 'prod', 'vc'), namespace: 'host' })
  assert.deepEqual(rewrite(there.value as Json, 'toVirtual', { reference, virtualValue: value }).value, value)
})

test('a value without a name is skipped with a reason', () => {
  const reasons: [Json, Partial<RewriteOptions>, RegExp][] = [
    ['', {}, /empty string/],
    [7, {}, /is not a string; set namePath/],
    [{ name: 'x' }, {}, /set namePath/],
    ['x', { reference: { ...secret, namePath: 'name' } }, /is not a map/],
    [{ name: 7 }, { reference: { ...secret, namePath: 'name' } }, /has no name at name/],
  ]
  for (const [value, more, reason] of reasons) assert.match(rewrite(value, 'toHost', more).skipped ?? '', reason)
})

test('every name round-trips (1000 cases)', () => {
  const name = fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,60}[a-z0-9])?$/)
  const kind = fc.constantFrom('Secret', 'ConfigMap', 'Service', 'Pod')
  fc.assert(
    fc.property(name, name, kind, (one, namespace, kind) => {
      const options = { reference: { apiVersion: 'v1', kind }, namespace }
      const there = rewrite(one, 'toHost', options).value as string
      assert.equal(rewrite(there, 'toVirtual', { ...options, virtualValue: one }).value, one)
    }),
    { numRuns: 1000 },
  )
})

const selector = (value: Json, direction: Direction, more: JsonObject = {}) =>
  JSON.parse(JSON.stringify(rewriteSelector(value, { ...base, direction, ...more })))

test('a label selector selects the virtual cluster and namespace on the host, and only there', () => {
  const marks = { 'vcluster.platform.sh/managed-by': 'vc', 'vcluster.platform.sh/namespace': 'default' }
  assert.deepEqual(selector({ app: 'web' }, 'toHost'), { value: { app: 'web', ...marks } })
  assert.deepEqual(selector({ app: 'web', ...marks }, 'toVirtual'), { value: { app: 'web' } })
  const wide = {
    matchLabels: { app: 'web' },
    matchExpressions: [{ key: 'vcluster.platform.sh/x', operator: 'Exists' }],
  }
  const there = selector(wide, 'toHost').value
  assert.deepEqual(there.matchLabels, { app: 'web', ...marks })
  assert.match(there.matchExpressions[0].key, /^vcluster\.platform\.sh\/label-vc-x-/)
  assert.deepEqual(selector(there, 'toVirtual', { virtualValue: wide }).value, wide)
  assert.match(selector('app=web', 'toHost').skipped, /not a label selector/)
})

const referenced: ReferencedObject = {
  ...{ ...secret, namespace: 'default', name: 'db', path: 'x' },
  hostNamespace: 'host',
  hostName: shortName('db', 'default', 'vc'),
}
const hostSecret = (more: JsonObject = {}, metadata: JsonObject = {}): JsonObject => ({
  ...secret,
  ...more,
  metadata: { name: referenced.hostName, namespace: 'host', ...metadata },
})

test('an import is denied unless all conditions are met', () => {
  const question = { referenced, virtualExists: false, vcluster, allow: ['Secret'] }
  const cases: [JsonObject | null, RegExp | undefined, Partial<Parameters<typeof importDenied>[0]>?][] = [
    [hostSecret(), undefined],
    [hostSecret(), undefined, { allow: [`Secret/${referenced.hostName}`] }],
    [hostSecret({ type: 'Opaque' }, { labels: { 'app.kubernetes.io/managed-by': 'Helm' } }), undefined],
    [null, /does not exist on the host/],
    [hostSecret(), /already exists/, { virtualExists: true }],
    [hostSecret(), /--import-allow does not list it/, { allow: [] }],
    [hostSecret(), /--import-allow does not list it/, { allow: ['Secret/other', 'ConfigMap'] }],
    [hostSecret({ type: 'kubernetes.io/service-account-token' }), /never imported/],
    [hostSecret({ type: 'helm.sh/release.v1' }), /never imported/],
    [hostSecret({ type: 'bootstrap.kubernetes.io/token' }), /never imported/],
    [hostSecret({}, { annotations: { 'kubernetes.io/service-account.name': 'x' } }), /never imported/],
    [hostSecret({}, { namespace: 'kube-system' }), /not in namespace host/],
    [hostSecret({}, { name: 'db' }), /its name is not v/],
    [hostSecret({ kind: 'ConfigMap' }), /not a v1 Secret/],
    [hostSecret({}, { deletionTimestamp: '2026-01-01T00:00:00Z' }), /being deleted/],
    [
      hostSecret({}, { labels: { 'vcluster.platform.sh/managed-by': 'vc' } }),
      /a copy of an object of this virtual cluster/,
    ],
    [hostSecret({}, { labels: { 'vcluster.platform.sh/managed-by': 'other' } }), /another virtual cluster/],
    [hostSecret({}, { labels: { 'vcluster.example.com/managed-by': 'vc' } }), /another virtual cluster/],
    [hostSecret({}, { annotations: { 'vcluster.example.com/object-name': 'db' } }), /another virtual cluster/],
  ]
  for (const [hostObject, reason, more] of cases) {
    const refusal = importDenied({ ...question, hostObject, ...more })
    if (reason) assert.match(refusal ?? 'allowed', reason)
    else assert.equal(refusal, undefined)
  }
  const config = { ...referenced, kind: 'ConfigMap' }
  const hostObject = hostSecret({ kind: 'ConfigMap' })
  assert.equal(
    importDenied({ ...question, referenced: config, hostObject, allow: [] }),
    undefined,
    'only Secrets need the list',
  )
})
