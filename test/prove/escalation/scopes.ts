// Scopes as sent by clients (D25): what they cover, and whether the model can read them.

import { inScope, type Scope } from '../../access/evaluator.ts'
import { type Atom, type Bits, bitsOf, everything, noBits } from './universe.ts'

/** undefined: unrestricted. 'unreadable': has an unknown field, so it grants nothing. */
export type ReadScope = Scope | 'unreadable' | undefined

/** Fields and the fields below them; `true`: any value. */
type Fields = { readonly [field: string]: Fields | true }

const scopeFields: Fields = {
  roles: { role: true, projects: true, virtualClusters: true },
  projects: { project: true, readOnly: true },
  spaces: { project: true, space: true },
  virtualClusters: { project: true, virtualCluster: true },
  clusters: { cluster: true },
  rules: {
    verbs: true,
    resources: { group: true, resources: true, resourceNames: true },
    namespaces: true,
    nonResourceURLs: true,
    requestTargets: true,
    cluster: true,
    virtualClusters: { name: true, namespace: true },
  },
  secrets: { namespace: true, project: true, name: true },
  allowPlatformCli: true,
}

const keySpecFields: Fields = {
  displayName: true,
  description: true,
  user: true,
  team: true,
  subject: true,
  groups: true,
  key: true,
  disabled: true,
  ttl: true,
  ttlAfterLastActivity: true,
  scope: scopeFields,
  type: true,
  identity: true,
  identityRefresh: true,
  parent: true,
  oidcProvider: true,
  oidcLogin: true,
}

function isKnown(value: unknown, fields: Fields | true): boolean {
  if (fields === true || typeof value !== 'object' || value === null) return true
  if (Array.isArray(value)) return value.every(one => isKnown(one, fields))
  return Object.entries(value).every(([key, item]) => {
    const below = Object.hasOwn(fields, key) ? fields[key] : undefined
    return below !== undefined && isKnown(item, below)
  })
}

/** Whether a spec of an access key, or a part of one, has only fields that the model knows. */
export const isReadableKeySpec = (spec: unknown): boolean => isKnown(spec, keySpecFields)
export const isReadableScope = (scope: unknown): boolean => isKnown(scope, scopeFields)

/** Whether a JSON Patch of an access key names only fields the model knows. */
export function isReadablePatch(operations: unknown): boolean {
  if (!Array.isArray(operations)) return true
  return operations.every(({ path, value }: { path?: string; value?: unknown }) => {
    const [, first, ...rest] = String(path ?? '').split('/')
    if (first !== 'spec') return true
    let fields: Fields | true = keySpecFields
    for (const part of rest) {
      if (fields === true || /^(\d+|-)$/.test(part)) continue
      const below: Fields | true | undefined = Object.hasOwn(fields, part) ? fields[part] : undefined
      if (below === undefined) return false
      fields = below
    }
    return isKnown(value, fields)
  })
}

type SentScope = {
  readonly projects?: readonly { readonly project?: string; readonly readOnly?: boolean }[]
  readonly secrets?: readonly { readonly namespace?: string; readonly project?: string; readonly name?: string }[]
  readonly spaces?: readonly unknown[]
  readonly virtualClusters?: readonly unknown[]
  readonly clusters?: readonly { readonly cluster?: string }[]
  readonly roles?: readonly { readonly role?: string; readonly projects?: string[]; virtualClusters?: string[] }[]
  readonly rules?: readonly {
    readonly verbs?: string[]
    readonly resources?: readonly {
      readonly group?: string
      readonly resources?: string[]
      readonly resourceNames?: string[]
    }[]
    readonly namespaces?: string[]
    readonly requestTargets?: string[]
  }[]
  readonly allowPlatformCli?: boolean
}

export function readScope(sent: unknown): ReadScope {
  if (sent === undefined || sent === null) return undefined
  if (!isReadableScope(sent)) return 'unreadable'
  const { projects = [], spaces = [], virtualClusters = [], clusters = [], ...rest } = sent as SentScope
  const scope: Scope = {
    projects: projects.filter(({ readOnly }) => !readOnly).map(({ project = '' }) => project),
    readOnlyProjects: projects.filter(({ readOnly }) => readOnly).map(({ project = '' }) => project),
    secrets: (rest.secrets ?? []).map(({ namespace = '', project = '', name = '' }) =>
      project && !namespace
        ? { resource: 'projectsecrets', namespace: `p-${project}`, name }
        : { resource: project ? '/none' : 'sharedsecrets', namespace, name },
    ),
    // Spaces and virtual clusters restrict a key like clusters, and allow nothing in this API.
    clusters: [...clusters, ...spaces, ...virtualClusters].map(() => 'elsewhere'),
    roles: (rest.roles ?? []).map(({ role = '', projects: within = [], virtualClusters: inside = [] }) => ({
      role,
      projects: within.length || inside.length === 0 ? within : ['/none'],
    })),
    rules: (rest.rules ?? []).map(({ verbs = [], resources = [], namespaces = [], requestTargets = [] }) => ({
      verbs,
      namespaces,
      requestTargets,
      resources: resources.map(one => ({
        group: one.group ?? '',
        resources: one.resources ?? [],
        resourceNames: one.resourceNames ?? [],
      })),
    })),
    ...(rest.allowPlatformCli ? { allowPlatformCli: true } : {}),
  }
  const isSet =
    scope.allowPlatformCli ||
    [scope.projects, scope.readOnlyProjects, scope.secrets, scope.clusters, scope.roles, scope.rules].some(
      one => one?.length,
    )
  return isSet ? scope : undefined
}

export function scopeCovers(scope: ReadScope, atom: Atom): boolean {
  if (scope === undefined) return true
  if (scope === 'unreadable') return false
  if (!atom.path) return inScope(scope, atom)
  return (scope.rules ?? []).some(
    ({ verbs, resources, namespaces, requestTargets }) =>
      resources.length === 0 &&
      namespaces.length === 0 &&
      (verbs.length === 0 || verbs.includes('*') || verbs.includes(atom.verb)) &&
      (requestTargets.length === 0 || requestTargets.includes('Management')),
  )
}

const known = new Map<string, Bits>()

export function scopeBits(scope: ReadScope): Bits {
  if (scope === undefined) return everything
  if (scope === 'unreadable') return noBits()
  const text = JSON.stringify(scope)
  const there = known.get(text)
  if (there) return there
  const made = bitsOf(atom => scopeCovers(scope, atom))
  if (known.size > 5000) known.clear()
  known.set(text, made)
  return made
}
