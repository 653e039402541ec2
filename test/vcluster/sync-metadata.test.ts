// Which labels and annotations of a tenant reach the host, where other controllers act on them, and what patches may set.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, test } from 'node:test'
import type { Resource } from '../../src/api/object.ts'
import { loadConfig } from '../../src/vcluster/config/config.ts'
import { ConfigMap } from '../../src/vcluster/sync/kinds.ts'
import { hostName, shortName } from '../../src/vcluster/sync/names.ts'
import type { Syncer } from '../../src/vcluster/sync/sync.ts'
import { openSync } from '../../src/vcluster/sync/sync.ts'
import { type Cluster, endpoints, openCluster, people, until } from '../support/cluster.ts'

const mark = 'vcluster.platform.sh/'
let clusters: Cluster[] = []
let running: Syncer | undefined
const side = (which: 0 | 1) => clusters[which] as Cluster
const [v, h] = [() => people(side(0)), () => people(side(1))]
const at = { namespace: 'default', name: 'web' }
const hostAt = { namespace: 'team', name: hostName('web', 'default', 'vc') }

async function start(settings = ''): Promise<void> {
  const text = `sync: {toHost: {endpoints: {${settings}}}}\n`
  const { config, problems } = loadConfig(new TextEncoder().encode(text), { noPatchesReason: undefined })
  assert.deepEqual(problems, [])
  running = await openSync({
    config,
    ...{ name: 'vc', namespace: 'team', virtual: side(0).resources, host: side(1).resources },
    discoverHost: async () => ({ addresses: [], owner: undefined }),
    ...{ importAllow: [], reportToTenant: true, instance: 'test', now: Date.now, random: () => 0 },
    ticks: () => performance.now(),
    wait: () => new Promise(setImmediate),
    observer: {
      ...{ wrote: () => {}, lag: () => {}, failed: () => {}, syncFailure: () => {}, patched: () => {} },
      orphaned: () => {},
    },
  })
}
async function stop(): Promise<void> {
  await running?.stop()
  running = undefined
}

type Map = { readonly [key: string]: string }
const make = async (metadata: { readonly labels?: Map; readonly annotations?: Map }) => {
  await v().service('web')
  await v().create(endpoints('web', { metadata }))
}
const unmarked = (map: Map = {}) => Object.fromEntries(Object.entries(map).filter(([key]) => !key.startsWith(mark)))
const keysOf = (object: Resource | undefined) => ({
  labels: unmarked(object?.metadata.labels),
  annotations: unmarked(object?.metadata.annotations),
})
const onHost = () => h().get(hostAt)
const settled = async () => {
  await until('the object', onHost)
  await running?.settled()
  return keysOf(await onHost())
}
const annotationIs = (key: string, value: string | undefined) =>
  until(`${key} is ${value}`, async () => (await onHost())?.metadata.annotations?.[key] === value)

/** Keys that controllers of the host act on. */
const dangerous = [
  ...['kubernetes.io/service-name', 'service.kubernetes.io/service-proxy-name', 'app.kubernetes.io/instance'],
  ...['external-dns.alpha.kubernetes.io/hostname', 'service.beta.kubernetes.io/aws-load-balancer-type'],
  ...['nginx.ingress.kubernetes.io/configuration-snippet', 'endpointslice.kubernetes.io/skip-mirror'],
  ...['endpoints.kubernetes.io/over-capacity', 'topology.kubernetes.io/zone', 'node.kubernetes.io/exclude'],
  ...['k8s.io/x', 'scheduling.k8s.io/x', 'cert-manager.io/cluster-issuer', 'acme.cert-manager.io/http01'],
  ...['istio.io/rev', 'networking.istio.io/exportTo', 'linkerd.io/inject', 'cilium.io/x', 'service.cilium.io/global'],
  ...['io.cilium/global-service', 'prometheus.io/scrape', 'argocd.argoproj.io/tracking-id', 'fluxcd.io/sync'],
  ...['kustomize.toolkit.fluxcd.io/prune', 'helm.sh/hook', 'meta.helm.sh/release-name', 'traefik.io/x'],
  ...['replicator.v1.mittwald.de/replicate-to', 'reflector.v1.k8s.emberstack.com/reflection-allowed'],
  ...['management.platform.sh/x', 'vcluster.loft.sh/object-name'],
]
const all = (keys: readonly string[], value = 'tenant') => Object.fromEntries(keys.map(key => [key, value]))
const harmless = { app: 'web', 'example.org/tier': 'gold', 'my-kubernetes.io.example.org/x': 'y' }

describe('labels and annotations of a tenant', { timeout: 120_000 }, () => {
  beforeEach(async () => {
    clusters = await Promise.all([openCluster(), openCluster()])
  })
  afterEach(async () => {
    await stop()
    await Promise.all(clusters.map(cluster => cluster.close()))
  })

  test('do not reach the host if a controller may act on them; others do', async () => {
    const upper = { 'Cert-Manager.io/Issuer': 'x' } // servers accept it as an annotation
    await make({
      labels: { ...all(dangerous), ...harmless },
      annotations: { ...all(dangerous), ...upper, ...harmless },
    })
    await start()
    assert.deepEqual(await settled(), { labels: harmless, annotations: harmless })
    const virtual = keysOf(await v().get(at))
    assert.equal(Object.keys(virtual.labels).length, dangerous.length + 3, 'they stay in the virtual cluster')
  })

  test('of a change do not reach it either, and removing one has no effect', async () => {
    await make({ annotations: harmless })
    await start()
    await settled()
    await v().patch(at, { metadata: { annotations: { ...all(dangerous), last: 'yes' } } })
    await annotationIs('last', 'yes')
    assert.deepEqual((await settled()).annotations, { ...harmless, last: 'yes' })
    await v().patch(at, { metadata: { annotations: { [dangerous[0] as string]: null, last: 'no' } } })
    await annotationIs('last', 'no')
    assert.deepEqual((await settled()).annotations, { ...harmless, last: 'no' })
  })

  test('do not replace the value of the host under the same key, which does not reach the tenant', async () => {
    const [key] = ['cert-manager.io/cluster-issuer']
    await make({ annotations: { [key]: 'tenant' } })
    await start()
    await settled()
    await h().patch(hostAt, { metadata: { annotations: { [key]: 'host', 'kubernetes.io/note': 'host', seen: 'yes' } } })
    await until('the edit', async () => (await v().get(at))?.metadata.annotations?.['seen'] === 'yes')
    await v().patch(at, { metadata: { annotations: { [key]: 'tenant again', last: 'yes' } } })
    await annotationIs('last', 'yes')
    const host = { [key]: 'host', 'kubernetes.io/note': 'host', seen: 'yes', last: 'yes' }
    assert.deepEqual((await settled()).annotations, host)
    await stop()
    await start()
    assert.deepEqual((await settled()).annotations, host, 'after a restart')
    const { 'kubernetes.io/note': note } = (await v().get(at))?.metadata.annotations ?? {}
    assert.equal(note, undefined)
  })

  test('follow allowedMetadataKeys and deniedMetadataKeys: the more specific entry wins, and deny on a tie', async () => {
    const keys = {
      'app.kubernetes.io/name': 'allowed by its prefix',
      'app.kubernetes.io/instance': 'denied by its name',
      'ingress.kubernetes.io/x': 'denied by the table',
      'cert-manager.io/issuer': 'allowed by its name',
      'cert-manager.io/other': 'denied by the table',
      'example.org/x': 'denied by its prefix',
      'a.example.org/x': 'passes',
      'b.example.com/x': 'denied by its domain',
      'c.example.com/x': 'allowed by its prefix',
      'twice.example.net/x': 'denied',
    }
    await make({ labels: all(Object.keys(keys)) })
    await start(
      `allowedMetadataKeys: [app.kubernetes.io/, cert-manager.io/issuer, c.example.com/, twice.example.net/, "*"],
       deniedMetadataKeys: [app.kubernetes.io/instance, example.org/, "*.example.com/", twice.example.net/]`.replace(
        /\n */,
        ' ',
      ),
    )
    const passed = Object.keys(keys).filter(key => /allowed|passes/.test(keys[key as keyof typeof keys]))
    assert.deepEqual(Object.keys((await settled()).labels).toSorted(), passed.toSorted())
  })

  test('with "*" in deniedMetadataKeys only allowed keys are synced', async () => {
    await make({ labels: harmless, annotations: harmless })
    await start('deniedMetadataKeys: ["*"], allowedMetadataKeys: [example.org/tier]')
    assert.deepEqual(await settled(), {
      labels: { 'example.org/tier': 'gold' },
      annotations: { 'example.org/tier': 'gold' },
    })
  })

  test('synced by an earlier configuration are removed; those of the host stay', async () => {
    const annotations = { 'cert-manager.io/issuer': 'tenant', note: 'tenant' }
    await make({ annotations, labels: { 'istio.io/rev': 'tenant' } })
    await start('allowedMetadataKeys: [cert-manager.io/, istio.io/]')
    assert.deepEqual(await settled(), { annotations, labels: { 'istio.io/rev': 'tenant' } })
    await stop()
    await h().patch(hostAt, { metadata: { annotations: { 'kubernetes.io/note': 'host' } } })
    await start()
    await annotationIs('cert-manager.io/issuer', undefined)
    assert.deepEqual(await settled(), { annotations: { note: 'tenant', 'kubernetes.io/note': 'host' }, labels: {} })
  })

  const setting = (value: string) =>
    `patches: [{path: metadata.annotations, expression: '({ ...value, "cert-manager.io/issuer": "${value}" })'}]`

  test('belong to the tenant; a patch of the operator sets any key, changes it, and removes it when the patch is removed', async () => {
    await make({ annotations: { note: 'x', 'cert-manager.io/issuer': 'tenant' } })
    await start(setting('one'))
    assert.deepEqual((await settled()).annotations, { note: 'x', 'cert-manager.io/issuer': 'one' })
    await v().patch(at, { metadata: { annotations: { 'cert-manager.io/issuer': 'tenant again' } } })
    await h().patch(hostAt, { metadata: { annotations: { 'cert-manager.io/issuer': 'edited' } } })
    await annotationIs('cert-manager.io/issuer', 'one')
    await running?.settled()
    assert.equal((await v().get(at))?.metadata.annotations?.['cert-manager.io/issuer'], 'tenant again')
    await stop()
    await start(setting('two'))
    await annotationIs('cert-manager.io/issuer', 'two')
    await stop()
    await start()
    await annotationIs('cert-manager.io/issuer', undefined)
    assert.deepEqual((await settled()).annotations, { note: 'x' })
  })

  test('a patch cannot write, change or remove sync metadata', async () => {
    await make({ annotations: { note: 'x' }, labels: { app: 'web' } })
    const forged = `{"${mark}managed-by": "other", "${mark}object-name": "theirs", "${mark}new": "1"}`
    await start(
      `patches: [${[
        `{path: "", expression: '({ ...value, metadata: { name: "theirs", labels: ${forged}, annotations: ${forged} } })'}`,
        `{path: metadata, expression: '({ labels: ${forged} })'}`,
        `{path: metadata.labels, expression: '${forged.replace('{', '({').replace('}', '})')}'}`,
        `{path: metadata.annotations, expression: 'null'}`,
        `{path: 'metadata.labels[*]', expression: '"theirs"'}`,
        `{path: 'metadata.annotations["${mark}object-uid"]', expression: '"theirs"'}`,
        `{path: 'metadata.*["${mark}managed-by"]', expression: 'null'}`,
      ].join(', ')}]`,
    )
    await settled()
    const { labels, annotations } = (await onHost())?.metadata ?? {}
    assert.deepEqual(labels, { [`${mark}managed-by`]: 'vc', [`${mark}namespace`]: 'default' })
    const { [`${mark}managed-annotations`]: _, ...rest } = annotations ?? {}
    assert.deepEqual(rest, {
      [`${mark}vcluster-namespace`]: 'team',
      [`${mark}object-name`]: 'web',
      [`${mark}object-namespace`]: 'default',
      [`${mark}object-uid`]: (await v().get(at))?.metadata.uid,
      [`${mark}object-kind`]: 'Endpoints',
      [`${mark}object-host-name`]: hostAt.name,
      [`${mark}object-host-namespace`]: 'team',
    })
  })

  test('that look like sync metadata are never synced', async () => {
    const forged = {
      [`${mark}object-name`]: 'theirs',
      [`${mark}object-uid`]: 'theirs',
      [`${mark}managed-by`]: 'theirs',
    }
    await make({ annotations: forged, labels: { [`${mark}managed-by`]: 'theirs' } })
    await start('allowedMetadataKeys: ["*.platform.sh/", "*"]')
    await settled()
    const { labels, annotations } = (await onHost())?.metadata ?? {}
    assert.equal(labels?.[`${mark}managed-by`], 'vc')
    assert.doesNotMatch(JSON.stringify(annotations), /theirs/)
  })

  test('of referenced objects are filtered likewise', async () => {
    const metadata = { namespace: 'default', name: 'settings', labels: { ...all(dangerous), ...harmless } }
    await v().create({
      ...{ apiVersion: 'v1', kind: 'ConfigMap', data: { a: 'b' } },
      metadata: { ...metadata, annotations: metadata.labels },
    } as unknown as Resource)
    await make({ annotations: { settings: 'settings' } })
    await start('patches: [{path: metadata.annotations.settings, reference: {apiVersion: v1, kind: ConfigMap}}]')
    const copyAt = { namespace: 'team', name: shortName('settings', 'default', 'vc') }
    const copy = await until('the copy', () => h().get(copyAt, ConfigMap))
    assert.deepEqual(keysOf(copy), { labels: harmless, annotations: harmless })
  })
})

test('entries of allowedMetadataKeys and deniedMetadataKeys are validated, with their position', () => {
  const load = (text: string) =>
    loadConfig(new TextEncoder().encode(text), { noPatchesReason: undefined }).problems.map(
      ({ line, column, message }) => `${line}:${column} ${message}`,
    )
  const shape = 'must be a key such as example.org/tier, a prefix such as example.org/ or *.example.org/, or *'
  assert.deepEqual(
    load(`sync:
  toHost:
    endpoints:
      allowedMetadataKeys: [app, example.org/tier, "*.example.org/", "*", Example.org/x, "a*/", "*.example.org"]
      deniedMetadataKeys:
      - example.org/
      - exa mple/
      - a/b/c
      - ""
      - 5
      - "*."
      - ${'x'.repeat(64)}
`),
    [
      `4:75 allowedMetadataKeys[4] ${shape}, not "Example.org/x"`,
      `4:90 allowedMetadataKeys[5] ${shape}, not "a*/"`,
      `4:97 allowedMetadataKeys[6] ${shape}, not "*.example.org"`,
      `7:9 deniedMetadataKeys[1] ${shape}, not "exa mple/"`,
      `8:9 deniedMetadataKeys[2] ${shape}, not "a/b/c"`,
      `9:9 deniedMetadataKeys[3] ${shape}, not ""`,
      '10:9 sync.toHost.endpoints.deniedMetadataKeys.4 must be a string, not a number',
      `11:9 deniedMetadataKeys[5] ${shape}, not "*."`,
      `12:9 deniedMetadataKeys[6] ${shape}, not "${'x'.repeat(64)}"`,
    ],
  )
  const never = (key: string) => load(`sync: {toHost: {endpoints: {allowedMetadataKeys: ["${key}"]}}}`).join()
  assert.match(never('vcluster.platform.sh/'), /allowedMetadataKeys\[0\] vcluster\.platform\.sh\/ is reserved/)
  assert.match(never('vcluster.platform.sh/object-name'), /allowedMetadataKeys\[0\] .* is reserved for the syncer/)
  assert.match(never('kubectl.kubernetes.io/last-applied-configuration'), /allowedMetadataKeys\[0\] .* is never synced/)
})

test('docs/SYNCER.md lists every domain whose keys are not synced by default', async () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/SYNCER.md'), 'utf8')
  const { deniedDomains } = await import('../../src/vcluster/config/denied-domains.ts')
  for (const { domain, who } of deniedDomains) assert.ok(page.includes(`\n| \`${domain}/\` | ${who} |\n`), domain)
})
