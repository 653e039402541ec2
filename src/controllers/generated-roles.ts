// Computes the roles and bindings that show the access entries of an object and the cluster roles of a team (D26).

import type { Kind } from '../api/kind.ts'
import type { Json, JsonObject, OwnerReference, Resource } from '../api/object.ts'
import { ClusterRole, ClusterRoleBinding, mirrorLabel, Role, RoleBinding } from '../kinds/rbac.ts'
import { localRoles } from '../kinds/team-cluster-roles.ts'

export type Generated = {
  readonly kind: Kind
  readonly object: JsonObject & { readonly metadata: { readonly name: string; readonly namespace?: string } }
}

type Spec = {
  readonly access?: readonly {
    readonly name?: string
    readonly verbs?: readonly string[]
    readonly subresources?: readonly string[]
    readonly users?: readonly string[]
    readonly teams?: readonly string[]
  }[]
}

const rbac = 'rbac.authorization.k8s.io'

/** `rename` replaces names that other objects use. */
export function generatedFor(
  kind: Kind,
  object: Resource,
  rename: (name: string) => string = name => name,
): readonly Generated[] {
  if (object.metadata.deletionTimestamp) return []
  const { access = [] } = (object.spec ?? {}) as Spec
  const { name = '' } = object.metadata
  const metadataOf = (own: string) => ({
    name: own,
    ...(object.metadata.namespace ? { namespace: object.metadata.namespace } : {}),
    labels: { [mirrorLabel]: object.metadata.uid ?? '' },
    ownerReferences: [ownerOf(kind, object)] as unknown as Json,
  })
  const [roleKind, bindingKind] = kind.namespaced ? [Role, RoleBinding] : [ClusterRole, ClusterRoleBinding]
  const names = entryNames(access)
  const entries = access.flatMap((entry, index): Generated[] => {
    // Earlier versions stored such entries. They grant nothing, and a role cannot have a rule without verbs.
    if (!entry.verbs?.length) return []
    const own = rename(`access:${kind.plural}:${name}:${names[index]}`)
    const subresources = (entry.subresources ?? []).filter(sub => sub !== '')
    const resources = [kind.plural, ...subresources.map(sub => `${kind.plural}/${sub}`)]
    const rules = [{ verbs: [...entry.verbs], apiGroups: [kind.group], resources, resourceNames: [name] }]
    // A binding cannot have a subject without a name. Such an entry grants nothing to it either.
    const subjects = [
      ...(entry.users ?? []).flatMap(user => (user === '' ? [] : [userSubject(user)])),
      ...(entry.teams ?? []).flatMap(team => (team === '' ? [] : [group(`platform:team:${team}`)])),
    ]
    const roleRef = { apiGroup: rbac, kind: roleKind.kind, name: own }
    return [
      { kind: roleKind, object: { metadata: metadataOf(own), rules } },
      { kind: bindingKind, object: { metadata: metadataOf(own), roleRef, subjects } },
    ]
  })
  const bound = localRoles(object.spec).map(role => ({
    kind: ClusterRoleBinding,
    object: {
      metadata: metadataOf(rename(`team:${name}:${role}`)),
      roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: role },
      subjects: [group(`platform:team:${name}`)],
    },
  }))
  return [...entries, ...bound]
}

const ownerOf = (kind: Kind, { metadata }: Resource): OwnerReference => ({
  apiVersion: kind.apiVersion,
  kind: kind.kind,
  name: metadata.name ?? '',
  uid: metadata.uid ?? '',
  controller: true,
})

const maxEntryName = 60

/** Entries may repeat a name, and use characters that names of roles cannot have. No escaped name has a colon. */
function entryNames(access: NonNullable<Spec['access']>): readonly string[] {
  const used = new Set<string>()
  return access.map((entry, index) => {
    const escaped = (entry.name || `${index}`).replace(
      /[^-A-Za-z0-9_.]/gu,
      one => `~${one.codePointAt(0)?.toString(16)}~`,
    )
    const isUnique = escaped.length <= maxEntryName && !used.has(escaped)
    const own = isUnique ? escaped : `${escaped.slice(0, maxEntryName)}:${index}`
    used.add(own)
    return own
  })
}

const group = (name: string) => ({ apiGroup: rbac, kind: 'Group', name })
const userSubject = (user: string) =>
  user === '*' ? group('system:authenticated') : { apiGroup: rbac, kind: 'User', name: user }
