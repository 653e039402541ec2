// Checks that the name and namespace in a body match the URL.

import { badRequest } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import type { Metadata, Ref } from '../api/object.ts'

/** For bodies that require a name: updates and the result of a patch. */
export function checkNamedByPath(kind: Kind, ref: Ref, metadata: Metadata): void {
  if (!metadata.name)
    throw badRequest(`the name of the object (${ref.name} based on URL) was undeterminable: name must be provided`)
  checkNameOnPath(kind, ref, metadata)
}

/** For bodies with an optional name. An apply configuration is not validated yet, so its name may be any value. */
export function checkNameOnPath(kind: Kind, ref: Ref, metadata: Metadata): void {
  const name: unknown = metadata.name
  if (name && name !== ref.name) {
    const printed = typeof name === 'string' ? name : JSON.stringify(name)
    throw badRequest(`the name of the object (${printed}) does not match the name on the URL (${ref.name})`)
  }
  checkNamespaceOnPath(kind, ref.namespace, metadata)
}

export function checkNamespaceOnPath(kind: Kind, namespace: string, metadata: Metadata): void {
  if (kind.namespaced && metadata.namespace && metadata.namespace !== namespace)
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request')
}
