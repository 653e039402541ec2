// A scope in plain words, one sentence per entry.

import type { Scope, ScopeRole, ScopeRule } from '../../api/caller.ts'

const all = (name: string | undefined, many: string, one: string) => (name === '*' ? `all ${many}` : `${one} ${name}`)

/** [] means: no restriction. */
export function scopeSentences(scope: Scope | undefined): string[] {
  if (!scope) return []
  return [
    ...(scope.projects ?? []).map(
      ({ project, readOnly }) => `${readOnly ? 'Reads' : 'Reads and changes'} ${all(project, 'projects', 'project')}.`,
    ),
    ...(scope.secrets ?? []).map(({ namespace, project, name }) =>
      project
        ? `Reads the secret ${name} of project ${project}.`
        : `Reads the global secret ${namespace ?? 'default'}/${name}.`,
    ),
    ...(scope.spaces ?? []).map(({ project, space }) => `Uses ${all(space, 'spaces', 'space')} of project ${project}.`),
    ...(scope.virtualClusters ?? []).map(
      ({ project, virtualCluster }) =>
        `Uses ${all(virtualCluster, 'virtual clusters', 'virtual cluster')} of project ${project}.`,
    ),
    ...(scope.clusters ?? []).map(({ cluster }) => `Uses ${all(cluster, 'clusters', 'cluster')}.`),
    ...(scope.roles ?? []).map(roleSentence),
    ...(scope.allowPlatformCli ? ['Has what the command line needs: metadata, no data.'] : []),
    ...(scope.rules ?? []).map(ruleSentence),
  ]
}

const meanings = new Map([
  ['agent', 'Acts as the agent of a cluster'],
  ['metrics-reader', 'Reads metrics'],
  ['platform-cli', 'Has what the command line needs: metadata, no data'],
])

function roleSentence({ role = '', projects = [], virtualClusters = [] }: ScopeRole): string {
  const where = [
    ...(projects.length ? [`projects ${projects.join(', ')}`] : []),
    ...(virtualClusters.length ? [`virtual clusters ${virtualClusters.join(', ')}`] : []),
  ]
  return `${meanings.get(role) ?? `Has the role ${role}`}${where.length ? `, in ${where.join(' and ')}` : ''}.`
}

function ruleSentence({ verbs = [], resources = [], namespaces = [] }: ScopeRule): string {
  const what = resources.flatMap(({ resources: names = [], group = '' }) =>
    names.length ? names : [group ? `everything in ${group}` : 'everything'],
  )
  const where = namespaces.length ? ` in ${namespaces.map(name => name || 'no namespace').join(', ')}` : ''
  return `May ${verbs.join(', ') || 'do anything with'} ${what.join(', ') || 'everything'}${where}.`
}
