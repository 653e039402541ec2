// The documentation and examples match the syncer: flags, reasons, permissions, the Deployment.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseAllDocuments } from 'yaml'
import type { Kind } from '../../src/api/kind.ts'
import type { Json, Ref, Resource } from '../../src/api/object.ts'
import type { Resources } from '../../src/api/resources.ts'
import { readFlags } from '../../src/host/read-flags.ts'
import { holdLease } from '../../src/reconcile/leader-election.ts'
import { specialAddresses } from '../../src/vcluster/config/special-addresses.ts'
import { reasons } from '../../src/vcluster/sync/condition.ts'
import { endpointSlicesKind } from '../../src/vcluster/sync/endpoint-slices-kind.ts'
import { startEndpointSync } from '../../src/vcluster/sync/endpoints-controller.ts'
import { endpointsKind } from '../../src/vcluster/sync/endpoints-kind.ts'
import { flags, timeoutOf, timeoutProblem } from '../../src/vcluster/sync/flags.ts'
import { Endpoints } from '../../src/vcluster/sync/kinds.ts'
import { openReferenceSync } from '../../src/vcluster/sync/reference-sync.ts'
import type { SyncedKind } from '../../src/vcluster/sync/synced-kind.ts'
import { openCluster, people, until } from '../support/cluster.ts'
import { blocksOf, readDocument } from '../support/docs.ts'

type Rule = { readonly apiGroups: string[]; readonly resources: string[]; readonly verbs: string[] }
type Manifest = Resource & {
  readonly rules?: readonly Rule[]
  readonly spec?: {
    readonly template: { readonly spec: { readonly containers: readonly { readonly args: string[] }[] } }
  }
}
const objectsIn = (text: string) => parseAllDocuments(text).map(document => document.toJS() as Manifest)
const examples = 'deploy/kubernetes/overlays/syncer'
const rulesIn = (file: string) => objectsIn(readDocument(file)).flatMap(({ rules = [] }) => rules)

test('docs/SYNCER.md lists every flag', () => {
  const page = readDocument('docs/SYNCER.md')
  for (const name of Object.keys(flags)) assert.match(page, new RegExp(`^\\|.*\`--${name}\``, 'm'), name)
})

test('docs/SYNCER.md has every entry of the address table', () => {
  const page = readDocument('docs/SYNCER.md')
  for (const { network, what, source } of specialAddresses)
    assert.ok(page.includes(`\n| \`${network}\` | ${what} | ${source} |\n`), network)
})

test('--timeout accepts a duration with unit, or seconds, up to the timer limit', () => {
  for (const [text, seconds] of [
    ['5s', 5],
    ['1m30s', 90],
    ['60', 60],
    [flags.timeout.default, 60],
  ] as const)
    assert.deepEqual([timeoutOf(text), timeoutProblem(text)], [seconds, ''])
  for (const text of ['soon', '5x', '-1', '', '1234567'])
    assert.match(timeoutProblem(text), /^--timeout: ".*" must be a duration such as 90s, 15m or 2h$/)
  assert.equal(timeoutProblem('2w'), '--timeout: "2w" must be at most 11d')
})

test('docs/TROUBLESHOOTING.md has a paragraph for every reason of a condition', () => {
  const page = readDocument('docs/TROUBLESHOOTING.md')
  for (const reason of reasons) assert.ok(page.includes(`\n## ${reason}\n`), reason)
})

test('the Deployment uses existing flags', () => {
  const [deployment] = objectsIn(readDocument(`${examples}/deployment.yaml`))
  const [, , ...args] = deployment?.spec?.template.spec.containers[0]?.args ?? []
  const command = { words: [], what: '', examples: [], flags, run: async () => 0 }
  assert.equal(readFlags(command as never, args, {}).flags['leader-elect' as never], true)
})

test('the roles on the page equal those of the examples', () => {
  const shown = blocksOf(readDocument('docs/SYNCER.md'))
    .filter(({ how }) => how === 'yaml')
    .flatMap(({ text }) => objectsIn(text))
  for (const file of [`${examples}/host.yaml`, `${examples}/virtual.yaml`])
    for (const object of objectsIn(readDocument(file)).filter(({ rules }) => rules))
      assert.deepEqual(
        shown.find(({ kind }) => kind === object.kind),
        object,
      )
})

/** Refuses what the rules do not allow, as a server with RBAC does. */
function confined(resources: Resources, rules: readonly Rule[], used: Set<string>): Resources {
  const check = (verb: string, { group, plural }: Kind) => {
    const fits = (rule: Rule) =>
      rule.apiGroups.includes(group) && rule.resources.includes(plural) && rule.verbs.includes(verb)
    assert.ok(rules.some(fits), `${verb} ${plural} is not allowed`)
    used.add(`${verb} ${plural}`)
  }
  const guarded = (verb: string, run: (...args: never[]) => unknown) =>
    ((kind: Kind, ...rest: never[]) => {
      check(verb, kind)
      return run(kind as never, ...rest)
    }) as never
  const verbs = ['create', 'get', 'list', 'watch', 'update', 'patch', 'delete'] as const
  return { ...resources, ...Object.fromEntries(verbs.map(verb => [verb, guarded(verb, resources[verb] as never)])) }
}

test('the permissions of the examples are sufficient, and none is unused', { timeout: 120_000 }, async t => {
  const [virtual, host] = await Promise.all([openCluster(), openCluster()])
  t.after(() => Promise.all([virtual.close(), host.close()]))
  const [v, h] = [people(virtual), people(host)]
  const used = { virtual: new Set<string>(), host: new Set<string>() }
  const sides = {
    virtual: confined(virtual.resources, rulesIn(`${examples}/virtual.yaml`), used.virtual),
    host: confined(host.resources, rulesIn(`${examples}/host.yaml`), used.host),
  }
  const failures: unknown[] = []
  const vcluster = { name: 'vc', namespace: 'team' }
  for (const name of ['one', 'two', 'three']) await v.service(name)
  for (const synced of [endpointsKind, endpointSlicesKind]) {
    const sync = startEndpointSync({
      ...sides,
      synced,
      vcluster,
      hostNamespaces: ['team'],
      hostDeletePolicy: 'Propagate',
      owner: undefined,
      denyReason: ip => (ip === '10.6.6.6' ? 'bad' : undefined),
      now: Date.now,
      reportToTenant: true,
      instance: 'test',
      random: () => 0,
      ticks: () => performance.now(),
      observer: {
        wrote: () => {},
        lag: () => {},
        failed: (_, error) => void failures.push(error),
        syncFailure: () => {},
      },
    })
    t.after(() => sync.stop())
    await exercise(synced, virtual.resources, host.resources)
    await sync.stop()
  }
  await bringAll(sides, v, h, vcluster)
  const ending = new AbortController()
  const once = { resources: sides.host, at: { namespace: 'team', name: 'lease' }, identity: 'me' }
  const lead = async () => ending.abort()
  const wait = async () => {}
  await holdLease(
    { ...once, now: Date.now, ticks: () => 0, wait, lead, failed: error => assert.fail(String(error)) },
    ending.signal,
  )
  assert.deepEqual(failures, [])
  const granted = (file: string) =>
    rulesIn(file).flatMap(({ resources, verbs }) => resources.flatMap(one => verbs.map(verb => `${verb} ${one}`)))
  // Asked for only at the start, by sync.ts, or again after a restart, or not for every kind.
  const elsewhere = ['get services', 'get endpoints', 'get endpointslices', 'get events', 'patch events']
  const missing = (side: 'virtual' | 'host') =>
    granted(`${examples}/${side}.yaml`).filter(one => !used[side].has(one) && !elsewhere.includes(one))
  assert.deepEqual([missing('virtual'), missing('host')], [[], []])
})

/** Creations, edits of the host, refusals and deletions on both sides. */
async function exercise({ kind }: SyncedKind, virtual: Resources, host: Resources): Promise<void> {
  const get = async (side: Resources, ref: Ref) => (await side.get(kind, ref).catch(() => undefined))?.object.metadata
  const at = (name: string) => ({ namespace: 'default', name })
  const hostAt = (name: string) => ({ namespace: 'team', name: `${name}-x-default-x-vc` })
  for (const name of ['one', 'two', 'three'])
    await virtual.create(kind, 'default', withAddress(kind, name, name === 'three' ? '10.6.6.6' : '10.0.0.1'))
  await until('both', async () => (await get(host, hostAt('one'))) && (await get(host, hostAt('two'))))
  const body = { metadata: { labels: { a: 'b' } }, ...(kind === Endpoints ? { subsets: [] } : { endpoints: [] }) }
  await host.patch(kind, hostAt('one'), { type: 'merge', body })
  await until('the edit', async () => (await get(virtual, at('one')))?.labels?.['a'])
  await until('the mark', async () => (await get(virtual, at('two')))?.annotations?.['vcluster.platform.sh/host-uid'])
  await host.delete(kind, hostAt('two'))
  await until('the deletion', async () => (await get(virtual, at('two'))) === undefined)
  await virtual.delete(kind, at('one'))
  await until('gone', async () => (await get(host, hostAt('one'))) === undefined)
}

function withAddress({ apiVersion, kind }: Kind, name: string, ip: string): Json {
  const metadata = { name, labels: { 'kubernetes.io/service-name': name } }
  return kind === 'Endpoints'
    ? { apiVersion, kind, metadata, subsets: [{ addresses: [{ ip }], ports: [{ port: 1 }] }] }
    : { apiVersion, kind, metadata, addressType: 'IPv4', endpoints: [{ addresses: [ip] }], ports: [{ port: 1 }] }
}

type Side = ReturnType<typeof people>

async function bringAll(
  sides: { virtual: Resources; host: Resources },
  v: Side,
  h: Side,
  vcluster: { name: string; namespace: string },
) {
  const { sync: bring } = openReferenceSync({
    ...sides,
    vcluster,
    owner: undefined,
    pushes: { ConfigMap: true, Secret: true },
    importAllow: ['Secret'],
  })
  for (const kind of ['ConfigMap', 'Secret']) {
    const at = { namespace: 'default', name: 'one' }
    const there = { namespace: 'team', name: `v-${kind.toLowerCase()}` }
    const referenced = { apiVersion: 'v1', kind, ...at, hostNamespace: 'team', hostName: there.name, path: '' }
    const object = (metadata: object, data: object) =>
      ({ apiVersion: 'v1', kind, metadata, data }) as unknown as Resource
    const { clusterKinds } = await import('../../src/vcluster/sync/kinds.ts')
    const own = clusterKinds.find(one => one.kind === kind)
    await v.create(object(at, { a: 'YQ==' }))
    await bring(referenced)
    await v.patch(at, { data: { a: 'Yg==' } }, own)
    await bring(referenced)
    await v.remove(at, own)
    await bring(referenced) // its copy goes
    assert.equal(await h.get(there, own), undefined)
    await h.create(object(there, { a: 'Yw==' }))
    await bring(referenced)
    await h.patch(there, { data: { a: 'ZA==' } }, own)
    await bring(referenced)
    assert.deepEqual(((await v.get(at, own)) as unknown as { data: object }).data, { a: 'ZA==' })
    await h.remove(there, own)
    await bring(referenced)
    assert.equal(await v.get(at, own), undefined)
  }
}
