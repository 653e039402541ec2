// Flags for the scope of access keys and tokens, and the scope that they describe (D23, D25).

import type { JsonObject } from '../../api/object.ts'
import { type Flags, type Given, UsageError } from '../../host/command.ts'
import { quoted } from '../../host/sanitize.ts'

export const scopeFlags = {
  'scope-project': {
    type: 'list',
    value: 'PROJECT[:ro]',
    what: 'Only this project; with :ro only to read it.',
  },
  'scope-space': { type: 'list', value: 'PROJECT/SPACE', what: 'Only this space.' },
  'scope-virtualcluster': { type: 'list', value: 'PROJECT/NAME', what: 'Only this virtual cluster.' },
  'scope-cluster': { type: 'list', value: 'CLUSTER', what: 'Only this connected cluster.' },
  'scope-role': {
    type: 'list',
    value: 'ROLE',
    what: 'Also allow what this role allows. platform-cli: read metadata of teams, keys and secrets, but no data; metrics-reader: read /metrics; agent: what a gateway needs.',
  },
} as const satisfies Flags

export const secretFlag = {
  secret: {
    type: 'list',
    value: 'NAME',
    what: 'Only this secret, and only to read it: NAME of a shared secret in the namespace, or PROJECT/NAME.',
  },
} as const satisfies Flags

type ScopeFlags = Given<typeof scopeFlags>['flags'] & Partial<Given<typeof secretFlag>['flags']>

/**
 * Throws UsageError at once. The result builds the scope for the namespace of shared secrets; undefined if no flag is
 * set.
 */
export function scopeOf(flags: ScopeFlags): (namespace: string) => JsonObject | undefined {
  const problems: string[] = []
  const pair = (flag: 'scope-space' | 'scope-virtualcluster', field: string) =>
    flags[flag].map(text => {
      const [project = '', name = '', ...more] = text.split('/')
      if (!project || !name || more.length) problems.push(`--${flag}: ${quoted(text)} must be PROJECT/NAME`)
      return { project, [field]: name }
    })
  const projects = flags['scope-project'].map(text => {
    const [, project = '', readOnly] = /^([^:/]+)(:ro)?$/.exec(text) ?? []
    if (!project) problems.push(`--scope-project: ${quoted(text)} must be PROJECT or PROJECT:ro`)
    return { project, ...(readOnly ? { readOnly: true } : {}) }
  })
  const secrets = (flags.secret ?? []).map(text => {
    const [, project, name = ''] = /^(?:([^/]+)\/)?([^/]+)$/.exec(text) ?? []
    if (!name) problems.push(`--secret: ${quoted(text)} must be NAME or PROJECT/NAME`)
    return { project, name }
  })
  const spaces = pair('scope-space', 'space')
  const virtualClusters = pair('scope-virtualcluster', 'virtualCluster')
  if (problems.length) throw new UsageError(problems)
  return namespace => {
    const scope = {
      projects,
      spaces,
      virtualClusters,
      clusters: flags['scope-cluster'].map(cluster => ({ cluster })),
      roles: flags['scope-role'].map(role => ({ role })),
      secrets: secrets.map(({ project, name }) => (project === undefined ? { namespace, name } : { project, name })),
    }
    const set = Object.entries(scope).filter(([, entries]) => entries.length)
    return set.length ? Object.fromEntries(set) : undefined
  }
}
