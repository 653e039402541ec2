// How the syncer treats Endpoints.

import { canonical } from '../../api/codec.ts'
import type { Json } from '../../api/object.ts'
import { type Address, Endpoints, type ObjectReference, type Subset } from './kinds.ts'
import type { SyncedKind } from './synced-kind.ts'

const lists = ['addresses', 'notReadyAddresses'] as const

export const endpointsKind: SyncedKind = {
  kind: Endpoints,
  setting: 'endpoints',
  hasNameOfService: true,
  serviceOf: ({ metadata }) => metadata.name,
  isManaged: () => false,
  refusal: () => undefined,
  content: ({ subsets }, target) =>
    subsets ? { subsets: target ? subsets.map(subset => withTargets(subset, target)) : subsets } : {},
  labels: () => ({}),
  labelKeys: [],
  targets: ({ subsets = [] }) =>
    subsets.flatMap(subset => lists.flatMap(key => (subset[key] ?? []).flatMap(({ targetRef }) => targetRef ?? []))),
  *addresses({ subsets = [] }) {
    for (const [index, subset] of subsets.entries())
      for (const key of lists)
        for (const [at, { ip = '' }] of (subset[key] ?? []).entries()) yield [`subsets[${index}].${key}[${at}].ip`, ip]
  },
  isSameContent: ({ subsets: one }, { subsets: other }) =>
    canonical((one ?? null) as Json) === canonical((other ?? null) as Json) || subsetsKey(one) === subsetsKey(other),
  needsNewObject: () => false,
}

function withTargets(subset: Subset, target: (reference: ObjectReference) => ObjectReference): Subset {
  const translated = (addresses: readonly Address[]) =>
    addresses.map(address => (address.targetRef ? { ...address, targetRef: target(address.targetRef) } : address))
  return {
    ...subset,
    ...(subset.addresses ? { addresses: translated(subset.addresses) } : {}),
    ...(subset.notReadyAddresses ? { notReadyAddresses: translated(subset.notReadyAddresses) } : {}),
  }
}

/** Compares subsets as a set of address and port pairs, because API servers regroup them. */
function subsetsKey(subsets: readonly Subset[] = []): string {
  const lines = subsets.flatMap(({ ports = [], addresses = [], notReadyAddresses = [] }) =>
    [...addresses.map(one => ['+', one] as const), ...notReadyAddresses.map(one => ['-', one] as const)].flatMap(
      ([sign, one]) => (ports.length ? ports : [undefined]).map(port => sign + stable(one) + stable(port)),
    ),
  )
  return [...new Set(lines)].sort().join('\n')
}

/** Sorted, without defaults of the API server. */
export function stable(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? ''
  if (Array.isArray(value)) return `[${value.map(stable).join()}]`
  return JSON.stringify(
    Object.entries(value)
      .filter(([key, member]) => member !== undefined && member !== '' && !(key === 'protocol' && member === 'TCP'))
      .map(([key, member]) => [key, typeof member === 'object' ? stable(member) : member])
      .toSorted(([a], [b]) => ((a as string) < (b as string) ? -1 : 1)),
  )
}
