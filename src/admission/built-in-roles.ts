// Protects built-in roles and their bindings from changes, because every server relies on them (D27).

import { canonical } from '../api/encode.ts'
import { forbidden } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import type { Json, Resource } from '../api/object.ts'
import { isBuiltInName } from '../kinds/built-in-roles.ts'

const isBuiltIn = (kind: Kind, { metadata: { name = '' } }: Resource) =>
  kind.group === 'rbac.authorization.k8s.io' && !kind.namespaced && isBuiltInName(name)

export function refuseBuiltInDeletion(kind: Kind, old: Resource): void {
  if (isBuiltIn(kind, old)) throw forbidden(kind, old.metadata.name ?? '', 'it is built-in and cannot be deleted')
}

/** Throws 403 if a write creates a built-in role or binding, or changes its labels, owners, rules, role or subjects. */
export function refuseBuiltInChange(kind: Kind, next: Resource, old: Resource | undefined): void {
  const { name = '' } = next.metadata
  if (!isBuiltIn(kind, next)) return
  if (old && fixedPart(next) === fixedPart(old)) return
  const instead = kind.kind === 'ClusterRole' ? 'create a role of your own' : 'create a binding of your own'
  throw forbidden(
    kind,
    name,
    `it is built-in: its labels, owners, finalizers${kind.kind === 'ClusterRole' ? ' and rules' : ', role and subjects'} cannot be changed; ${instead}`,
  )
}

function fixedPart({ metadata: { labels, ownerReferences, finalizers }, ...rest }: Resource): string {
  return canonical([rest, labels ?? {}, ownerReferences ?? [], finalizers ?? []] as unknown as Json)
}
