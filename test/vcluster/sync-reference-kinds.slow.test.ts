// --sync-references: further kinds of referenced objects reach the host, and dangerous kinds never do.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { ApiError } from '../../src/api/errors.ts'
import { defineKind, type Kind } from '../../src/api/kind.ts'
import type { JsonObject, Resource } from '../../src/api/object.ts'
import { mapOf } from '../../src/api/schema.ts'
import { neverCrosses, parseKind, syncReferencesProblem } from '../../src/vcluster/config/reference-kinds.ts'
import type { Patch } from '../../src/vcluster/patch/patch.ts'
import { clusterKinds } from '../../src/vcluster/sync/kinds.ts'
import { shortName } from '../../src/vcluster/sync/names.ts'
import { until } from '../support/cluster.ts'
import { exec } from '../support/exec.ts'
import { twoClusters } from './two-clusters.ts'

const program = join(import.meta.dirname, '../../bin/platform.js')
const free = { 'x-kubernetes-preserve-unknown-fields': true } as const
const anything = mapOf({ ...free, type: 'object' } as never, 'Anything.', free)
const kind = (group: string, name: string, plural: string, namespaced = true): Kind =>
  defineKind({
    ...{ group, version: 'v1', kind: name, plural, singular: name.toLowerCase(), namespaced },
    description: `${name} is a kind of this test.`,
    fields: { spec: anything, status: anything },
    sample: { apiVersion: group ? `${group}/v1` : 'v1', kind: name, metadata: { name: 'a' } } as Resource,
  })
const Claim = kind('', 'PersistentVolumeClaim', 'persistentvolumeclaims')
const Ingress = kind('networking.k8s.io', 'Ingress', 'ingresses')
const Role = kind('rbac.authorization.k8s.io', 'Role', 'roles')
const Account = kind('', 'ServiceAccount', 'serviceaccounts')
const Wide = kind('example.org', 'Wide', 'wides', false)
const kinds = [...clusterKinds, Claim, Ingress, Role, Account, Wide]

const byPath: Patch = {
  path: 'subsets[*].addresses[*].targetRef',
  reference: { apiVersion: 'v1', kind: 'Secret', apiVersionPath: 'apiVersion', kindPath: 'kind', namePath: 'name' },
}
const refersTo = ({ apiVersion, kind: name }: Kind) => ({
  subsets: [
    { addresses: [{ ip: '10.0.0.1', targetRef: { apiVersion, kind: name, name: 'data' } }], ports: [{ port: 80 }] },
  ],
})
const at = { namespace: 'default', name: 'data' }
const copyAt = { namespace: 'team', name: shortName('data', 'default', 'vc') }

describe('with --sync-references', { timeout: 120_000 }, () => {
  const suite = twoClusters(kinds)
  const { v, h, make, start, onHost, unresolved, resolved, sync } = suite
  const run = (list: readonly string[]) =>
    start([byPath], {
      syncReferences: list.map(text => parseKind(text) as NonNullable<ReturnType<typeof parseKind>>),
      discover: { virtual: suite.side(0).discover, host: suite.side(1).discover },
    })
  const object = ({ apiVersion, kind: name }: Kind, metadata: object, spec: object, status?: object) =>
    ({ apiVersion, kind: name, metadata, spec, ...(status && { status }) }) as unknown as Resource
  const copyOf = (one: Kind) => h().get(copyAt, one)

  test('an object of a listed kind is copied without status, owners and finalizers, and follows its source', async () => {
    const owner = { apiVersion: 'v1', kind: 'Service', name: 'x', uid: 'y' }
    const metadata = { ...at, labels: { a: 'b' }, finalizers: ['example.org/x'], ownerReferences: [owner] }
    await v().create(object(Ingress, metadata, { className: 'a', tls: ['x'] }, { ip: '1.2.3.4' }))
    await make(refersTo(Ingress))
    await run(['PersistentVolumeClaim', 'Ingress.networking.k8s.io'])
    const copy = await until('the copy', () => copyOf(Ingress))
    const { spec, status } = copy as unknown as { readonly spec: object; readonly status?: object }
    assert.deepEqual([{ ...spec }, status], [{ className: 'a', tls: ['x'] }, undefined])
    const { finalizers, ownerReferences, labels } = copy.metadata
    assert.deepEqual([finalizers, ownerReferences, labels?.['a']], [undefined, undefined, 'b'])
    assert.equal(copy.metadata.annotations?.['vcluster.platform.sh/object-name'], 'data')
    await resolved()
    // A controller of the host completes the object. The syncer keeps that, and writes nothing.
    const note = { 'ingress.kubernetes.io/bound': 'yes' }
    await h().patch(
      copyAt,
      { metadata: { annotations: note, finalizers: ['example.org/host'] }, spec: { chosen: 'h' } },
      Ingress,
    )
    const before = (await copyOf(Ingress))?.metadata.resourceVersion
    sync().resyncAll()
    await sync().settled()
    assert.equal((await copyOf(Ingress))?.metadata.resourceVersion, before)
    await v().patch(at, { spec: { className: 'b', tls: null } }, Ingress)
    const changed = await until('the change', async () => {
      const found = (await copyOf(Ingress)) as unknown as (Resource & { readonly spec: JsonObject }) | undefined
      return found?.spec['className'] === 'b' && found
    })
    assert.equal(changed.spec['tls'], undefined, 'a removed field is removed')
    assert.deepEqual(changed.metadata.finalizers, ['example.org/host'])
    assert.equal(changed.metadata.annotations?.['ingress.kubernetes.io/bound'], 'yes')
    await h().patch(copyAt, { metadata: { finalizers: null } }, Ingress)
    await v().patch(at, { metadata: { finalizers: null } }, Ingress)
    await v().remove(at, Ingress)
    await until('its end', async () => (await copyOf(Ingress)) === undefined)
  })

  test('a field that the host has set and does not give up stays', async () => {
    await v().create(object(Claim, at, { storage: '1Gi' }))
    await make(refersTo(Claim))
    const { resources } = suite.side(1)
    const host: typeof resources = {
      ...resources,
      update: async (one, ref, body, options) => {
        const isCleared = one.kind === 'PersistentVolumeClaim' && !JSON.stringify(body).includes('volumeName')
        if (isCleared) throw new ApiError(422, 'Invalid', 'spec is immutable')
        return resources.update(one, ref, body, options)
      },
    }
    await start([byPath], {
      host,
      syncReferences: [{ group: '', kind: 'PersistentVolumeClaim' }],
      discover: { virtual: suite.side(0).discover, host: suite.side(1).discover },
    })
    await until('the copy', () => copyOf(Claim))
    await h().patch(copyAt, { spec: { volumeName: 'pv-1' } }, Claim)
    await v().patch(at, { spec: { storage: '2Gi' } }, Claim)
    const found = await until('the change', async () => {
      const copy = (await copyOf(Claim)) as unknown as { readonly spec: JsonObject } | undefined
      return copy?.spec['storage'] === '2Gi' && copy
    })
    assert.equal(found.spec['volumeName'], 'pv-1')
  })

  test('an object of the host that the syncer did not create stays unchanged', async () => {
    await h().create(object(Claim, copyAt, { mine: 'yes' }))
    await v().create(object(Claim, at, { mine: 'no' }))
    await make(refersTo(Claim))
    await run(['PersistentVolumeClaim'])
    await unresolved(/was not created by this syncer/)
    assert.deepEqual({ ...((await copyOf(Claim)) as unknown as { spec: object }).spec }, { mine: 'yes' })
  })

  for (const [what, one, list, message] of [
    ['that is not listed', Claim, ['Ingress.networking.k8s.io'], /does not sync this kind$/],
    ['with another version', Ingress, ['Ingress.v2.networking.k8s.io'], /does not sync this kind$/],
    ['that never crosses', Role, ['Role.rbac.authorization.k8s.io'], /this kind never crosses$/],
    ['for service accounts', Account, ['ServiceAccount'], /this kind never crosses$/],
    ['without a namespace', Wide, ['Wide.example.org'], /this kind is not namespaced$/],
  ] as const)
    test(`a kind ${what} is not copied at run time, whatever the tenant names`, async () => {
      const metadata = one.namespaced ? at : { name: at.name }
      await v().create(object(one, metadata, { a: 'b' }))
      await make(refersTo(one))
      await run(list)
      await unresolved(message)
      await onHost()
      assert.deepEqual(await h().list(one), [])
    })

  test('a kind that the host does not serve is reported', async () => {
    await make(refersTo(kind('example.org', 'Absent', 'absents')))
    await run(['Absent.example.org'])
    await unresolved(
      /^Absent\.example\.org default\/data is not synced to the host: the host does not serve this kind$/,
    )
  })

  test('the program finds the kind by discovery, copies and imports', async t => {
    const directory = mkdtempSync(join(tmpdir(), 'platform-references-'))
    t.after(() => rmSync(directory, { recursive: true }))
    const write = (name: string, text: string) => {
      writeFileSync(join(directory, name), text)
      return join(directory, name)
    }
    await v().create(object(Ingress, at, { className: 'a' }))
    await h().create(object(Claim, { namespace: 'team', name: 'shared-disk' }, { storage: '1Gi' }))
    const [subset] = refersTo(Ingress).subsets
    const targetRef = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', name: 'shared-disk' }
    await make({ subsets: [{ ...subset, notReadyAddresses: [{ ip: '10.0.0.2', targetRef }] }] })
    const second = { ...byPath, path: 'subsets[*].notReadyAddresses[*].targetRef' }
    const config = JSON.stringify({ sync: { toHost: { endpoints: { patches: [byPath, second] } } } })
    const { code, stderr } = await exec(process.execPath, [
      ...[program, 'vcluster', 'sync', '-f', write('vcluster.yaml', config), '--name', 'vc', '--namespace', 'team'],
      ...['--virtual-kubeconfig', write('v.yaml', suite.side(0).kubeconfig)],
      ...['--host-kubeconfig', write('h.yaml', suite.side(1).kubeconfig), '--once'],
      ...['--license', join(import.meta.dirname, '../../examples/development.license')],
      ...['--sync-references', 'Ingress.networking.k8s.io', '--sync-references', 'PersistentVolumeClaim'],
      ...['--import-allow', 'PersistentVolumeClaim/shared-*'],
    ])
    assert.equal(code, 0, stderr)
    assert.equal(((await copyOf(Ingress)) as unknown as { spec: JsonObject }).spec['className'], 'a')
    const synced = (await onHost())?.subsets?.[0]?.notReadyAddresses?.[0]?.targetRef
    assert.equal(synced?.name, 'shared-disk')
    const copy = await v().get({ namespace: 'default', name: 'shared-disk' }, Claim)
    assert.deepEqual({ ...(copy as unknown as { spec: JsonObject }).spec }, { storage: '1Gi' })
    assert.deepEqual(await suite.conditions(), [])
  })

  test('an apiVersion of the tenant never becomes part of a path', async () => {
    const paths: string[] = []
    await make(refersTo({ ...Ingress, apiVersion: 'networking.k8s.io/../../api/v1' } as Kind))
    const discover = async (path: string) => {
      paths.push(path)
      return []
    }
    await start([byPath], {
      syncReferences: [{ group: 'networking.k8s.io', kind: 'Ingress' }],
      discover: { virtual: discover, host: discover },
    })
    await unresolved(/does not sync this kind$/)
    assert.deepEqual(paths, [])
  })
})

test('a kind is written as kubectl writes it', () => {
  assert.deepEqual(parseKind('PersistentVolumeClaim'), { group: '', kind: 'PersistentVolumeClaim' })
  assert.deepEqual(parseKind('Ingress.networking.k8s.io'), { group: 'networking.k8s.io', kind: 'Ingress' })
  assert.deepEqual(parseKind('Ingress.v1.networking.k8s.io'), {
    group: 'networking.k8s.io',
    version: 'v1',
    kind: 'Ingress',
  })
  assert.deepEqual(parseKind('Claim.v1beta1'), { group: '', version: 'v1beta1', kind: 'Claim' })
  for (const text of ['', 'ingress', 'Ingress.', 'Ingress/v1', 'networking.k8s.io/v1/Ingress', 'A b', 'A..b'])
    assert.equal(parseKind(text), undefined, text)
})

test('a flag with a kind that is never synced is rejected with the reason', () => {
  for (const text of [
    ...['Role.rbac.authorization.k8s.io', 'ClusterRoleBinding.rbac.authorization.k8s.io', 'Pod', 'Deployment.apps'],
    ...['ReplicaSet.apps', 'StatefulSet.apps', 'DaemonSet.apps', 'Job.batch', 'CronJob.v1.batch', 'ServiceAccount'],
    ...['ReplicationController', 'CustomResourceDefinition.apiextensions.k8s.io', 'APIService.apiregistration.k8s.io'],
    ...['Node', 'Namespace', 'TokenRequest.authentication.k8s.io', 'TokenReview.authentication.k8s.io'],
    ...['ValidatingWebhookConfiguration.admissionregistration.k8s.io', 'EndpointSlice.discovery.k8s.io', 'Service'],
    ...['MutatingAdmissionPolicy.admissionregistration.k8s.io', 'Deployment.extensions', 'Endpoints'],
  ]) {
    assert.match(syncReferencesProblem(text) ?? '', /^--sync-references: .* never cross to the host: /, text)
    assert.ok(neverCrosses(parseKind(text) as { group: string; kind: string }), text)
  }
  assert.equal(syncReferencesProblem('Ingress.networking.k8s.io'), undefined)
  assert.match(syncReferencesProblem('Secret') ?? '', /sync\.toHost\.secrets\.enabled/)
  assert.match(
    syncReferencesProblem('ingress') ?? '',
    /must be a kind such as PersistentVolumeClaim or Ingress\.networking\.k8s\.io/,
  )
})

test('the program rejects such flags with exit code 2, all problems together', async () => {
  const { code, stderr } = await exec(process.execPath, [
    ...[program, 'vcluster', 'sync', '-f', 'nowhere.yaml', '--name', 'vc', '--namespace', 'team'],
    ...['--virtual-kubeconfig', 'nowhere', '--host-kubeconfig', 'nowhere'],
    ...['--sync-references', 'Role.rbac.authorization.k8s.io', '--sync-references', 'Ingress.networking.k8s.io'],
    ...['--import-allow', 'Ingress.networking.k8s.io/web', '--import-allow', 'Secret/*'],
  ])
  assert.equal(code, 2)
  assert.match(
    stderr,
    /--sync-references: "Role\.rbac\.authorization\.k8s\.io" objects never cross to the host: they grant/,
  )
  assert.match(stderr, /--import-allow: "Secret\/\*" must be KIND, KIND\/NAME or KIND\/PREFIX\*/)
  assert.doesNotMatch(stderr, /Ingress/)
})

test('the program warns about a kind of a patch only without --sync-references for it', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'platform-'))
  try {
    const file = join(directory, 'vcluster.yaml')
    const reference = { apiVersion: 'networking.k8s.io/v1', kind: 'Ingress' }
    const patches = [{ path: 'metadata.annotations.a', reference }]
    writeFileSync(file, JSON.stringify({ sync: { toHost: { endpoints: { patches } } } }))
    const warnings = async (...flags: string[]) => {
      const { stderr } = await exec(process.execPath, [
        ...[program, 'vcluster', 'sync', '-f', file, '--name', 'vc', '--namespace', 'team'],
        ...['--license', join(import.meta.dirname, '../../examples/development.license')],
        ...['--virtual-kubeconfig', 'nowhere', '--host-kubeconfig', 'nowhere', ...flags],
      ])
      return stderr.match(/synced to the host only with --sync-references/g)?.length ?? 0
    }
    assert.equal(await warnings(), 1)
    assert.equal(await warnings('--sync-references', 'PersistentVolumeClaim'), 1)
    assert.equal(await warnings('--sync-references', 'Ingress.networking.k8s.io'), 0)
    assert.equal(await warnings('--sync-references', 'Ingress.v1.networking.k8s.io'), 0)
  } finally {
    rmSync(directory, { recursive: true })
  }
})
