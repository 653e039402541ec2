// Removes names and values from what a support bundle shows. Everything that is not known to be harmless is left out.

import { createHash } from 'node:crypto'
import { kinds } from '../../kinds/index.ts'

export type Redaction = {
  /** A name of an object or a user: itself, or a hash that is the same everywhere in one bundle. */
  name(text: string): string
  /** A path with only its fixed words. */
  path(text: string): string
}

/** `salt` is new for each bundle, so that nobody can test guesses against two of them. */
export function openRedaction(isNamed: boolean, salt: Uint8Array): Redaction {
  const name = (text: string) =>
    isNamed ? text : `name-${createHash('sha256').update(salt).update(text).digest('hex').slice(0, 12)}`
  return {
    name,
    path: text =>
      text
        .split('/')
        .map(part => (part === '' || fixedSegments.has(part) ? part : isNamed && isName.test(part) ? part : '*'))
        .join('/'),
  }
}

/** A name of an object, not a token: DNS labels are shorter, and have no upper-case letters. */
const isName = /^[a-z0-9]([a-z0-9.:-]{0,61}[a-z0-9])?$/

const fixedSegments = new Set([
  ...['kubernetes', 'management', 'cluster', 'project', 'virtualcluster', 'space', 'api', 'apis', 'v1', 'namespaces'],
  ...['livez', 'readyz', 'healthz', 'metrics', 'version', 'openapi', 'v2', 'v3', 'auth', 'console', 'watch'],
  ...['.well-known', 'jwks.json', 'openid-configuration', 'status', 'pods', 'services', 'secrets', 'configmaps'],
  ...kinds.flatMap(({ group, plural, subresources }) => [group, plural, ...Object.keys(subresources)]),
])

/** Word for word: `*` for all that could be a name, an address, a path or a secret. */
export const plainWords = (text: string): string =>
  text
    .slice(0, 2048)
    .split(/\s+/)
    .map(word => (/^\(?[A-Za-z]?[a-z']{0,19}[.,:;)]?$/.test(word) || /^\d{1,5}[,.;]?$/.test(word) ? word : '*'))
    .join(' ')

/** A word in a fixed vocabulary, such as a reason; undefined: it is something else. */
export const codeWord = (value: unknown): string | undefined =>
  typeof value === 'string' && /^[A-Za-z][A-Za-z_]{0,63}$/.test(value) ? value : undefined

export const time = (value: unknown): string | undefined =>
  typeof value === 'string' && /^\d{4}-\d\d-\d\dT[\d:.]{8,15}Z$/.test(value) ? value : undefined

/** Labels of metrics with a fixed set of values. */
const keptLabels = new Set(
  'code component dry_run group le reason request_kind resource result scope side state subresource target verb version within'.split(
    ' ',
  ),
)

/** Metrics without the values of other labels, which can contain names. */
export const metricsText = (text: string): string =>
  text
    .split('\n')
    .flatMap(line => {
      if (line.startsWith('# ')) return /^# (HELP|TYPE) [a-z_]+ /.test(line) ? [line] : []
      const [, name, labels = '', value] = /^([a-z_]+)(\{.*\})? ([-+.\deE]+|NaN|[+-]Inf)$/.exec(line) ?? []
      if (name === undefined) return []
      return [`${name}${labels.replace(/([a-z_]+)="((?:[^"\\]|\\.)*)"/g, shownLabel)} ${value}`]
    })
    .join('\n')

const shownLabel = (_: string, label: string, value: string) =>
  `${label}="${value === '' || (keptLabels.has(label) && /^[\w.+-]{1,64}$/.test(value)) ? value : '*'}"`

/** Health checks without what they say in words. */
export const healthText = (text: string): string =>
  text
    .split('\n')
    .flatMap(line => {
      const [, check] = /^(\[[+-]\][a-z-]{1,40} (?:ok|failed|excluded))/.exec(line) ?? []
      return check ?? (/^(ok|[a-z]+ check (passed|failed))$/.test(line) ? line : [])
    })
    .join('\n')
