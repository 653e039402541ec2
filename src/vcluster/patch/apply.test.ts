// Patches on objects: every outcome in both directions, with the real sandbox.

import assert from 'node:assert/strict'
import { after, suite, test } from 'node:test'
import type { Json, JsonObject } from '../../api/object.ts'
import { openPatcher, type PatcherOptions, type PatchInput } from './apply.ts'
import type { Patch } from './patch.ts'
import { openSandbox } from './sandbox.ts'

const sandbox = openSandbox({ workers: 1 })
after(() => sandbox.close())

const endpoints = {
  apiVersion: 'v1',
  kind: 'Endpoints',
  metadata: {
    name: 'web-x-default-x-vc',
    namespace: 'host',
    uid: 'u1',
    resourceVersion: '7',
    labels: { app: 'web', 'vcluster.platform.sh/managed-by': 'vc' },
    annotations: { 'x.y/z': 'one', b: 'two', 'vcluster.platform.sh/object-name': 'web' },
  },
  subsets: [
    { addresses: [{ ip: '10.0.0.1' }, { ip: '10.0.0.2', hostname: 'h' }], ports: [{ port: 80 }] },
    { ports: [{ port: 81 }] },
  ],
}
const virtualObject = { ...endpoints, metadata: { name: 'web', namespace: 'default' } }

type Options = Partial<PatcherOptions> & Partial<PatchInput> & { readonly reverse?: boolean }

async function apply(patches: Patch | Patch[], options: Options = {}) {
  const vcluster = { name: 'vc', namespace: 'host', config: { sync: { toHost: {} } } }
  const { object = endpoints, hostObject = null, virtualObject: v = virtualObject, reverse, changes, ...rest } = options
  const patcher = openPatcher({ patches: [patches].flat(), vcluster, sandbox, ...rest })
  const patched = await patcher[reverse ? 'toVirtual' : 'toHost']({
    ...{ virtualObject: v, hostObject, object },
    ...(changes && { changes }),
  })
  return { ...patched, object: JSON.parse(JSON.stringify(patched.object)) as typeof endpoints & JsonObject }
}
const skippedIn = (patched: Awaited<ReturnType<typeof apply>>) =>
  patched.trace.flatMap(step => step.skipped.map(one => `${one.path}: ${one.reason}`))

suite('the outcome table', () => {
  test('a path without a match is skipped, and the other matches are patched', async () => {
    const none = await apply([
      { path: 'metadata.annotations.missing', expression: '"x"' },
      { path: 'kind.deeper', expression: '"x"' },
      { path: 'subsets[9].ports', expression: '"x"' },
    ])
    assert.deepEqual(none.object, endpoints)
    assert.equal(none.problem, undefined)
    assert.deepEqual(skippedIn(none), [
      'metadata.annotations: has no "missing"',
      'kind: is a string without fields',
      'subsets: has only 2 elements',
    ])
    const some = await apply({ path: 'subsets[*].addresses[*].hostname', expression: '"x-" + value' })
    assert.equal(some.object.subsets[0]?.addresses?.[1]?.hostname, 'x-h')
    assert.deepEqual(skippedIn(some), ['subsets[0].addresses[0]: has no "hostname"', 'subsets[1]: has no "addresses"'])
  })

  test('null and undefined remove the field or list element', async () => {
    for (const expression of ['null', 'undefined']) {
      const { object } = await apply({ path: 'metadata.annotations[x.y/z]', expression })
      assert.deepEqual(Object.keys(object.metadata.annotations), ['b', 'vcluster.platform.sh/object-name'])
    }
    const one = await apply({ path: 'subsets[*].addresses[*]', expression: 'value.hostname ? value : null' })
    assert.deepEqual(one.object.subsets[0]?.addresses, [{ ip: '10.0.0.2', hostname: 'h' }])
    const all = await apply({ path: 'subsets[*]', expression: 'null' })
    assert.deepEqual(all.object.subsets, [])
    const nulled = { ...endpoints, extra: null }
    assert.ok(
      !('extra' in (await apply({ path: 'extra', expression: 'valueExists ? 1 : null' }, { object: nulled })).object),
    )
  })

  test('context contains the concrete path, the objects and the virtual cluster', async () => {
    const { object } = await apply({ path: 'metadata.annotations.*', expression: 'context.path' })
    assert.equal(object.metadata.annotations['x.y/z'], 'metadata.annotations["x.y/z"]')
    const path = await apply({ path: 'subsets[0].addresses[1].ip', expression: 'context.path' })
    assert.equal(path.object.subsets[0]?.addresses?.[1]?.ip, 'subsets[0].addresses[1].ip')
    const expression =
      '[context.vcluster.name, context.vcluster.namespace, Object.keys(context.vcluster.config)[0], context.virtualObject.metadata.name, context.hostObject].map(String).join()'
    const b = await apply({ path: 'metadata.annotations.b', expression })
    assert.equal(b.object.metadata.annotations.b, 'vc,host,sync,web,null')
  })

  test('patches apply in order, each to the result of the previous one', async () => {
    const { object, trace } = await apply([
      { path: 'metadata.annotations.b', expression: 'value + "1"' },
      { path: 'metadata.annotations["b"  ]'.replace('"b"  ', 'x.y/z'), expression: '"z"' },
      { path: 'metadata.annotations', expression: '({ ...value, b: value.b + value["x.y/z"] })' },
    ])
    assert.equal(object.metadata.annotations.b, 'two1z')
    assert.deepEqual(trace[0]?.changes, [{ path: 'metadata.annotations.b', before: 'two', after: 'two1' }])
    assert.ok(trace.every(step => step.ms >= 0))
  })

  test('a direction without an expression changes nothing', async () => {
    const forward: Patch = { path: 'metadata.annotations.b', expression: '"x"' }
    const backward: Patch = { path: 'metadata.annotations.b', reverseExpression: '"y"' }
    assert.deepEqual((await apply(forward, { reverse: true })).object, endpoints)
    assert.deepEqual((await apply(backward)).object, endpoints)
    assert.equal((await apply(backward, { reverse: true })).object.metadata.annotations.b, 'y')
  })

  test('from the host, only labels and annotations that it changed are patched, and the trace has the reason for the rest', async () => {
    const changes = { labels: new Set<string>(), annotations: new Set(['b']) }
    const patches = ['metadata.annotations.*', 'metadata.labels', 'subsets[0].ports', 'metadata.annotations'].map(
      path => ({ path, reverseExpression: path === 'metadata.annotations' ? 'value' : '"reversed"' }),
    )
    const patched = await apply(patches, { reverse: true, changes })
    assert.deepEqual(patched.object.metadata.annotations, { ...endpoints.metadata.annotations, b: 'reversed' })
    assert.deepEqual(skippedIn(patched), [
      'subsets[0].ports: only labels and annotations are synced back',
      'metadata.labels: the host did not change it',
      'metadata.annotations["x.y/z"]: the host did not change it',
      'metadata.annotations["vcluster.platform.sh/object-name"]: is protected',
    ])
  })

  test('sync metadata, names, uid and resourceVersion are protected from wildcards and whole-object patches', async () => {
    const skipped = await apply([
      { path: 'metadata.*', expression: 'typeof value === "string" ? "hacked" : value' },
      { path: 'metadata.annotations.*', expression: '"hacked"' },
      { path: 'metadata.labels["vcluster.platform.sh/managed-by"]', expression: '"hacked"' },
      { path: 'metadata.uid', expression: '"hacked"' },
      { path: '*', expression: 'value === "v1" || value === "Endpoints" ? "hacked" : value' },
    ])
    assert.deepEqual({ ...skipped.object.metadata, annotations: {} }, { ...endpoints.metadata, annotations: {} })
    assert.deepEqual(skipped.object.metadata.annotations, {
      'x.y/z': 'hacked',
      b: 'hacked',
      'vcluster.platform.sh/object-name': 'web',
    })
    assert.ok(skippedIn(skipped).includes('metadata.uid: is protected'))

    const marks = { 'vcluster.platform.sh/object-name': 'web' }
    const rewritten: Patch[] = [
      {
        path: '',
        expression:
          '({ kind: "Secret", metadata: { name: "x", uid: "y", annotations: { "vcluster.platform.sh/new": "1" } } })',
      },
    ]
    const { object } = await apply(rewritten)
    const { labels: _, ...identity } = endpoints.metadata
    assert.deepEqual(object, {
      apiVersion: 'v1',
      kind: 'Endpoints',
      metadata: { ...identity, annotations: marks, labels: { 'vcluster.platform.sh/managed-by': 'vc' } },
    })
    assert.deepEqual((await apply({ path: 'metadata', expression: 'null' })).object.metadata.name, 'web-x-default-x-vc')
  })

  test('an expression that throws, times out or returns invalid JSON is reported with index, path and message', async () => {
    const cases: [string, RegExp][] = [
      ['value.nothing.more', /^TypeError: cannot read property 'more' of undefined$/],
      ['(() => { while (true) {} })()', /^took longer than 50 ms$/],
      ['"a".repeat(1e9)', /^needed more than 16 MiB of memory$/],
      ['() => 1', /^the result contains a function, which is not valid JSON$/],
    ]
    for (const [expression, message] of cases) {
      const patches = [
        { path: 'metadata.labels.app', expression: '"fine"' },
        { path: 'subsets[*].ports[*].port', expression },
      ]
      const { problem, object, trace } = await apply(patches)
      assert.equal(problem?.index, 1)
      assert.equal(problem?.path, 'subsets[0].ports[0].port')
      assert.match(problem?.message ?? '', message)
      assert.equal(object.metadata.labels.app, 'fine', 'the object is as the patch before left it')
      assert.equal(trace.length, 2)
    }
    const whole = await apply({ path: '', expression: '[1]' })
    assert.deepEqual(whole.problem, {
      index: 0,
      path: '',
      message: 'the whole object must stay a map; the expression returned a list',
      expression: 'expression',
    })
    assert.match((await apply({ path: '', expression: 'null' })).problem?.message ?? '', /returned nothing/)
    assert.match(
      (await apply({ path: 'metadata.labels', expression: '"x"' })).problem?.message ?? '',
      /labels must stay a map/,
    )
  })

  test('a result that violates the schema is reported for the patch that caused it', async () => {
    const validate = (object: JsonObject) =>
      (object['subsets'] as unknown as Json[]).length > 1 ? [] : ['subsets: Required value']
    const fine = { path: 'metadata.labels.app', expression: '"fine"' }
    const bad = { path: 'subsets', expression: 'value.slice(1)' }
    const { problem } = await apply([fine, bad, { path: 'metadata.annotations.b', expression: '"x"' }], { validate })
    const expression = 'expression'
    assert.deepEqual(problem, { index: 1, path: 'subsets', message: 'subsets: Required value', expression })
    const mended = await apply([bad, { path: '', expression: '({ ...value, subsets: [1, 2] })' }], { validate })
    assert.equal(mended.problem, undefined, 'what counts is the object at the end')
  })

  test('the input is not modified, and the same input has the same result', async () => {
    const before = JSON.stringify(endpoints)
    const patch: Patch = { path: '', expression: '(value.metadata.annotations.b = "x", value.subsets.pop(), value)' }
    const first = await apply(patch)
    const second = await apply(patch)
    assert.equal(JSON.stringify(endpoints), before)
    assert.deepEqual(first.object, second.object)
    const again = await apply({ path: 'metadata.annotations.b', expression: '"fixed"' }, { object: first.object })
    assert.equal(again.object.metadata.annotations.b, 'fixed')
  })
})

test('a key such as __proto__ is an ordinary key', async () => {
  const object = JSON.parse('{"metadata":{"annotations":{"__proto__":"a","constructor":"b"}}}')
  const patched = await openPatcher({
    patches: [{ path: 'metadata.annotations.*', expression: 'value + "!"' }],
    vcluster: { name: 'vc', namespace: 'host', config: {} },
    sandbox,
  }).toHost({ virtualObject: null, hostObject: null, object })
  assert.equal(JSON.stringify(patched.object), '{"metadata":{"annotations":{"__proto__":"a!","constructor":"b!"}}}')
})

test('opening a patcher with invalid patches throws', () => {
  const vcluster = { name: 'vc', namespace: 'host', config: {} }
  const patches = [{ path: 'a', expression: 'nonsense' }]
  assert.throws(() => openPatcher({ patches, vcluster, sandbox }), /patches\.0\.expression: unknown name "nonsense"/)
})

test('virtualToHostDNS uses the configured cluster domain and is not available in multi-namespace mode', async () => {
  const object = { metadata: { annotations: { a: 'nginx.default.svc' } } }
  const patches = [{ path: 'metadata.annotations.a', expression: 'virtualToHostDNS(value)' }]
  const config = { networking: { advanced: { clusterDomain: 'example.org' } } }
  const input = { virtualObject: null, hostObject: null, object }
  const one = await openPatcher({ patches, vcluster: { name: 'vc', namespace: 'ns', config }, sandbox }).toHost(input)
  assert.deepEqual(JSON.parse(JSON.stringify(one.object)), {
    metadata: { annotations: { a: 'nginx-x-default-x-vc.ns.svc.example.org' } },
  })
  const multiNamespace = { toHost: (name: string) => name, toVirtual: (name: string) => name }
  const many = await apply(patches, { object, multiNamespace })
  assert.match(many.problem?.message ?? '', /multi-namespace mode/)
})
