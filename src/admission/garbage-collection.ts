// Recognizes changes that let the garbage collector finish.
// As in Kubernetes, roles and bindings skip the checks for them (D60).

import { canonical } from '../api/encode.ts'
import type { Json, Resource } from '../api/object.ts'

/** Whether only ownerReferences and finalizers differ. */
export const isOnlyForCollector = (next: Resource, old: Resource): boolean =>
  canonical(withoutItsFields(next)) === canonical(withoutItsFields(old))

function withoutItsFields(object: Resource): Json {
  const { ownerReferences: _, finalizers: __, managedFields: ___, ...metadata } = object.metadata
  return { ...object, metadata } as unknown as Json
}
