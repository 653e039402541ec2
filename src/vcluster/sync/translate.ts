// Translates a virtual Endpoints object for the host, before patches: names, references, labels and annotations.

import { emptyMap, type Metadata, type Ref } from '../../api/object.ts'
import type { KeyPolicy } from '../config/metadata-keys.ts'
import type { Address, EndpointsObject, ObjectReference, Subset } from './kinds.ts'
import { hostLabelKey, hostName, METADATA_PREFIX } from './names.ts'
import { syncMetadataOf } from './sync-annotations.ts'

export type Vcluster = {
  readonly name: string
  /** Its namespace on the host. */
  readonly namespace: string
  /** Set in multi-namespace mode. Returns undefined for a namespace without a mapping. */
  readonly mapped?: ((namespace: string) => string | undefined) | undefined
}

type Map = { readonly [key: string]: string }

/** Returns undefined if the namespace has no mapping. */
export function hostRefOf({ namespace, name }: Ref, vcluster: Vcluster): Ref | undefined {
  if (!vcluster.mapped) return { namespace: vcluster.namespace, name: hostName(name, namespace, vcluster.name) }
  const mapped = vcluster.mapped(namespace)
  return mapped === undefined ? undefined : { namespace: mapped, name }
}

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

export type ToHostOptions = { readonly host: Ref; readonly vcluster: Vcluster; readonly isSyncedKey: KeyPolicy }

export function toHost(virtual: EndpointsObject, { host, vcluster, isSyncedKey }: ToHostOptions): EndpointsObject {
  const { labels, annotations } = virtual.metadata
  const marks = syncMetadataOf(virtual, host, vcluster)
  const metadata: Metadata = {
    ...host,
    labels: { ...hostLabels(labels, vcluster, isSyncedKey), ...marks.labels },
    annotations: { ...hostAnnotations(annotations, isSyncedKey), ...marks.annotations },
  }
  return {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata,
    ...(virtual.subsets ? { subsets: virtual.subsets.map(subset => hostSubset(subset, virtual, vcluster)) } : {}),
  }
}

function hostSubset(subset: Subset, virtual: EndpointsObject, vcluster: Vcluster): Subset {
  const translated = (addresses: readonly Address[]) =>
    addresses.map(address =>
      address.targetRef ? { ...address, targetRef: hostTarget(address.targetRef, virtual, vcluster) } : address,
    )
  return {
    ...subset,
    ...(subset.addresses ? { addresses: translated(subset.addresses) } : {}),
    ...(subset.notReadyAddresses ? { notReadyAddresses: translated(subset.notReadyAddresses) } : {}),
  }
}

/** Translates references to Pods, which have another name and uid on the host. Keeps other kinds. */
function hostTarget(target: ObjectReference, virtual: EndpointsObject, vcluster: Vcluster): ObjectReference {
  if (target.kind !== 'Pod' || !target.name) return target
  const { uid: _, resourceVersion: __, ...rest } = target
  const ref = hostRefOf(
    { namespace: target.namespace ?? virtual.metadata.namespace ?? '', name: target.name },
    vcluster,
  )
  return ref ? { ...rest, ...ref } : rest
}

/** Finds the virtual Pod behind a reference that `toHost` translated. */
export function translatedPods(virtual: EndpointsObject, vcluster: Vcluster): (host: Ref) => Ref | undefined {
  let pods: { readonly [host: string]: Ref } | undefined
  const all = () => {
    const found = emptyMap<Ref>()
    for (const { addresses = [], notReadyAddresses = [] } of virtual.subsets ?? [])
      for (const { targetRef } of [...addresses, ...notReadyAddresses]) {
        if (targetRef?.kind !== 'Pod' || !targetRef.name) continue
        const pod = { namespace: targetRef.namespace ?? virtual.metadata.namespace ?? '', name: targetRef.name }
        const host = hostRefOf(pod, vcluster)
        if (host) found[`${host.namespace}/${host.name}`] = pod
      }
    return found
  }
  return ({ namespace, name }) => {
    pods ??= all()
    return pods[`${namespace}/${name}`]
  }
}

/** Compares subsets as a set of address and port pairs, because API servers regroup them. */
export function subsetsKey(subsets: readonly Subset[] = []): string {
  const lines = subsets.flatMap(({ ports = [], addresses = [], notReadyAddresses = [] }) =>
    [...addresses.map(one => ['+', one] as const), ...notReadyAddresses.map(one => ['-', one] as const)].flatMap(
      ([sign, one]) => (ports.length ? ports : [undefined]).map(port => sign + stable(one) + stable(port)),
    ),
  )
  return [...new Set(lines)].sort().join('\n')
}

/** Sorted, without defaults of the API server. */
function stable(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? ''
  return JSON.stringify(
    Object.entries(value)
      .filter(([key, member]) => member !== undefined && member !== '' && !(key === 'protocol' && member === 'TCP'))
      .map(([key, member]) => [key, typeof member === 'object' ? stable(member) : member])
      .toSorted(([a], [b]) => ((a as string) < (b as string) ? -1 : 1)),
  )
}
