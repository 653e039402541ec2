// Finds the Pod of an address that the default rules have translated, so that a reference patch does not translate it again.

import { isObject, type JsonObject, type Ref } from '../../api/object.ts'
import { readAt } from './edit.ts'
import type { Reference } from './patch.ts'
import { type ConcretePath, parsePath } from './path.ts'

export type TranslatedPods = {
  /** Returns the virtual Pod that the default rules translated to a host name. */
  podOf(host: Ref): Ref | undefined
  /** Whether the name still has the end that the default rules gave it, so that a patch edited it and did not replace it. */
  isEdited(name: string): boolean
}

export const edited = Symbol('a host name that a patch edited')

/** `path` is where the patch matches. Returns undefined if it is not the name of a Pod, or if a patch replaced the name. */
export function translatedPod(
  object: JsonObject,
  path: ConcretePath,
  { namePath = '' }: Reference,
  pods: TranslatedPods,
): Ref | typeof edited | undefined {
  const inside = parsePath(namePath).map(segment => ('key' in segment ? segment.key : ''))
  const whole = [...path, ...inside]
  // subsets[0].addresses[0].targetRef.name, or endpoints[0].targetRef.name of an EndpointSlice.
  const isAddress = (whole[0] === 'subsets' && whole.length === 6) || (whole[0] === 'endpoints' && whole.length === 4)
  if (!isAddress || whole.at(-2) !== 'targetRef' || whole.at(-1) !== 'name') return undefined
  const target = readAt(object, whole.slice(0, -1))
  if (!isObject(target) || target['kind'] !== 'Pod') return undefined
  const { name, namespace } = target
  if (typeof name !== 'string') return undefined
  const pod = typeof namespace === 'string' ? pods.podOf({ namespace, name }) : undefined
  return pod ?? (pods.isEdited(name) ? edited : undefined)
}
