// Maps the name of a virtual object to its name on the host.

import type { Ref } from '../../api/object.ts'
import { hostName } from './names.ts'

export type Vcluster = {
  readonly name: string
  /** Its namespace on the host. */
  readonly namespace: string
  /** Set in multi-namespace mode. Returns undefined for a namespace without a mapping. */
  readonly mapped?: ((namespace: string) => string | undefined) | undefined
}

/** Returns undefined if the namespace has no mapping. */
export function hostRefOf({ namespace, name }: Ref, vcluster: Vcluster): Ref | undefined {
  if (!vcluster.mapped) return { namespace: vcluster.namespace, name: hostName(name, namespace, vcluster.name) }
  const mapped = vcluster.mapped(namespace)
  return mapped === undefined ? undefined : { namespace: mapped, name }
}
