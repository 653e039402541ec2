// Discovery: /api, /apis, each group and version, aggregated or not (wire §1.3).

import { createHash } from 'node:crypto'
import type { Kind } from '../api/kind.ts'
import type { JsonObject } from '../api/object.ts'
import type { Exchange } from '../serving/exchange.ts'
import type { Answer } from '../serving/respond.ts'
import { negotiate } from './negotiate.ts'
import { writeJson } from './write-result.ts'

const statusVerbs = ['get', 'patch', 'update']

/** The page function for everything about discovery. */
export function discoveryPages(kinds: readonly Kind[]): (path: string, exchange: Exchange) => Answer | undefined {
  const served = kinds.filter(kind => kind.served)
  const core = served.filter(kind => kind.group === '')
  const groups = [
    ...Map.groupBy(
      served.filter(kind => kind.group !== ''),
      kind => kind.group,
    ),
  ].sort(([one], [other]) => (one < other ? -1 : 1))
  const pages = new Map<string, JsonObject>()
  pages.set('/api', { kind: 'APIVersions', versions: core.length ? ['v1'] : [], serverAddressByClientCIDRs: [] })
  if (core.length) pages.set('/api/v1', resourceList('v1', core))
  pages.set('/apis', {
    kind: 'APIGroupList',
    apiVersion: 'v1',
    groups: groups.map(([group, members]) => groupOf(group, members)),
  })
  for (const [group, members] of groups) {
    pages.set(`/apis/${group}`, { kind: 'APIGroup', apiVersion: 'v1', ...groupOf(group, members) })
    for (const [version, own] of Map.groupBy(members, kind => kind.version))
      pages.set(`/apis/${group}/${version}`, resourceList(`${group}/${version}`, own))
  }
  const aggregated = { '/api': aggregate(core.length ? [['', core]] : []), '/apis': aggregate(groups) }

  return (path, exchange) => {
    if (path === '/api' || path === '/apis') {
      const version = wantsAggregated(exchange.request.headers.accept)
      if (version) return aggregated[path](version, exchange)
    }
    const page = pages.get(path)
    return page && writeJson(200, page, negotiate(exchange.request.headers.accept, 'object').format, exchange)
  }
}

function subresourcesOf(kind: Kind): { name: string; kind: string; verbs: string[] }[] {
  const own = Object.entries(kind.subresources).map(([name, { kind: word, verb }]) => ({
    name,
    kind: word,
    verbs: [verb as string],
  }))
  return kind.statusSubresource ? [...own, { name: 'status', kind: kind.kind, verbs: statusVerbs }] : own
}

const byName = (one: { readonly name: string }, other: { readonly name: string }) => (one.name < other.name ? -1 : 1)

function groupOf(name: string, members: readonly Kind[]): JsonObject {
  const versions = [...new Set(members.map(kind => kind.version))].map(version => ({
    groupVersion: `${name}/${version}`,
    version,
  }))
  return { name, versions, preferredVersion: versions[0] as JsonObject }
}

function resourceList(groupVersion: string, kinds: readonly Kind[]): JsonObject {
  const resources = kinds.flatMap(kind => [
    {
      name: kind.plural,
      singularName: kind.singular,
      namespaced: kind.namespaced,
      kind: kind.kind,
      verbs: [...kind.verbs],
      ...(kind.shortNames.length ? { shortNames: [...kind.shortNames] } : {}),
      ...(kind.categories.length ? { categories: [...kind.categories] } : {}),
      ...(kind.stored ? { storageVersionHash: storageVersionHash(kind) } : {}),
    },
    ...subresourcesOf(kind).map(({ name, kind: word, verbs }) => ({
      name: `${kind.plural}/${name}`,
      singularName: '',
      namespaced: kind.namespaced,
      kind: word,
      verbs,
    })),
  ])
  return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion, resources: resources.sort(byName) }
}

const storageVersionHash = (kind: Kind) =>
  createHash('sha256').update(`${kind.group}/${kind.version}/${kind.kind}`).digest().subarray(0, 8).toString('base64')

function wantsAggregated(accept: string | undefined): 'v2' | 'v2beta1' | undefined {
  for (const entry of (accept ?? '').slice(0, 4096).split(',')) {
    const [type, ...parameters] = entry.split(';').map(part => part.trim())
    const has = (text: string) => parameters.includes(text)
    if (type !== 'application/json' || !has('g=apidiscovery.k8s.io') || !has('as=APIGroupDiscoveryList')) continue
    if (has('v=v2')) return 'v2'
    if (has('v=v2beta1')) return 'v2beta1'
  }
  return undefined
}

type Aggregated = (version: 'v2' | 'v2beta1', exchange: Exchange) => Answer

function aggregate(groups: readonly (readonly [string, readonly Kind[]])[]): Aggregated {
  const items = groups.map(([name, members]) => ({
    metadata: name ? { name } : {},
    versions: [...Map.groupBy(members, kind => kind.version)].map(([version, kinds]) => ({
      version,
      freshness: 'Current',
      resources: [...kinds].sort((one, other) => (one.plural < other.plural ? -1 : 1)).map(discovered),
    })),
  }))
  const make = (version: string) => {
    const body = Buffer.from(
      `${JSON.stringify({ kind: 'APIGroupDiscoveryList', apiVersion: `apidiscovery.k8s.io/${version}`, metadata: {}, items })}\n`,
    )
    return { body, etag: `"${createHash('sha512').update(body).digest('hex').toUpperCase()}"` }
  }
  const made = { v2: make('v2'), v2beta1: make('v2beta1') }
  return (version, { request }) => {
    const { body, etag } = made[version]
    const headers = { ETag: etag, Vary: 'Accept', 'Cache-Control': 'public' }
    const type = `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`
    const same = request.headers['if-none-match'] === etag
    return { code: same ? 304 : 200, type, body: same ? Buffer.alloc(0) : body, headers }
  }
}

function discovered(kind: Kind): JsonObject {
  const responseKind = { group: kind.group, version: kind.version, kind: kind.kind }
  const subresources = subresourcesOf(kind).map(one => ({
    subresource: one.name,
    responseKind: { ...responseKind, kind: one.kind },
    verbs: one.verbs,
  }))
  return {
    resource: kind.plural,
    responseKind,
    scope: kind.namespaced ? 'Namespaced' : 'Cluster',
    singularResource: kind.singular,
    verbs: [...kind.verbs],
    ...(kind.shortNames.length ? { shortNames: [...kind.shortNames] } : {}),
    ...(kind.categories.length ? { categories: [...kind.categories] } : {}),
    ...(subresources.length ? { subresources } : {}),
  }
}
