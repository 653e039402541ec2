// Who may point at an owner: changing ownerReferences, and blockOwnerDeletion (D11, SPEC §7).

import { type FieldError, fieldForbidden, forbidden } from '../api/errors.ts'
import type { Kind, Tools } from '../api/kind.ts'
import type { Metadata, OwnerReference, Resource } from '../api/object.ts'

/** Field errors of newly set blockOwnerDeletion; throws 403 when the references of an existing object may not be changed. */
export async function checkOwnerChange(
  kinds: readonly Kind[],
  kind: Kind,
  next: Resource,
  old: Resource | undefined,
  tools: Tools,
): Promise<FieldError[]> {
  const before = old?.metadata.ownerReferences ?? []
  const after = next.metadata.ownerReferences ?? []
  if (before.length === 0 && after.length === 0) return []
  if (JSON.stringify(before) === JSON.stringify(after)) return []
  if (old) await mustDelete(kind, next.metadata, tools)
  const errors: FieldError[] = []
  for (const [index, reference] of after.entries()) {
    if (!reference.blockOwnerDeletion || before.some(one => one.uid === reference.uid && one.blockOwnerDeletion))
      continue
    const problem = await blockProblem(kinds, reference, next.metadata, tools)
    if (problem) errors.push(fieldForbidden(`metadata.ownerReferences[${index}].blockOwnerDeletion`, problem))
  }
  return errors
}

async function mustDelete(kind: Kind, metadata: Metadata, tools: Tools): Promise<void> {
  const { name = '', namespace = '' } = metadata
  const { allowed } = await tools.judge({
    verb: 'delete',
    target: { group: kind.group, resource: kind.plural, namespace, name },
  })
  if (!allowed) throw forbidden(kind, name, 'changing ownerReferences needs permission to delete the object')
}

async function blockProblem(
  kinds: readonly Kind[],
  reference: OwnerReference,
  metadata: Metadata,
  tools: Tools,
): Promise<string | undefined> {
  const owner = kinds.find(one => one.kind === reference.kind && one.apiVersion === reference.apiVersion && one.stored)
  if (!owner) return `${reference.apiVersion} ${reference.kind} is not served here, so its deletion cannot be blocked`
  const namespace = owner.namespaced ? (metadata.namespace ?? '') : ''
  const { allowed } = await tools.judge({
    verb: 'delete',
    target: { group: owner.group, resource: owner.plural, namespace, name: reference.name },
  })
  return allowed
    ? undefined
    : `cannot set blockOwnerDeletion: it needs permission to delete ${owner.plural} "${reference.name}"`
}
