// Agent, management API and cluster are killed and restarted at random under change. Afterwards the cluster equals a model that shares no code with
// the agent, object by object. With KUBE_APISERVER and ETCD the cluster is a real one.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import type { Kind } from '../../src/api/kind.ts'
import type { Json, Resource } from '../../src/api/object.ts'
import { KubeNamespace } from '../../src/cli/clusters/kube-kinds.ts'
import { ClusterRole, ClusterRoleBinding } from '../../src/kinds/rbac.ts'
import { Secret } from '../../src/reconcile/kubernetes-kinds.ts'
import { must, ours, teams } from '../access/people.ts'
import { configOf } from '../gateway/gateway-fixture.ts'
import { until } from '../support/cluster.ts'
import { type ClusterProcess, killProgram, startCluster, startProgram } from '../support/cluster-process.ts'
import { kubeBinaries } from '../support/kube-cluster.ts'
import { type Server, startServer } from '../support/server.ts'

const seconds = Number(process.env['AGENT_CHAOS_SECONDS'] ?? 20)
/** A slow machine continues until this many kills. */
const least = 6
const program = join(import.meta.dirname, '../../bin/platform.js')
const [secrets, clusters] = [`${ours}/namespaces/p-shop/projectsecrets`, `${ours}/clusters`]
const names = Array.from({ length: 12 }, (_, index) => `app-${index}`)
const namespaces = ['shop', 'shop-jobs']
const roles = ['view', 'edit']
/** Base64. */
const theirs = 'dGhlaXJz'
const merge = { 'content-type': 'application/merge-patch+json' }

/** Numbers that look random and are the same in every run. */
function dice(seed: string): (below: number) => number {
  let count = 0
  return below => createHash('sha256').update(`${seed}/${count++}`).digest().readUInt32LE() % below
}

const list = async ({ resources }: ClusterProcess, kind: Kind, namespace = '') =>
  (await resources.list(kind, { namespace })).items.map(
    one => one.object as Resource & { readonly [field: string]: Json },
  )

/** One line per object. */
async function model(service: Server): Promise<string[]> {
  const get = async (path: string) => must(service.request('GET', path))
  const { spec } = await get(`${clusters}/prod`)
  const given: readonly string[] = spec.projects[0].namespaces
  const lines = [`secret shop/foreign ${theirs}`]
  for (const { metadata, spec: wanted } of (await get(secrets)).items)
    for (const one of wanted.deliver ?? [])
      for (const namespace of (one.namespaces ?? given).filter((it: string) => given.includes(it)))
        lines.push(`secret ${namespace}/${metadata.name} ${wanted.data.value}`)
  for (const { metadata, spec: wanted } of (await get(teams)).items)
    for (const { name, clusters: chosen } of wanted.clusterRoles ?? [])
      if (chosen) lines.push(`role ${name} platform:team:${metadata.name}`)
  return lines.filter(one => !one.startsWith('secret shop/foreign ') || one.endsWith(` ${theirs}`)).toSorted()
}

async function seen(cluster: ClusterProcess): Promise<string[]> {
  const lines: string[] = []
  for (const namespace of namespaces)
    for (const { metadata, ['data']: data } of await list(cluster, Secret, namespace))
      lines.push(`secret ${namespace}/${metadata.name} ${(data as { readonly value?: string } | undefined)?.value}`)
  type Binding = {
    readonly roleRef: { readonly name: string }
    readonly subjects?: readonly { readonly name: string }[]
  }
  for (const object of await list(cluster, ClusterRoleBinding)) {
    const { roleRef, subjects = [] } = object as unknown as Binding
    const own = subjects.filter(({ name }) => name.startsWith('platform:team:'))
    for (const { name } of own) lines.push(`role ${roleRef.name} ${name}`)
  }
  return lines.toSorted()
}

test(`agent, service and cluster killed at random for ${seconds} s under change: it converges to the model`, {
  timeout: 300_000,
}, async t => {
  const seed = process.env['AGENT_CHAOS_SEED'] ?? String(Date.now())
  t.diagnostic(`seed ${seed}`)
  const directory = mkdtempSync(join(tmpdir(), 'platform-agent-chaos-'))
  const [service, cluster] = await Promise.all([startServer(), startCluster()])
  await prepare(cluster)
  const key = await connect(service)
  const put = (name: string, text: string) => writeFileSync(join(directory, name), text)
  put('agent.key', `${key}\n`)
  put('service-ca.crt', service.ca)
  const over = {
    tls: { directory: 'tls' },
    clusters: [{ name: 'prod', kubeconfig: cluster.kubeconfig }],
    agent: { cluster: 'prod' },
  }
  put('gateway.yaml', JSON.stringify(configOf(service, over)))
  const startAgent = async () =>
    (await startProgram([program, 'gateway', '--config', join(directory, 'gateway.yaml')], /gateway is (ready)/)).child
  let agent = await startAgent()
  try {
    const end = Date.now() + seconds * 1000
    let [changes, kills] = [0, 0]
    const isOver = () => Date.now() >= end && changes > 20 * least && kills >= least
    const users = async (roll: ReturnType<typeof dice>) => {
      while (!isOver()) {
        if (await change(service, cluster, roll)) changes++
        await pause(5)
      }
    }
    const chaos = async () => {
      const roll = dice(`${seed}/chaos`)
      while (!isOver()) {
        await pause(500 + roll(1500))
        const which = kills++ % 3
        if (which === 0) {
          await killProgram(agent)
          agent = await startAgent()
        } else if (which === 1) {
          await cluster.kill()
          await pause(roll(1000))
          await cluster.start()
        } else await service.crash({})
      }
    }
    await Promise.all([users(dice(`${seed}/1`)), users(dice(`${seed}/2`)), chaos()])
    let last: readonly [readonly string[], readonly string[]] = [[], []]
    await until(
      'the cluster equals the model',
      async () => {
        last = [await seen(cluster), await model(service)]
        return last[0].join('\n') === last[1].join('\n')
      },
      90_000,
    ).catch(error => {
      assert.deepEqual(last[0], last[1])
      throw error
    })
    assert.ok(last[1].length > 1)
    await until('the conditions agree', async () => {
      const { items } = await must(service.request('GET', secrets))
      type Condition = { readonly type: string; readonly status: string; readonly reason: string }
      return items.every(
        ({
          metadata,
          spec,
          status,
        }: Resource & { spec: { deliver?: object[] }; status: { conditions: Condition[] } }) => {
          const found = status.conditions.find(one => one.type === 'Delivered')
          if (!spec.deliver?.length) return found === undefined
          if (metadata.name === 'foreign') return found?.reason === 'SecretExists'
          return found?.status === 'True' || found?.reason === 'NoNamespace'
        },
      )
    })
    t.diagnostic(`${changes} changes, ${kills} kills, ${last[1].length} objects`)
  } finally {
    await killProgram(agent)
    await Promise.all([service.kill(), cluster.close()])
    rmSync(directory, { recursive: true })
  }
})

async function prepare({ resources }: ClusterProcess): Promise<void> {
  const create = (kind: Kind, object: object, namespace = '') =>
    resources.create(kind, namespace, object as unknown as Json)
  for (const name of kubeBinaries ? [...namespaces, 'platform-agent'] : [])
    await create(KubeNamespace, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
  for (const name of kubeBinaries ? [] : roles) await create(ClusterRole, { metadata: { name }, rules: [] })
  const foreign = { metadata: { name: 'foreign', namespace: 'shop' }, data: { value: theirs } }
  await create(Secret, { apiVersion: 'v1', kind: 'Secret', ...foreign }, 'shop')
}

/** Returns the key of the agent. */
async function connect(service: Server): Promise<string> {
  const post = (path: string, body: object) => must(service.request('POST', path, { body }))
  const { metadata } = await post(clusters, {
    metadata: { name: 'prod' },
    spec: { projects: [{ project: 'shop', namespaces }] },
  })
  const spec = { subject: `platform:cluster:prod:${metadata.uid}`, scope: { roles: [{ role: 'agent' }] } }
  await post(secrets, {
    metadata: { name: 'foreign' },
    spec: { data: { value: 'AAAA' }, deliver: [{ clusters: { names: ['prod'] }, namespaces: ['shop'] }] },
  })
  return (await post(`${ours}/ownedaccesskeys`, { spec })).spec.key
}

/** One change by somebody, on either side; whether it went through. Servers may be stopped, and objects may be missing. */
async function change(service: Server, cluster: ClusterProcess, roll: ReturnType<typeof dice>): Promise<boolean> {
  const name = names[roll(names.length)] as string
  const namespace = namespaces[roll(2)] as string
  const role = roles[roll(2)] as string
  const value = Buffer.from(String(roll(1_000_000))).toString('base64')
  const selected = { clusters: { names: ['prod'] } }
  const deliver = [[selected], [{ ...selected, namespaces: [namespace] }], []][roll(3)]
  const ask = async (method: string, path: string, body?: object) => {
    const headers = method === 'PATCH' ? merge : {}
    return (await service.request(method, path, { headers, ...(body ? { body } : {}) })).status < 300
  }
  const { resources } = cluster
  const at = { namespace, name }
  const spec = { clusterRoles: [{ name: role, ...selected }] }
  const acts: (() => Promise<unknown>)[] = [
    () => ask('POST', secrets, { metadata: { name }, spec: { data: { value }, deliver } }),
    () => ask('PATCH', `${secrets}/${name}`, { spec: { data: { value } } }),
    () => ask('PATCH', `${secrets}/${name}`, { spec: { deliver } }),
    () => roll(3) === 0 && ask('DELETE', `${secrets}/${name}`),
    () => ask('POST', teams, { metadata: { name }, spec }),
    () => ask('PATCH', `${teams}/${name}`, { spec }),
    () => roll(2) === 0 && ask('DELETE', `${teams}/${name}`),
    () =>
      roll(10) === 0 &&
      ask('PATCH', `${clusters}/prod`, {
        spec: { projects: [{ project: 'shop', namespaces: roll(2) ? namespaces : ['shop'] }] },
      }),
    () => resources.patch(Secret, at, { type: 'merge', body: { data: { value: 'ZWRpdGVk' } } }),
    () => resources.delete(Secret, at),
    () => resources.delete(ClusterRoleBinding, { namespace: '', name: `platform:${name}:${role}` }),
  ].map(act => async () => act())
  return (acts[roll(acts.length)] as () => Promise<unknown>)().then(Boolean, () => false)
}
