// Warns about projects of a scope that refer to nothing yet, because they may be mistyped.

import type { Caller, Scope } from '../api/caller.ts'
import type { Question } from '../api/kind.ts'
import type { Decision } from '../api/permissions.ts'

export type ProjectDependencies = {
  /** Whether a namespace contains objects. */
  readonly isNamespaceInUse: (namespace: string) => boolean
  readonly authorize: (caller: Caller, question: Question) => Decision
}

type Scopes = { readonly caller: Caller; readonly next: Scope | undefined; readonly old?: Scope | undefined }

/** A scope can name very many projects. */
const maxWarnings = 10
const maxLookUps = 100

/**
 * Warnings about projects of a scope in which the caller can see nothing. Whether others have objects there stays hidden.
 * A name that `old` has gives no warning again.
 */
export function unknownProjects(dependencies: ProjectDependencies, { caller, next, old }: Scopes): readonly string[] {
  const known = new Set(Array.from(projectsIn(old), ({ project }) => project))
  const warnings: string[] = []
  let left = maxLookUps
  for (const { project, field } of projectsIn(next)) {
    if (warnings.length === maxWarnings || left-- === 0) break
    if (known.has(project)) continue
    known.add(project)
    if (!isVisible(dependencies, caller, `p-${project}`))
      warnings.push(`spec.scope.${field}: project "${project}" has no objects that you can see; check the name`)
  }
  return warnings
}

function isVisible({ isNamespaceInUse, authorize }: ProjectDependencies, caller: Caller, namespace: string): boolean {
  if (!isNamespaceInUse(namespace)) return false
  const secrets = { group: 'management.platform.sh', resource: 'projectsecrets', namespace }
  return (
    authorize(caller, { verb: 'list', target: secrets }).allowed ||
    authorize(caller, { verb: 'get', target: { group: '', resource: 'namespaces', namespace: '', name: namespace } })
      .allowed
  )
}

type Named = { readonly project: string; readonly field: string }

function* projectsIn(scope: Scope = {}): Generator<Named> {
  for (const list of ['projects', 'spaces', 'virtualClusters', 'secrets'] as const)
    for (const [index, { project }] of (scope[list] ?? []).entries())
      if (project && project !== '*') yield { project, field: `${list}[${index}].project` }
  for (const [index, { projects = [] }] of (scope.roles ?? []).entries())
    for (const [position, project] of projects.entries())
      if (project !== '*') yield { project, field: `roles[${index}].projects[${position}]` }
  for (const [index, { virtualClusters = [] }] of (scope.rules ?? []).entries())
    for (const [position, { namespace = '' }] of virtualClusters.entries())
      if (namespace.startsWith('p-'))
        yield { project: namespace.slice(2), field: `rules[${index}].virtualClusters[${position}].namespace` }
}
