// Checks permission to change ownerReferences and to set blockOwnerDeletion (D11, SPEC §7).

import { type FieldError, fieldForbidden, forbidden, invalidValue } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import type { Metadata, OwnerReference, Resource } from '../api/object.ts'
import { parseStored } from '../api/parse-cache.ts'
import { type Context, keyOf } from './context.ts'

type OwnerContext = Pick<Context, 'kinds' | 'store' | 'authorize' | 'caller'>

/** Returns field errors of new blockOwnerDeletion values. Throws 403 if the caller may not change the references. */
export function checkOwnerChange(
  ctx: OwnerContext,
  kind: Kind,
  next: Resource,
  old: Resource | undefined,
): FieldError[] {
  const before = old?.metadata.ownerReferences ?? []
  const after = next.metadata.ownerReferences ?? []
  if (before.length === 0 && after.length === 0) return []
  if (JSON.stringify(before) === JSON.stringify(after)) return []
  if (old) mustDelete(ctx, kind, next.metadata)
  const errors: FieldError[] = []
  for (const [index, reference] of after.entries()) {
    if (!reference.blockOwnerDeletion || before.some(one => blocksSame(one, reference))) continue
    const error = blockError(ctx, reference, next.metadata)
    if (error) errors.push({ ...error, field: `metadata.ownerReferences[${index}].${error.field}` })
  }
  return errors
}

function mustDelete({ authorize, caller }: OwnerContext, kind: Kind, metadata: Metadata): void {
  const { name = '', namespace = '' } = metadata
  const { allowed } = authorize(caller, {
    verb: 'delete',
    target: { group: kind.group, resource: kind.plural, namespace, name },
  })
  if (!allowed) throw forbidden(kind, name, 'changing ownerReferences needs permission to delete the object')
}

/** Permission depends on the name and garbage collection on the uid, so a change of either needs a new check. */
const blocksSame = (one: OwnerReference, other: OwnerReference): boolean =>
  one.blockOwnerDeletion === true &&
  one.uid === other.uid &&
  one.name === other.name &&
  one.kind === other.kind &&
  one.apiVersion === other.apiVersion

/** `field` is relative to the reference. */
function blockError(
  { kinds, store, authorize, caller }: OwnerContext,
  reference: OwnerReference,
  metadata: Metadata,
): FieldError | undefined {
  const { name, uid } = reference
  const owner = kinds.find(one => one.kind === reference.kind && one.apiVersion === reference.apiVersion && one.stored)
  if (!owner)
    return fieldForbidden(
      'blockOwnerDeletion',
      `${reference.apiVersion} ${reference.kind} is not served here, so its deletion cannot be blocked`,
    )
  const namespace = owner.namespaced ? (metadata.namespace ?? '') : ''
  const { allowed } = authorize(caller, {
    verb: 'delete',
    target: { group: owner.group, resource: owner.plural, namespace, name },
  })
  // Check permission first, so that the response does not reveal which objects exist.
  if (!allowed)
    return fieldForbidden(
      'blockOwnerDeletion',
      `cannot set blockOwnerDeletion: it needs permission to delete ${owner.plural} "${name}"`,
    )
  const entry = store.get(keyOf(owner, { namespace, name }))
  return entry && parseStored(entry.text).metadata.uid === uid
    ? undefined
    : invalidValue('uid', uid, `must be the uid of ${owner.plural} "${name}" to set blockOwnerDeletion`)
}
