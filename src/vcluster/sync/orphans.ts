// Finds host objects that this virtual cluster created and no longer syncs, because their namespace mapping changed.
// Nothing removes them, because a mapping may come back.

import { ApiError } from '../../api/errors.ts'
import type { Kind } from '../../api/kind.ts'
import type { Resource } from '../../api/object.ts'
import type { Resources } from '../../api/resources.ts'
import type { EndpointSync } from './endpoint-sync.ts'
import { hostRefOf, type Vcluster } from './host-ref.ts'
import { managedBy, virtualRefOf, virtualUidOf } from './sync-annotations.ts'

/** The number of orphans by host namespace and virtual namespace. */
export type Orphans = { readonly namespace: string; readonly from: string; readonly count: number }

export type OrphanOptions = {
  readonly kind: Kind
  readonly host: Resources
  readonly known: EndpointSync['known']
  readonly vcluster: Vcluster
}

const pageSize = 500

/** Searches all namespaces, or only the watched ones without permission for all. */
export async function findOrphans({ kind, host, known, vcluster }: OrphanOptions): Promise<readonly Orphans[]> {
  const counts = new Map<string, Orphans>()
  const count = (object: Resource) => {
    const from = virtualRefOf(object.metadata, vcluster.name)
    // Another cluster may have the same name, so compare the uid of the virtual object.
    const uid = from && known.virtual(from)?.metadata.uid
    if (!from || !uid || virtualUidOf(object.metadata) !== uid) return
    const { namespace = '', name } = object.metadata
    const wanted = hostRefOf(from, vcluster)
    if (wanted && wanted.namespace === namespace && wanted.name === name) return
    const key = `${namespace}/${from.namespace}`
    counts.set(key, { namespace, from: from.namespace, count: (counts.get(key)?.count ?? 0) + 1 })
  }
  try {
    await eachPage({ host, kind }, `${managedBy}=${vcluster.name}`, count)
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 403) throw error
    for (const object of known.host()) count(object)
  }
  return [...counts.values()].toSorted((a, b) => (a.namespace < b.namespace ? -1 : 1))
}

async function eachPage(
  { host, kind }: Pick<OrphanOptions, 'host' | 'kind'>,
  labelSelector: string,
  visit: (object: Resource) => void,
): Promise<void> {
  for (let next: string | undefined; ; ) {
    const options = { namespace: '', labelSelector, limit: pageSize, ...(next ? { continue: next } : {}) }
    const page = await host.list(kind, options)
    for (const { object } of page.items) visit(object)
    next = page.continue
    if (!next) return
  }
}
