// References of patches: translated once, and reported while their targets are missing.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { JsonObject } from '../../src/api/object.ts'
import { loadConfig } from '../../src/vcluster/config/config.ts'
import type { Patch } from '../../src/vcluster/patch/patch.ts'
import { previewToHost } from '../../src/vcluster/patch/preview.ts'
import { openSandbox } from '../../src/vcluster/patch/sandbox.ts'
import { ConfigMap, Secret, Service } from '../../src/vcluster/sync/kinds.ts'
import { hostName, shortName } from '../../src/vcluster/sync/names.ts'
import { endpoints, until } from '../support/cluster.ts'
import { dataObject, twoClusters } from './two-clusters.ts'

const toSecret: Patch = { path: 'metadata.annotations.key', reference: { apiVersion: 'v1', kind: 'Secret' } }
const toConfigMap: Patch = { path: 'metadata.annotations.settings', reference: { apiVersion: 'v1', kind: 'ConfigMap' } }
const pod = { apiVersion: 'v1', kind: 'Pod' }
const withTarget = (targetRef: object) => ({
  subsets: [{ addresses: [{ ip: '10.0.0.1', targetRef }], ports: [{ port: 80 }] }],
})

describe('a reference to the Pod of an address is translated once', { timeout: 120_000 }, () => {
  const { h, make, start, onHost, sync } = twoClusters()
  const paths = [
    'subsets[*].addresses[*]',
    'subsets[*].addresses[*].targetRef',
    'subsets[*].addresses[*].targetRef.name',
  ]
  const [address, target, name] = paths as [string, string, string]
  const cases: readonly { readonly what: string; readonly patches: readonly Patch[] }[] = [
    { what: 'the name', patches: [{ path: name, reference: pod }] },
    { what: 'the targetRef', patches: [{ path: target, reference: { ...pod, namePath: 'name', kindPath: 'kind' } }] },
    {
      what: 'the targetRef with its namespace',
      patches: [{ path: target, reference: { ...pod, namePath: 'name', namespacePath: 'namespace' } }],
    },
    { what: 'the address', patches: [{ path: address, reference: { ...pod, namePath: 'targetRef.name' } }] },
    {
      what: 'the name twice, after another address is gone',
      patches: [
        { path: 'subsets', expression: 'value.map(one => ({ ...one, addresses: one.addresses.slice(-1) }))' },
        { path: target, reference: { ...pod, namePath: 'name' } },
        { path: name, reference: pod },
      ],
    },
  ]
  for (const { what, patches } of cases)
    for (const namespace of [undefined, 'other'])
      test(`${what}, ${namespace ?? 'own'} namespace`, async () => {
        const targetRef = { kind: 'Pod', name: 'web-0', ...(namespace && { namespace }) }
        const first = { ip: '10.0.0.9', targetRef: { kind: 'Pod', name: 'gone' } }
        const [subset] = withTarget(targetRef).subsets
        const addresses = what.includes('gone') ? [first, ...(subset?.addresses ?? [])] : subset?.addresses
        await make({ subsets: [{ ...subset, addresses }] })
        await start(patches)
        const found = (await until('the object', onHost)).subsets?.[0]?.addresses?.[0]?.targetRef
        const wanted = hostName('web-0', namespace ?? 'default', 'vc')
        assert.deepEqual({ ...found }, { kind: 'Pod', name: wanted, namespace: 'team' })
        await sync().settled()
        assert.deepEqual(sync().failures(), [])
      })

  test('in multi-namespace mode the namespace is mapped once', async () => {
    await make(withTarget({ kind: 'Pod', name: 'web-0', namespace: 'default' }))
    const reference = { ...pod, namePath: 'name', namespacePath: 'namespace' }
    const namespaces = { enabled: true, mappings: { byName: { default: 'other' } } }
    await start([{ path: target, reference }], {}, { namespaces })
    await sync().ready
    await sync().settled()
    const found = (await until('the object', () => h().get({ namespace: 'other', name: 'web' }))).subsets?.[0]
    assert.deepEqual({ ...found?.addresses?.[0]?.targetRef }, { kind: 'Pod', name: 'web-0', namespace: 'other' })
  })

  test('a name that a patch wrote before is translated', async () => {
    await make(withTarget({ kind: 'Pod', name: 'web-0' }))
    await start([
      { path: target, expression: '({ kind: "Pod", name: "web-1" })' },
      { path: name, reference: pod },
    ])
    const found = (await until('the object', onHost)).subsets?.[0]?.addresses?.[0]?.targetRef
    assert.equal(found?.name, hostName('web-1', 'default', 'vc'))
  })

  test('an expression that edits the name has the same result before and after a reference (200 cases)', async t => {
    const sandbox = openSandbox({ workers: 1 })
    t.after(sandbox.close)
    const word = fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,60}[a-z0-9])?$/)
    const edit = fc.constantFrom('"x-" + value', 'value + "-y"', '"z" + value.slice(1)', '"x-" + value + "-y"')
    const reference = fc.constantFrom<Patch>(
      { path: target, reference: { ...pod, kindPath: 'kind', namePath: 'name' } },
      { path: address, reference: { ...pod, namePath: 'targetRef.name' } },
    )
    const onHostWith = async (patches: readonly Patch[], virtualObject: JsonObject) => {
      const text = JSON.stringify({ sync: { toHost: { endpoints: { patches } } } })
      const { config } = loadConfig(new TextEncoder().encode(text), { noPatchesReason: undefined })
      const options = { config, name: 'vc', namespace: 'team', sandbox, now: () => 0 }
      const { object, problem } = await previewToHost({ virtualObject, hostObject: null }, options)
      assert.equal(problem, undefined)
      return (object as unknown as ReturnType<typeof withTarget>).subsets[0]?.addresses[0]?.targetRef
    }
    const once = fc.asyncProperty(word, word, edit, reference, async (one, namespace, expression, patch) => {
      const object = {
        ...endpoints('web'),
        ...withTarget({ kind: 'Pod', name: one, namespace }),
      } as unknown as JsonObject
      const edited: Patch = { path: name, expression }
      const wanted = await onHostWith([edited], object)
      assert.deepEqual(await onHostWith([patch, edited], object), wanted)
      assert.deepEqual(await onHostWith([edited, patch], object), wanted)
    })
    await fc.assert(once, { numRuns: 200 })
  })
})

describe('a reference without a target', { timeout: 120_000 }, () => {
  const suite = twoClusters()
  const { v, h, at, make, start, stop, onHost, sync, logged } = suite
  const { conditions, condition, unresolved, resolved, events, annotate } = suite
  const cases = [
    ['does not exist', toSecret, { key: 'tls' }, /^Secret default\/tls does not exist in the virtual cluster$/],
    [
      'has a kind that is not synced',
      {
        path: 'metadata.annotations.key',
        reference: { apiVersion: 'networking.k8s.io/v1', kind: 'Ingress' },
      },
      { key: 'web' },
      /^Ingress\.networking\.k8s\.io default\/web is not synced to the host: the syncer does not sync this kind$/,
    ],
    [
      'has a kind that never crosses',
      { path: 'metadata.annotations.key', reference: { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role' } },
      { key: 'admin' },
      /^Role\.rbac\.authorization\.k8s\.io default\/admin is not synced to the host: this kind never crosses$/,
    ],
  ] as const satisfies readonly (readonly [string, Patch, object, RegExp])[]
  for (const [what, patch, annotations, message] of cases)
    test(`that ${what} is reported by condition, Event and log, and the endpoint is synced`, async () => {
      await make({ metadata: { annotations } })
      await start([patch])
      const told = await unresolved(message)
      assert.deepEqual([told.status, told.reason], ['False', 'UnresolvedReferences'])
      assert.doesNotMatch(JSON.stringify(told), /team|-x-|"v[0-9a-z]{13}/)
      assert.ok(await onHost())
      await until('the Event', async () =>
        (await events()).some(event => event.reason === 'UnresolvedReferences' && message.test(event.message)),
      )
      await sync().settled()
      assert.deepEqual(sync().failures(), [], 'it does not count as a failure')
      assert.equal(logged().filter(line => line.startsWith('UnresolvedReferences: ')).length, 1)
      await annotate({ key: null })
      await resolved()
    })

  test('resolves when the target appears, and is reported again when it disappears', async () => {
    await make({ metadata: { annotations: { key: 'tls', settings: 'web' } } })
    await start([toSecret, toConfigMap])
    await unresolved(/Secret default\/tls .*; ConfigMap default\/web /)
    await v().create(dataObject('ConfigMap', 'default', 'web'))
    await unresolved(/^Secret default\/tls does not exist in the virtual cluster$/)
    await v().create(dataObject('Secret', 'default', 'tls'))
    await resolved()
    assert.ok(await h().get({ namespace: 'team', name: shortName('tls', 'default', 'vc') }, Secret))
    await v().remove({ namespace: 'default', name: 'web' }, ConfigMap)
    await unresolved(/^ConfigMap default\/web /)
  })

  test('stays reported after a restart, without another write', async () => {
    await make({ metadata: { annotations: { key: 'tls' } } })
    await start([toSecret])
    await unresolved(/tls/)
    await sync().settled()
    const before = (await v().get(at))?.metadata.resourceVersion
    await stop()
    await start([toSecret])
    await sync().ready
    await sync().settled()
    assert.equal((await v().get(at))?.metadata.resourceVersion, before)
  })

  test('that may not be imported is a failure as before, and also unresolved', async () => {
    const name = shortName('tls', 'default', 'vc')
    await h().create(dataObject('Secret', 'team', name))
    await make({ metadata: { annotations: { key: 'tls', settings: 'web' } } })
    await start([toSecret, toConfigMap])
    const told = await unresolved(/Secret default\/tls/)
    assert.match(told.message, /ConfigMap default\/web does not exist/)
    assert.deepEqual(
      (await conditions()).map(one => [one.type, one.reason]),
      [
        ['Synced', 'ReferenceFailed'],
        ['ReferencesResolved', 'UnresolvedReferences'],
      ],
    )
    assert.doesNotMatch(JSON.stringify(await conditions()), /team|-x-/)
    assert.ok(!JSON.stringify(await conditions()).includes(name))
    await h().remove({ namespace: 'team', name }, Secret)
    await until('the failure ends', async () => (await condition('Synced')) === undefined)
    await unresolved(/Secret default\/tls does not exist/)
  })

  test('whose copy belongs to somebody else is a failure as before, and also unresolved', async () => {
    await h().create(dataObject('Secret', 'team', shortName('tls', 'default', 'vc')))
    await v().create(dataObject('Secret', 'default', 'tls'))
    await make({ metadata: { annotations: { key: 'tls' } } })
    await start([toSecret])
    await unresolved(
      /^Secret default\/tls is not synced to the host: the existing host object was not created by this syncer$/,
    )
    assert.equal((await condition('Synced'))?.reason, 'ReferenceFailed')
  })

  test('with sync of its kind switched off is reported', async () => {
    await v().create(dataObject('Secret', 'default', 'tls'))
    await make({ metadata: { annotations: { key: 'tls' } } })
    await start([toSecret], {}, { secrets: { enabled: false } })
    await unresolved(/^Secret default\/tls is not synced to the host: the syncer does not sync this kind$/)
  })

  test('in a namespace without a mapping is reported', async () => {
    await make({
      metadata: { annotations: { key: 'tls' } },
      ...withTarget({ kind: 'Secret', name: 'x', namespace: 'no' }),
    })
    const reference = { apiVersion: 'v1', kind: 'Secret', namePath: 'name', namespacePath: 'namespace' }
    const namespaces = { enabled: true, mappings: { byName: { default: 'other' } } }
    await start([{ path: 'subsets[*].addresses[*].targetRef', reference }], {}, { namespaces })
    await unresolved(/^Secret no\/x is not synced to the host: namespace "no" is not synced$/)
  })

  test('ends with its Service, which removes the conditions', async () => {
    await make({ metadata: { annotations: { key: 'tls' } } })
    await start([toSecret])
    await unresolved(/tls/)
    await v().remove({ namespace: 'default', name: 'web' }, Service)
    await resolved()
  })
})
