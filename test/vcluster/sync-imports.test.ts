// --import-allow: objects of the host that references import by their own name, and objects that never leave the host.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Resource } from '../../src/api/object.ts'
import { importAllowProblem } from '../../src/vcluster/patch/import-policy.ts'
import type { Patch } from '../../src/vcluster/patch/patch.ts'
import { ConfigMap, Secret } from '../../src/vcluster/sync/kinds.ts'
import { shortName } from '../../src/vcluster/sync/names.ts'
import { until } from '../support/cluster.ts'
import { dataObject, twoClusters } from './two-clusters.ts'

const toSecret: Patch = { path: 'metadata.annotations.key', reference: { apiVersion: 'v1', kind: 'Secret' } }
const toConfigMap: Patch = { path: 'metadata.annotations.key', reference: { apiVersion: 'v1', kind: 'ConfigMap' } }
type Data = { readonly a?: string }
const dataOf = (object: Resource | undefined): Data => ({ ...(object as unknown as { readonly data?: Data })?.data })
const own = { namespace: 'default', name: 'ca' }
const source = { namespace: 'team', name: 'ca' }
const translated = shortName('ca', 'default', 'vc')

describe('an object of the host with its own name', { timeout: 120_000 }, () => {
  const { v, h, make, start, onHost, unresolved, resolved, annotate, sync, conditions } = twoClusters()
  const keyIs = (name: string) =>
    until(`the name ${name}`, async () => (await onHost())?.metadata.annotations?.['key'] === name)
  const refer = () => make({ metadata: { annotations: { key: 'ca' } } })

  for (const [patch, allow, kind] of [
    [toSecret, 'Secret/ca', Secret],
    [toSecret, 'Secret/c*', Secret],
    [toConfigMap, 'ConfigMap/ca', ConfigMap],
  ] as const)
    test(`is imported with ${allow}, keeps its name, and the copy follows it`, async () => {
      await h().create(dataObject(kind.kind, 'team', 'ca'))
      await refer()
      await start([patch], { importAllow: [allow] })
      await keyIs('ca')
      const copy = await until('the copy', () => v().get(own, kind))
      assert.deepEqual(dataOf(copy), { a: 'Yg==' })
      await sync().settled()
      assert.deepEqual(await conditions(), [])
      assert.equal(await h().get({ namespace: 'team', name: translated }, kind), undefined, 'nothing is pushed')
      await h().patch(source, { data: { a: 'Yw==' } }, kind)
      await until('the change', async () => dataOf(await v().get(own, kind)).a === 'Yw==')
      await v().patch(own, { data: { a: 'dGVuYW50' } }, kind)
      await until('the source again', async () => dataOf(await v().get(own, kind)).a === 'Yw==')
      assert.equal(dataOf(await h().get(source, kind)).a, 'Yw==', 'the tenant does not change the source')
      await h().remove(source, kind)
      await until('the end of the copy', async () => (await v().get(own, kind)) === undefined)
      await unresolved(/ca does not exist/)
      await keyIs(translated)
    })

  test('loses to an object of the tenant, which is pushed', async () => {
    await h().create(dataObject('Secret', 'team', 'ca', { data: { a: 'aG9zdA==' } }))
    await v().create(dataObject('Secret', 'default', 'ca', { data: { a: 'dGVuYW50' } }))
    await refer()
    await start([toSecret], { importAllow: ['Secret/ca'] })
    await keyIs(translated)
    const pushed = await until('the push', () => h().get({ namespace: 'team', name: translated }, Secret))
    assert.equal(dataOf(pushed).a, 'dGVuYW50')
    await sync().settled()
    assert.equal(dataOf(await v().get(own, Secret)).a, 'dGVuYW50')
    assert.equal(dataOf(await h().get(source, Secret)).a, 'aG9zdA==')
    await v().remove(own, Secret)
    await keyIs('ca')
    await until('the import', async () => dataOf(await v().get(own, Secret)).a === 'aG9zdA==')
  })

  test('is an object of the tenant if the tenant copied an import under another name', async () => {
    await h().create(dataObject('Secret', 'team', 'ca'))
    await refer()
    await start([toSecret], { importAllow: ['Secret/ca'] })
    const { metadata } = await until('the copy', () => v().get(own, Secret))
    await v().create({
      ...dataObject('Secret', 'default', 'mine'),
      metadata: { namespace: 'default', name: 'mine', annotations: metadata.annotations ?? {} },
    })
    await annotate({ key: 'mine' })
    const name = shortName('mine', 'default', 'vc')
    await keyIs(name)
    await until('the push', () => h().get({ namespace: 'team', name }, Secret))
    assert.ok(await v().get({ namespace: 'default', name: 'mine' }, Secret))
  })

  const helm = { metadata: { ...source, labels: { owner: 'helm' } } }
  const account = { metadata: { ...source, annotations: { 'kubernetes.io/service-account.name': 'default' } } }
  const other = { metadata: { ...source, labels: { 'vcluster.platform.sh/managed-by': 'other' } } }
  const elsewhere = { metadata: { namespace: 'other', name: 'ca' } }
  for (const [what, patch, allow, more] of [
    ['without the flag', toSecret, [], {}],
    ['with another name in the flag', toSecret, ['Secret/cb', 'Secret/ca-*', 'ConfigMap/ca'], {}],
    ['with only the kind in the flag', toSecret, ['Secret'], {}],
    ['of another namespace', toSecret, ['Secret/ca'], elsewhere],
    ['of another virtual cluster', toSecret, ['Secret/ca'], other],
    ['that is a token', toSecret, ['Secret/ca'], { ...account, type: 'kubernetes.io/service-account-token' }],
    ['that is a bootstrap token', toSecret, ['Secret/ca'], { type: 'bootstrap.kubernetes.io/token' }],
    ['that is a Helm release', toSecret, ['Secret/ca'], { type: 'helm.sh/release.v1' }],
    ['that is a Helm release in a ConfigMap', toConfigMap, ['ConfigMap/ca'], helm],
  ] as const)
    test(`${what} stays on the host`, async () => {
      const kind = patch === toSecret ? Secret : ConfigMap
      await h().create(dataObject(kind.kind, 'team', 'ca', more))
      await refer()
      await start([patch], { importAllow: allow })
      const told = await unresolved(/ca does not exist in the virtual cluster$/)
      assert.doesNotMatch(JSON.stringify(told), /team|other|-x-/)
      await keyIs(translated)
      assert.equal(await v().get(own, kind), undefined)
    })

  test('ends with its entry in the flag', async () => {
    await h().create(dataObject('Secret', 'team', 'ca'))
    await refer()
    await start([toSecret], { importAllow: ['Secret/ca'] })
    await until('the copy', () => v().get(own, Secret))
    await resolved()
    await sync().stop()
    await start([toSecret])
    await until('the end of the copy', async () => (await v().get(own, Secret)) === undefined)
    await keyIs(translated)
  })

  test('is imported from the mapped namespace in multi-namespace mode', async () => {
    await h().create(dataObject('Secret', 'other', 'ca'))
    await refer()
    const namespaces = { enabled: true, mappings: { byName: { default: 'other' } } }
    await start([toSecret], { importAllow: ['Secret/c*'] }, { namespaces })
    await until('the copy', () => v().get(own, Secret))
    await h().remove({ namespace: 'other', name: 'ca' }, Secret)
    await until('the end of the copy', async () => (await v().get(own, Secret)) === undefined)
  })

  for (const [kind, patch, importAllow] of [
    [Secret, toSecret, ['Secret', 'Secret/b*']],
    [ConfigMap, toConfigMap, ['ConfigMap']],
    [ConfigMap, toConfigMap, []],
  ] as const)
    test(`of a ${kind.kind} needs its name in multi-namespace mode, not only ${JSON.stringify(importAllow)}`, async () => {
      await h().create(dataObject(kind.kind, 'other', 'ca'))
      await refer()
      const namespaces = { enabled: true, mappings: { byName: { default: 'other' } } }
      await start([patch], { importAllow }, { namespaces })
      await unresolved(/ca is not imported from the host: --import-allow does not list it$/)
      assert.equal(await v().get(own, kind), undefined)
    })
})

test('an entry of --import-allow is a kind, a name or a prefix', () => {
  const problem = (entry: string, kinds: readonly string[] = []) => importAllowProblem(entry, kinds)
  for (const entry of ['Secret', 'ConfigMap', 'Secret/ca', 'ConfigMap/kube-root-ca.crt', 'Secret/shared-*'])
    assert.equal(problem(entry), undefined, entry)
  assert.equal(problem('Ingress.networking.k8s.io/web', ['Ingress.networking.k8s.io']), undefined)
  assert.match(problem('Ingress.networking.k8s.io/web') ?? '', /add --sync-references Ingress\.networking\.k8s\.io/)
  for (const entry of ['', 'secret/ca', 'Secret/', 'Secret/*', 'Secret/a*b', 'Secret/A', 'Secret/a/b'])
    assert.match(problem(entry) ?? '', /^--import-allow: .*must be/, entry)
  assert.match(problem('Role.rbac.authorization.k8s.io/x') ?? '', /never cross/)
})
