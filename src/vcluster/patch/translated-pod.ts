// Finds the Pod of an address that the default rules have translated, so that a reference patch does not translate it again.

import { isObject, type JsonObject, type Ref } from '../../api/object.ts'
import { readAt } from './edit.ts'
import type { Reference } from './patch.ts'
import { type ConcretePath, parsePath } from './path.ts'

/** Returns the virtual Pod that the default rules translated to a host name. */
export type TranslatedPods = (host: Ref) => Ref | undefined

/** `path` is where the patch matches. Returns undefined if it is not the name of a Pod, or if a patch changed the name. */
export function translatedPod(
  object: JsonObject,
  path: ConcretePath,
  { namePath = '' }: Reference,
  pods: TranslatedPods,
): Ref | undefined {
  const inside = parsePath(namePath).map(segment => ('key' in segment ? segment.key : ''))
  const [first, , , , fifth, sixth, ...more] = [...path, ...inside]
  if (first !== 'subsets' || fifth !== 'targetRef' || sixth !== 'name' || more.length) return undefined
  const target = readAt(object, [...path, ...inside].slice(0, 5))
  if (!isObject(target) || target['kind'] !== 'Pod') return undefined
  const { name, namespace } = target
  return typeof name === 'string' && typeof namespace === 'string' ? pods({ namespace, name }) : undefined
}
