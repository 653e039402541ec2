// Role, ClusterRole, RoleBinding, ClusterRoleBinding: the RBAC kinds of Kubernetes, with its validation (D2, D27).

import { type FieldError, invalidValue, notSupported, required } from '../api/errors.ts'
import type { Grant, Recipient } from '../api/grant.ts'
import { defineKind, type Kind } from '../api/kind.ts'
import type { Resource } from '../api/object.ts'
import { closed, list, mapOf, type Static, struct, text } from '../api/schema.ts'
import { checkAggregation, maxRules } from './aggregation.ts'
import { type PolicyRule, policyRule } from './policy-rule.ts'
import { userNamed } from './shared-schema.ts'

const rules = list(policyRule, 'Permissions of the role. Rules are additive.', { maxItems: maxRules })

const requirement = struct(
  'A requirement on a label.',
  {
    key: text('The label.'),
    operator: text('In, NotIn, Exists or DoesNotExist.'),
    values: list(text(''), 'Values to compare with.'),
  },
  [],
  closed,
)
const aggregationRule = struct(
  'Combines the rules of other cluster roles.',
  {
    clusterRoleSelectors: list(
      struct(
        'Selects cluster roles by their labels.',
        {
          matchLabels: mapOf(text(''), 'Labels that must have these values.'),
          matchExpressions: list(requirement, 'Requirements that must all match.'),
        },
        [],
        closed,
      ),
      'Combines the cluster roles that match any of these selectors.',
    ),
  },
  [],
  closed,
)

const rbacGroup = 'rbac.authorization.k8s.io'
const roleRef = struct(
  'The role to bind. Immutable.',
  { apiGroup: text(`${rbacGroup}.`), kind: text('Role or ClusterRole.'), name: text('Name of the role.') },
  ['kind', 'name'],
  { 'x-kubernetes-map-type': 'atomic' },
)
const subjects = list(
  struct(
    'A user, group or service account.',
    {
      apiGroup: text(`${rbacGroup} for users and groups.`),
      kind: text('User, Group or ServiceAccount.'),
      name: text('Name of the user or group.'),
      namespace: text('Namespace of a service account.'),
    },
    ['kind', 'name'],
  ),
  'Subjects that get the role.',
  { maxItems: 1000 },
)

/**
 * Marks bindings that only show the permissions of an object. They grant nothing, because the object itself does (D26).
 */
export const mirrorLabel = 'platform.sh/mirrors'

export type RoleObject = {
  readonly rules?: readonly PolicyRule[]
  readonly aggregationRule?: Static<typeof aggregationRule>
}
export type BindingObject = { readonly roleRef?: Static<typeof roleRef>; readonly subjects?: Static<typeof subjects> }

const common = { group: rbacGroup, version: 'v1', nameRule: 'segment', categories: [], checkedWhole: true } as const

function roleKind(kind: 'Role' | 'ClusterRole', namespaced: boolean): Kind {
  const lower = kind.toLowerCase()
  return defineKind({
    ...common,
    kind,
    plural: `${lower}s`,
    singular: lower,
    namespaced,
    description: `${kind} is a set of rules that can be bound to users and groups${namespaced ? ' in its namespace' : ''}.`,
    fields: namespaced ? { rules } : { rules, aggregationRule },
    validate: next => [
      ...checkRules((next as RoleObject).rules ?? [], namespaced),
      ...checkAggregation((next as RoleObject).aggregationRule),
    ],
    grants: role => [
      {
        type: 'rules',
        field: 'rules',
        rules: (role as RoleObject).rules ?? [],
        aggregates: (role as RoleObject).aggregationRule !== undefined,
      },
    ],
    sample: {
      apiVersion: `${rbacGroup}/v1`,
      kind,
      metadata: { name: 'secret-reader', ...(namespaced ? { namespace: 'default' } : {}) },
      rules: [{ verbs: ['get', 'list', 'watch'], apiGroups: ['management.platform.sh'], resources: ['sharedsecrets'] }],
    },
  })
}

/** Absent in the event of a binding that the caller may no longer see. */
const roleName = ({ roleRef: role }: BindingObject) => role && `${role.kind}/${role.name}`

function bindingKind(kind: 'RoleBinding' | 'ClusterRoleBinding', namespaced: boolean): Kind {
  const lower = kind.toLowerCase()
  return defineKind({
    ...common,
    kind,
    plural: `${lower}s`,
    singular: lower,
    namespaced,
    description: `${kind} grants a role to users and groups${namespaced ? ' in its namespace' : ' everywhere'}.`,
    fields: { roleRef, subjects },
    columns: [
      {
        name: 'Role',
        type: 'string',
        description: 'The bound role.',
        value: o => roleName(o as BindingObject),
      },
      {
        name: 'Users',
        type: 'string',
        description: 'Users that get the role.',
        priority: 1,
        value: o => names(o as BindingObject, 'User'),
      },
      {
        name: 'Groups',
        type: 'string',
        description: 'Groups that get the role.',
        priority: 1,
        value: o => names(o as BindingObject, 'Group'),
      },
    ],
    prepare: next => withDefaults(next as typeof next & BindingObject),
    validate: (next, old) => checkBinding(next as BindingObject, old as BindingObject | undefined, namespaced),
    grants: bindingGrants,
    sample: {
      apiVersion: `${rbacGroup}/v1`,
      kind,
      metadata: { name: 'readers', ...(namespaced ? { namespace: 'default' } : {}) },
      roleRef: { apiGroup: rbacGroup, kind: namespaced ? 'Role' : 'ClusterRole', name: 'secret-reader' },
      subjects: [{ apiGroup: rbacGroup, kind: 'Group', name: 'readers' }],
    },
  })
}

export const Role: Kind = roleKind('Role', true)
export const ClusterRole: Kind = roleKind('ClusterRole', false)
export const RoleBinding: Kind = bindingKind('RoleBinding', true)
export const ClusterRoleBinding: Kind = bindingKind('ClusterRoleBinding', false)

/** The role, for each subject. A binding without subjects counts too, because a later write can add them. */
function bindingGrants(object: Resource<unknown, unknown>): Grant[] {
  const { roleRef: bound, subjects: all = [] } = object as BindingObject
  const { namespace = '' } = object.metadata
  const kind = bound?.kind === 'Role' ? 'Role' : 'ClusterRole'
  const role = { kind, namespace: kind === 'Role' ? namespace : '', name: bound?.name ?? '' } as const
  const grant = { type: 'role', field: 'roleRef', role, namespace } as const
  return [grant, ...all.map((one, index) => ({ ...grant, field: `subjects[${index}]`, to: recipientOf(one) }))]
}

/** A subject can refer to a team by its group, or by the username of its keys (D16). */
function recipientOf({ kind, name = '' }: NonNullable<BindingObject['subjects']>[number]): Recipient {
  const user = userNamed(name)
  return kind === 'Group' && user.kind === 'user' ? { kind: 'group', name } : user
}

const names = ({ subjects: all = [] }: BindingObject, kind: string) =>
  all.flatMap(one => (one.kind === kind ? [one.name ?? ''] : [])).join(',')

/** apiGroup is optional if there is only one valid value, as in Kubernetes. */
function withDefaults<T extends BindingObject>(next: T): T {
  const grouped = <O extends { kind?: string | undefined; apiGroup?: string | undefined }>(one: O): O =>
    one.apiGroup || one.kind === 'ServiceAccount' ? one : { ...one, apiGroup: rbacGroup }
  return {
    ...next,
    ...(next.roleRef ? { roleRef: grouped(next.roleRef) } : {}),
    ...(next.subjects ? { subjects: next.subjects.map(grouped) } : {}),
  }
}

function checkRules(all: readonly PolicyRule[], namespaced: boolean): FieldError[] {
  return all.flatMap((rule, index) => {
    const at = `rules[${index}]`
    if (!rule.verbs?.length) return [required(`${at}.verbs`, 'verbs must contain at least one value')]
    if (rule.nonResourceURLs?.length) return checkPaths(rule, at, namespaced)
    return [
      ...(rule.apiGroups?.length
        ? []
        : [required(`${at}.apiGroups`, 'resource rules must supply at least one api group')]),
      ...(rule.resources?.length
        ? []
        : [required(`${at}.resources`, 'resource rules must supply at least one resource')]),
    ]
  })
}

function checkPaths(rule: PolicyRule, at: string, namespaced: boolean): FieldError[] {
  const field = `${at}.nonResourceURLs`
  if (namespaced)
    return [invalidValue(field, rule.nonResourceURLs, 'namespaced rules cannot apply to non-resource URLs')]
  if (rule.apiGroups?.length || rule.resources?.length || rule.resourceNames?.length)
    return [
      invalidValue(field, rule.nonResourceURLs, 'rules cannot apply to both regular resources and non-resource URLs'),
    ]
  return (rule.nonResourceURLs ?? []).flatMap(url =>
    isPathPattern(url)
      ? []
      : [invalidValue(field, url, 'a wildcard must be the whole last path segment, as in /logs/*')],
  )
}

/** `*` alone, or as the whole last segment. */
export const isPathPattern = (url: string) => url === '*' || !url.replace(/\/\*$/, '').includes('*')

function checkBinding(next: BindingObject, old: BindingObject | undefined, namespaced: boolean): FieldError[] {
  const allowed = namespaced ? ['Role', 'ClusterRole'] : ['ClusterRole']
  const errors: FieldError[] = []
  if (!next.roleRef) errors.push(required('roleRef', 'role to bind'))
  else {
    if (next.roleRef.apiGroup !== rbacGroup)
      errors.push(notSupported('roleRef.apiGroup', next.roleRef.apiGroup, [rbacGroup]))
    if (!allowed.includes(next.roleRef.kind ?? ''))
      errors.push(notSupported('roleRef.kind', next.roleRef.kind, allowed))
    if (next.roleRef.name === '') errors.push(required('roleRef.name', ''))
  }
  if (old && JSON.stringify(canonicalRef(next)) !== JSON.stringify(canonicalRef(old)))
    errors.push(invalidValue('roleRef', next.roleRef, 'cannot change roleRef'))
  return [...errors, ...(next.subjects ?? []).flatMap((one, index) => checkSubject(one, `subjects[${index}]`))]
}

const canonicalRef = ({ roleRef: one }: BindingObject) => [one?.apiGroup, one?.kind, one?.name]

function checkSubject(one: NonNullable<BindingObject['subjects']>[number], at: string): FieldError[] {
  if (one.name === '') return [required(`${at}.name`, '')]
  if (one.kind === 'ServiceAccount') return one.namespace ? [] : [required(`${at}.namespace`, '')]
  if (one.kind !== 'User' && one.kind !== 'Group')
    return [notSupported(`${at}.kind`, one.kind, ['Group', 'ServiceAccount', 'User'])]
  return one.apiGroup === rbacGroup ? [] : [notSupported(`${at}.apiGroup`, one.apiGroup, [rbacGroup])]
}
