// Objects on the host that this virtual cluster made and does not look after any more, for its configuration sends them
// elsewhere by now. sync.ts asks at the start and tells; nobody removes them, for mappings come back.

import { ApiError } from '../../api/errors.ts'
import type { Resource } from '../../api/object.ts'
import type { Resources } from '../../api/resources.ts'
import type { EndpointSync } from './endpoints-controller.ts'
import { Endpoints } from './kinds.ts'
import { managedBy, virtualRefOf, virtualUidOf } from './sync-annotations.ts'
import { hostRefOf, type Vcluster } from './translate.ts'

/** So many, in a namespace of the host, of one of the virtual cluster. */
export type Left = { readonly namespace: string; readonly from: string; readonly count: number }

export type LeftOptions = {
  readonly host: Resources
  readonly known: EndpointSync['known']
  readonly vcluster: Vcluster
}

const pageSize = 500

/** Looks in all namespaces, or, where that is not allowed, in those that are followed. */
export async function findLeft({ host, known, vcluster }: LeftOptions): Promise<readonly Left[]> {
  const counts = new Map<string, Left>()
  const look = (object: Resource) => {
    const from = virtualRefOf(object.metadata, vcluster.name)
    // The name of a cluster is no proof: another may have the same. That the virtual object is this very one is.
    const uid = from && known.virtual(from)?.metadata.uid
    if (!from || !uid || virtualUidOf(object.metadata) !== uid) return
    const { namespace = '', name } = object.metadata
    const wanted = hostRefOf(from, vcluster)
    if (wanted && wanted.namespace === namespace && wanted.name === name) return
    const key = `${namespace}/${from.namespace}`
    counts.set(key, { namespace, from: from.namespace, count: (counts.get(key)?.count ?? 0) + 1 })
  }
  try {
    await eachPage(host, `${managedBy}=${vcluster.name}`, look)
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 403) throw error
    for (const object of known.host()) look(object)
  }
  return [...counts.values()].toSorted((a, b) => (a.namespace < b.namespace ? -1 : 1))
}

async function eachPage(host: Resources, labelSelector: string, look: (object: Resource) => void): Promise<void> {
  for (let next: string | undefined; ; ) {
    const options = { namespace: '', labelSelector, limit: pageSize, ...(next ? { continue: next } : {}) }
    const page = await host.list(Endpoints, options)
    for (const { object } of page.items) look(object)
    next = page.continue
    if (!next) return
  }
}
