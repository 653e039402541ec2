// A change that lets the garbage collector finish: roles and bindings are not checked for it, as in Kubernetes (D60).

import { canonical } from '../api/encode.ts'
import type { Json, Resource } from '../api/object.ts'

/** Whether nothing but ownerReferences and finalizers differs. */
export const isOnlyForCollector = (next: Resource, old: Resource): boolean =>
  canonical(withoutItsFields(next)) === canonical(withoutItsFields(old))

function withoutItsFields(object: Resource): Json {
  const { ownerReferences: _, finalizers: __, managedFields: ___, ...metadata } = object.metadata
  return { ...object, metadata } as unknown as Json
}
