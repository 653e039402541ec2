// Translates a virtual object for the host, before patches: names, references, labels and annotations.

import { emptyMap, type Metadata, type Ref } from '../../api/object.ts'
import type { KeyPolicy } from '../config/metadata-keys.ts'
import type { TranslatedPods } from '../patch/translated-pod.ts'
import { hostRefOf, type Vcluster } from './host-ref.ts'
import type { ObjectReference, SyncedObject } from './kinds.ts'
import { hostLabelKey, hostNameEnd, METADATA_PREFIX } from './names.ts'
import { syncMetadataOf } from './sync-annotations.ts'
import type { SyncedKind } from './synced-kind.ts'

type Map = { readonly [key: string]: string }

/** Hashes reserved label keys of the tenant, so that label selectors still work. */
export const hostLabels = (labels: Map = {}, { name }: Vcluster, isSyncedKey: KeyPolicy): Map =>
  keep(labels, key => (isSyncedKey(key) || key.startsWith(METADATA_PREFIX) ? hostLabelKey(key, name) : undefined))
export const hostAnnotations = (annotations: Map = {}, isSyncedKey: KeyPolicy): Map =>
  keep(annotations, key => (isSyncedKey(key) ? key : undefined))

function keep(from: Map, rename: (key: string) => string | undefined): Map {
  const kept = emptyMap<string>()
  for (const [key, value] of Object.entries(from)) {
    const name = rename(key)
    if (name !== undefined) kept[name] = value
  }
  return kept
}

export type ToHostOptions = {
  readonly synced: SyncedKind
  readonly host: Ref
  readonly vcluster: Vcluster
  readonly isSyncedKey: KeyPolicy
}

export function toHost(virtual: SyncedObject, { synced, host, vcluster, isSyncedKey }: ToHostOptions): SyncedObject {
  const { labels, annotations } = virtual.metadata
  const marks = syncMetadataOf(virtual, host, vcluster)
  const metadata: Metadata = {
    ...host,
    labels: { ...hostLabels(labels, vcluster, isSyncedKey), ...synced.labels(virtual, vcluster), ...marks.labels },
    annotations: { ...hostAnnotations(annotations, isSyncedKey), ...marks.annotations },
  }
  const { apiVersion, kind } = synced.kind
  return { apiVersion, kind, metadata, ...synced.content(virtual, target => hostTarget(target, virtual, vcluster)) }
}

/** Translates references to Pods, which have another name and uid on the host. Keeps other kinds. */
function hostTarget(target: ObjectReference, virtual: SyncedObject, vcluster: Vcluster): ObjectReference {
  if (target.kind !== 'Pod' || !target.name) return target
  const { uid: _, resourceVersion: __, ...rest } = target
  const ref = hostRefOf(
    { namespace: target.namespace ?? virtual.metadata.namespace ?? '', name: target.name },
    vcluster,
  )
  return ref ? { ...rest, ...ref } : rest
}

/** Finds the virtual Pods behind references that `toHost` translated. */
export function translatedPods(virtual: SyncedObject, { targets }: SyncedKind, vcluster: Vcluster): TranslatedPods {
  let found: { readonly pods: { readonly [host: string]: Ref }; readonly ends: ReadonlySet<string> } | undefined
  const all = () => {
    const pods = emptyMap<Ref>()
    const ends = new Set<string>()
    for (const { kind, name, namespace = virtual.metadata.namespace ?? '' } of targets(virtual)) {
      if (kind !== 'Pod' || !name) continue
      const host = hostRefOf({ namespace, name }, vcluster)
      if (!host) continue
      pods[`${host.namespace}/${host.name}`] = { namespace, name }
      // In multi-namespace mode names do not change.
      if (!vcluster.mapped) ends.add(hostNameEnd(name, namespace, vcluster.name))
    }
    return { pods, ends }
  }
  const known = () => {
    found ??= all()
    return found
  }
  return {
    podOf: ({ namespace, name }) => known().pods[`${namespace}/${name}`],
    isEdited: name => [...known().ends].some(end => name.includes(end)),
  }
}
