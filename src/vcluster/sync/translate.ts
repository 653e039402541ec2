// A virtual Endpoints as the host would have it, before patches: names, references, labels and annotations. Pure.

import { emptyMap, type Metadata, type Ref } from '../../api/object.ts'
import type { KeyPolicy } from '../config/metadata-keys.ts'
import type { Address, EndpointsObject, ObjectReference, Subset } from './kinds.ts'
import { hostLabelKey, hostName, MARK } from './names.ts'
import { marksOf } from './sync-annotations.ts'

export type Vcluster = {
  readonly name: string
  /** Where it lives on the host. */
  readonly namespace: string
  /** Multi-namespace mode; undefined for a namespace that is not mapped. */
  readonly mapped?: ((namespace: string) => string | undefined) | undefined
}

type Map = { readonly [key: string]: string }

/** Where an object is on the host; undefined: its namespace is not mapped. */
export function hostRefOf({ namespace, name }: Ref, vcluster: Vcluster): Ref | undefined {
  if (!vcluster.mapped) return { namespace: vcluster.namespace, name: hostName(name, namespace, vcluster.name) }
  const mapped = vcluster.mapped(namespace)
  return mapped === undefined ? undefined : { namespace: mapped, name }
}

/** Labels of a tenant under reserved keys get a hashed key, so that label selectors can still find them. */
export const hostLabels = (labels: Map = {}, { name }: Vcluster, crosses: KeyPolicy): Map =>
  keep(labels, key => (crosses(key) || key.startsWith(MARK) ? hostLabelKey(key, name) : undefined))
export const hostAnnotations = (annotations: Map = {}, crosses: KeyPolicy): Map =>
  keep(annotations, key => (crosses(key) ? key : undefined))

function keep(from: Map, rename: (key: string) => string | undefined): Map {
  const kept = emptyMap<string>()
  for (const [key, value] of Object.entries(from)) {
    const name = rename(key)
    if (name !== undefined) kept[name] = value
  }
  return kept
}

export type ToHostOptions = { readonly host: Ref; readonly vcluster: Vcluster; readonly crosses: KeyPolicy }

export function toHost(virtual: EndpointsObject, { host, vcluster, crosses }: ToHostOptions): EndpointsObject {
  const { labels, annotations } = virtual.metadata
  const marks = marksOf(virtual, host, vcluster)
  const metadata: Metadata = {
    ...host,
    labels: { ...hostLabels(labels, vcluster, crosses), ...marks.labels },
    annotations: { ...hostAnnotations(annotations, crosses), ...marks.annotations },
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

/** Pods have other names there, and are other objects. Other kinds are nothing we know about. */
function hostTarget(target: ObjectReference, virtual: EndpointsObject, vcluster: Vcluster): ObjectReference {
  if (target.kind !== 'Pod' || !target.name) return target
  const { uid: _, resourceVersion: __, ...rest } = target
  const ref = hostRefOf(
    { namespace: target.namespace ?? virtual.metadata.namespace ?? '', name: target.name },
    vcluster,
  )
  return ref ? { ...rest, ...ref } : rest
}

/** All addresses with their ports as a set: API servers regroup subsets, and that is no difference. */
export function subsetsKey(subsets: readonly Subset[] = []): string {
  const lines = subsets.flatMap(({ ports = [], addresses = [], notReadyAddresses = [] }) =>
    [...addresses.map(one => ['+', one] as const), ...notReadyAddresses.map(one => ['-', one] as const)].flatMap(
      ([sign, one]) => (ports.length ? ports : [undefined]).map(port => sign + stable(one) + stable(port)),
    ),
  )
  return [...new Set(lines)].sort().join('\n')
}

/** Sorted, and without what an API server fills in. */
function stable(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? ''
  return JSON.stringify(
    Object.entries(value)
      .filter(([key, member]) => member !== undefined && member !== '' && !(key === 'protocol' && member === 'TCP'))
      .map(([key, member]) => [key, typeof member === 'object' ? stable(member) : member])
      .toSorted(([a], [b]) => ((a as string) < (b as string) ? -1 : 1)),
  )
}
