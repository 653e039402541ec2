// One aspect of an object that a step may change, and small changes to build such steps from.

import type { Stage } from '../generator-context.ts'
import type { Known } from '../model.ts'
import type { Obj, Spec } from '../objects.ts'
import type { Family } from '../step.ts'

export type Aspect = {
  readonly weight: number
  readonly what: string
  /** The attack that it belongs to. */
  readonly danger?: Family
  readonly make: (stage: Stage, target: Known) => (object: Obj) => Obj
}

export const withMeta = (object: Obj, part: Partial<Obj['metadata']>): Obj => ({
  ...object,
  metadata: { ...object.metadata, ...part },
})
export const withSpec = (object: Obj, part: Spec): Obj => ({ ...object, spec: { ...object.spec, ...part } })
/** Omits undefined fields, so that a merge patch removes them. */
export const without = (object: Obj, field: string): Obj => {
  const { [field]: _, ...spec } = object.spec ?? {}
  return { ...object, spec }
}
export const withLabel = (object: Obj, key: string, value: string | undefined): Obj => {
  const { [key]: _, ...labels } = object.metadata.labels ?? {}
  return withMeta(object, { labels: value === undefined ? labels : { ...labels, [key]: value } })
}
export const withAnnotation = (object: Obj, key: string, value: string): Obj =>
  withMeta(object, { annotations: { ...object.metadata.annotations, [key]: value } })

export const toggled = (list: readonly string[] = [], word: string): string[] =>
  list.includes(word) ? list.filter(one => one !== word) : [...list, word]
