// References: names in both directions, in both modes, selectors, and what may be imported.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Json, JsonObject } from '../../api/object.ts'
import { hostName, shortName } from '../sync/names.ts'
import { importRefusal } from './import-policy.ts'
import { rewriteSelector } from './label-selector.ts'
import { type Direction, type Referent, type RewriteOptions, rewriteReference } from './reference.ts'

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
    referent?: Referent
  }

test('in single-namespace mode a name becomes a generated one that starts with v, and the referent is told', () => {
  const name = shortName('db', 'default', 'vc')
  assert.match(name, /^v/)
  assert.deepEqual(rewrite('db', 'toHost'), {
    value: name,
    referent: {
      ...secret,
      namespace: 'default',
      name: 'db',
      hostNamespace: 'host',
      hostName: name,
      path: 'metadata.annotations.secret',
    },
  })
})

test('kinds that are on the host under their long name keep it', () => {
  const reference = { apiVersion: 'v1', kind: 'Service' }
  const name = hostName('web', 'default', 'vc')
  assert.equal(rewrite('web', 'toHost', { reference }).value, name)
  assert.equal(rewrite(name, 'toVirtual', { reference }).value, 'web', 'and tell what they were made from')
})

test('a generated name is taken back by what the virtual object says; one that nobody gave stays', () => {
  const name = shortName('db', 'default', 'vc')
  assert.equal(rewrite(name, 'toVirtual', { virtualValue: 'db' }).value, 'db')
  assert.match(rewrite(name, 'toVirtual').skipped ?? '', /is no name that this virtual cluster gave/)
  assert.match(rewrite('other', 'toVirtual', { virtualValue: 'db' }).skipped ?? '', /"other" is no name/)
})

test('in multi-namespace mode names stay and namespaces are mapped', () => {
  const reference = { ...secret, namePath: 'name', namespacePath: 'namespace' }
  const options = { reference, multiNamespace: mapping, namespace: 'team-a' }
  const there = rewrite({ name: 'db', namespace: 'team-b' }, 'toHost', options)
  assert.deepEqual(there.value, { name: 'db', namespace: 'host-team-b' })
  assert.equal(there.referent?.hostNamespace, 'host-team-b')
  assert.deepEqual(rewrite(there.value as Json, 'toVirtual', options).value, { name: 'db', namespace: 'team-b' })
  assert.equal(
    rewrite({ name: 'db' }, 'toHost', options).referent?.namespace,
    'team-a',
    'falls back to metadata.namespace',
  )
  assert.match(rewrite({ name: 'db', namespace: 'x' }, 'toHost', options).skipped ?? '', /namespace "x" is not synced/)
})

test('kindPath and apiVersionPath say what is referred to, and fall back to the fixed values', () => {
  const reference = { ...secret, namePath: 'ref.name', kindPath: 'ref.kind', apiVersionPath: 'ref["apiVersion"]' }
  const value = { ref: { name: 'web', kind: 'Service', apiVersion: 'v1', other: [1] } }
  const there = rewrite(value, 'toHost', { reference })
  assert.deepEqual(there.value, { ref: { ...value.ref, name: 'web-x-default-x-vc' } })
  assert.equal(there.referent?.kind, 'Service')
  assert.equal(rewrite({ ref: { name: 'db' } }, 'toHost', { reference }).referent?.kind, 'Secret')
})

test('in single-namespace mode a namespace in the value becomes the one on the host, and back', () => {
  const reference = { ...secret, namePath: 'name', namespacePath: 'namespace' }
  const value = { name: 'db', namespace: 'prod' }
  const there = rewrite(value, 'toHost', { reference })
  assert.deepEqual(there.value, { name: shortName('db', 'prod', 'vc'), namespace: 'host' })
  assert.deepEqual(rewrite(there.value as Json, 'toVirtual', { reference, virtualValue: value }).value, value)
})

test('a value that holds no name is left alone, and says why', () => {
  const reasons: [Json, Partial<RewriteOptions>, RegExp][] = [
    ['', {}, /empty text/],
    [7, {}, /is no text; set namePath/],
    [{ name: 'x' }, {}, /set namePath/],
    ['x', { reference: { ...secret, namePath: 'name' } }, /is no map/],
    [{ name: 7 }, { reference: { ...secret, namePath: 'name' } }, /has no name at name/],
  ]
  for (const [value, more, reason] of reasons) assert.match(rewrite(value, 'toHost', more).skipped ?? '', reason)
})

test('every name goes to the host and comes back (1000 cases)', () => {
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

test('a selector of labels says on the host which virtual cluster and namespace it means, and loses that again', () => {
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
  assert.match(selector('app=web', 'toHost').skipped, /no label selector/)
})

const referent: Referent = {
  ...{ ...secret, namespace: 'default', name: 'db', path: 'x' },
  hostNamespace: 'host',
  hostName: shortName('db', 'default', 'vc'),
}
const hostSecret = (more: JsonObject = {}, metadata: JsonObject = {}): JsonObject => ({
  ...secret,
  ...more,
  metadata: { name: referent.hostName, namespace: 'host', ...metadata },
})

test('an import is refused unless everything about it is right', () => {
  const question = { referent, virtualExists: false, vcluster, allow: ['Secret'] }
  const cases: [JsonObject | null, RegExp | undefined, Partial<Parameters<typeof importRefusal>[0]>?][] = [
    [hostSecret(), undefined],
    [hostSecret(), undefined, { allow: [`Secret/${referent.hostName}`] }],
    [hostSecret({ type: 'Opaque' }, { labels: { 'app.kubernetes.io/managed-by': 'Helm' } }), undefined],
    [null, /not on the host/],
    [hostSecret(), /overwrites nothing/, { virtualExists: true }],
    [hostSecret(), /--import-allow does not list it/, { allow: [] }],
    [hostSecret(), /--import-allow does not list it/, { allow: ['Secret/other', 'ConfigMap'] }],
    [hostSecret({ type: 'kubernetes.io/service-account-token' }), /never imported/],
    [hostSecret({ type: 'helm.sh/release.v1' }), /never imported/],
    [hostSecret({ type: 'bootstrap.kubernetes.io/token' }), /never imported/],
    [hostSecret({}, { annotations: { 'kubernetes.io/service-account.name': 'x' } }), /never imported/],
    [hostSecret({}, { namespace: 'kube-system' }), /not in namespace host/],
    [hostSecret({}, { name: 'db' }), /not called v/],
    [hostSecret({ kind: 'ConfigMap' }), /not a v1 Secret/],
    [hostSecret({}, { deletionTimestamp: '2026-01-01T00:00:00Z' }), /being deleted/],
    [hostSecret({}, { labels: { 'vcluster.platform.sh/managed-by': 'vc' } }), /a copy that this virtual cluster made/],
    [hostSecret({}, { labels: { 'vcluster.platform.sh/managed-by': 'other' } }), /another virtual cluster/],
    [hostSecret({}, { labels: { 'vcluster.example.com/managed-by': 'vc' } }), /another virtual cluster/],
    [hostSecret({}, { annotations: { 'vcluster.example.com/object-name': 'db' } }), /another virtual cluster/],
  ]
  for (const [hostObject, reason, more] of cases) {
    const refusal = importRefusal({ ...question, hostObject, ...more })
    if (reason) assert.match(refusal ?? 'allowed', reason)
    else assert.equal(refusal, undefined)
  }
  const config = { ...referent, kind: 'ConfigMap' }
  const hostObject = hostSecret({ kind: 'ConfigMap' })
  assert.equal(
    importRefusal({ ...question, referent: config, hostObject, allow: [] }),
    undefined,
    'only Secrets need the list',
  )
})
