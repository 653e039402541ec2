// Pins names of clusters by uid (D68). Writes pin the clusters that exist; this controller pins names that were written before their cluster
// was created. Creating the cluster has passed the gate.

import { ignoreNotFound } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import type { Ref, Resource } from '../api/object.ts'
import { type Resources, refOf } from '../api/resources.ts'
import { Cluster } from '../kinds/cluster.ts'
import { clusterNamesIn, clusterUidsAnnotation, clusterUidsOf, withClusterUids } from '../kinds/cluster-selection.ts'
import { ProjectSecret } from '../kinds/project-secret.ts'
import { Team } from '../kinds/team.ts'
import { mentions } from '../reconcile/document-words.ts'
import { startInformer } from '../reconcile/informer.ts'
import { startLoop } from '../reconcile/work-queue.ts'

export type ClusterReferencesOptions = {
  readonly resources: Resources
  readonly failed: (what: string, error: unknown) => void
}

/** Names of clusters in an object that has no uid of them. */
type Open = { readonly kind: Kind; readonly ref: Ref; readonly names: readonly string[] }

export function startClusterReferences({ resources, failed }: ClusterReferencesOptions): {
  readonly ready: Promise<void>
  idle(): Promise<void>
  stop(): Promise<void>
} {
  const open = new Map<string, Open>()
  const loop = startLoop({
    reconcile: async slot => {
      const one = open.get(slot)
      if (one) await pin(resources, one, uidOf)
      return undefined
    },
    failed: (slot, error) => failed(`pinning the clusters of ${slot}`, error),
  })
  const uidOf = (name: string) => clusters.get({ namespace: '', name })
  const referring = [Team, ProjectSecret].map((kind: Kind) =>
    startInformer({
      resources,
      kind,
      counts: mentions('clusters'),
      keep: object => ({ kind, ref: refOf(object), names: openNames(kind, object) }),
      changed: (ref, now) => {
        const slot = `${kind.plural}/${ref.namespace}/${ref.name}`
        if (!now?.names.length) return void open.delete(slot)
        open.set(slot, now)
        if (now.names.some(name => uidOf(name) !== undefined)) loop.add(slot)
      },
      failed: error => failed(`watching ${kind.plural}`, error),
    }),
  )
  const clusters = startInformer({
    resources,
    kind: Cluster,
    keep: ({ metadata }) => (metadata.deletionTimestamp ? undefined : metadata.uid),
    changed: ({ name }) => {
      for (const [slot, { names }] of open) if (names.includes(name)) loop.add(slot)
    },
    failed: error => failed('watching clusters', error),
  })
  return {
    ready: Promise.all([...referring, clusters].map(informer => informer.ready)).then(() => {}),
    idle: loop.idle,
    async stop() {
      for (const informer of [...referring, clusters]) informer.stop()
      await loop.stop()
    },
  }
}

function openNames(kind: Kind, object: Resource): readonly string[] {
  const known = clusterUidsOf(object)
  return clusterNamesIn(kind.grants?.(object) ?? []).filter(name => !Object.hasOwn(known, name))
}

async function pin(
  resources: Resources,
  { kind, ref }: Open,
  uidOf: (name: string) => string | undefined,
): Promise<void> {
  const object = await resources.get(kind, ref).then(document => document.object, ignoreNotFound)
  if (!object) return
  const uids: { [name: string]: string } = { ...clusterUidsOf(object) }
  for (const name of openNames(kind, object)) {
    const uid = uidOf(name)
    if (uid !== undefined) uids[name] = uid
  }
  const { annotations, resourceVersion = '' } = withClusterUids(object, uids).metadata
  const value = annotations?.[clusterUidsAnnotation]
  if (value === undefined || value === object.metadata.annotations?.[clusterUidsAnnotation]) return
  // Of this very version: after a change of the object the informer comes back with it.
  const body = { metadata: { resourceVersion, annotations: { [clusterUidsAnnotation]: value } } }
  await resources.patch(kind, ref, { type: 'merge', body }, { fieldManager: 'cluster-references' })
}
