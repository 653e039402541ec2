// Keeps one context for each other replica in the administrator's kubeconfig.

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { writeYaml } from '../api/encode.ts'
import { isObject, type Json, type JsonObject } from '../api/object.ts'
import { decodeYaml } from '../api/yaml-codec.ts'
import { writeSecret } from '../host/secret-file.ts'

type Entry = JsonObject & { readonly name: string }

/** Replaces the contexts of replicas in admin.kubeconfig, if the directory has it. Keeps all other entries. */
export function writeServerContexts(directory: string, urls: readonly string[]): void {
  const file = join(directory, 'admin.kubeconfig')
  if (!existsSync(file)) return
  const config = decodeYaml(readFileSync(file)).value
  if (!isObject(config)) return
  const next = withServers(config, new Map(urls.map(url => [nameOf(url), url])))
  if (next && JSON.stringify(next) !== JSON.stringify(config)) writeSecret(file, writeYaml(next))
}

/** Undefined if somebody has removed the entries that the server wrote. */
function withServers(config: JsonObject, servers: ReadonlyMap<string, string>): JsonObject | undefined {
  const [clusters, contexts] = [entriesOf(config['clusters']), entriesOf(config['contexts'])]
  const own = clusters.find(({ name }) => name === 'platform')?.['cluster']
  if (!isObject(own) || !contexts.some(({ name }) => name === 'platform')) return undefined
  const replicas = contexts.filter(isOfReplica).map(({ name }) => name)
  const kept = ({ name }: Entry) => !replicas.includes(name) && !servers.has(name)
  const current = config['current-context']
  const isGone = replicas.includes(String(current)) && !servers.has(String(current))
  return {
    ...config,
    clusters: [
      ...clusters.filter(kept),
      ...[...servers].map(([name, url]) => ({ name, cluster: { ...own, server: `${url}/kubernetes/management` } })),
    ],
    contexts: [
      ...contexts.filter(kept),
      ...[...servers.keys()].map(name => ({ name, context: { cluster: name, user: 'admin' } })),
    ],
    ...(isGone ? { 'current-context': 'platform' } : {}),
  }
}

/** Such as platform-10.0.0.2-8443, so that it stays the same whatever other replicas there are. */
function nameOf(url: string): string {
  const { hostname, port } = new URL(url)
  return `platform-${hostname.replace(/[[\]]/g, '').replaceAll(':', '.')}-${port || 443}`
}

function isOfReplica({ name, context }: Entry): boolean {
  const { cluster, user } = isObject(context) ? context : {}
  return /^platform-.+-\d+$/.test(name) && cluster === name && user === 'admin'
}

const entriesOf = (list: Json | undefined): readonly Entry[] =>
  Array.isArray(list) ? list.filter((one): one is Entry => isObject(one) && typeof one['name'] === 'string') : []
