// Selects connected clusters by name or by labels, in teams and project secrets (D68, D69).

import { type FieldError, fieldForbidden, invalidValue, isEnough, required } from '../api/errors.ts'
import type { ClusterSelection, Grant } from '../api/grant.ts'
import { dnsLabel, labelValue, qualifiedName } from '../api/names.ts'
import { isObject, type Resource } from '../api/object.ts'
import { closed, list, mapOf, oneOf, setOf, struct, text } from '../api/schema.ts'
import { matchesLabels } from './label-selector.ts'

const expression = struct(
  'A requirement on one label.',
  {
    key: text('Key of the label.'),
    operator: oneOf(['In', 'NotIn', 'Exists', 'DoesNotExist'], 'How the label relates to the values.'),
    values: list(text(''), 'Values for In and NotIn.', { maxItems: 20 }),
  },
  ['key', 'operator'],
  closed,
)

/** An absent field must not mean "all clusters", so that unknown fields are errors. */
export const clusterSelection = struct(
  'The connected clusters: names or a selector, not both.',
  {
    names: setOf(text(''), 'Names of clusters.', { maxItems: 100 }),
    selector: struct(
      'Selects clusters by their labels. An empty selector selects none.',
      {
        matchLabels: mapOf(text(''), 'Labels that a cluster must have.', { maxProperties: 10 }),
        matchExpressions: list(expression, 'Further requirements. All must be met.', { maxItems: 10 }),
      },
      [],
      closed,
    ),
  },
  [],
  closed,
)

type Selector = NonNullable<ClusterSelection['selector']>
type Uids = { readonly [cluster: string]: string }

/** The part of a cluster that selections use. */
export type SelectableCluster = {
  readonly name: string
  readonly uid: string
  readonly labels: { readonly [key: string]: string }
}

/** `uids`: of the clusters that the names mean. A name without one means the first cluster that is created with it (D68). */
export function selects(selection: ClusterSelection, cluster: SelectableCluster, uids: Uids): boolean {
  const { names = [], selector } = selection
  if (names.length) {
    const pinned = Object.hasOwn(uids, cluster.name) ? uids[cluster.name] : undefined
    return names.includes(cluster.name) && (pinned === undefined || pinned === cluster.uid)
  }
  const { matchLabels = {}, matchExpressions = [] } = selector ?? {}
  const isEmpty = Object.keys(matchLabels).length + matchExpressions.length === 0
  return !isEmpty && matchesLabels({ matchLabels, matchExpressions }, cluster.labels)
}

export function checkSelection(selection: ClusterSelection | undefined, at: string): FieldError[] {
  const { names = [], selector } = selection ?? {}
  if (names.length && selector) return [fieldForbidden(`${at}.selector`, 'names are set; use names or a selector')]
  if (selector) return checkSelector(selector, `${at}.selector`)
  if (names.length === 0) return [required(at, 'names or a selector of clusters')]
  const errors: FieldError[] = []
  for (const [index, name] of names.entries())
    for (const problem of isEnough(errors) ? [] : dnsLabel(name))
      errors.push(invalidValue(`${at}.names[${index}]`, name, problem))
  return errors
}

function checkSelector(selector: Selector, at: string): FieldError[] {
  const { matchLabels = {}, matchExpressions = [] } = selector
  if (Object.keys(matchLabels).length + matchExpressions.length === 0)
    return [required(at, 'an empty selector selects no cluster; set matchLabels or matchExpressions')]
  const errors: FieldError[] = []
  const check = (field: string, value: string, problems: readonly string[]) => {
    if (!isEnough(errors)) for (const problem of problems) errors.push(invalidValue(field, value, problem))
  }
  for (const [key, value] of Object.entries(matchLabels)) {
    check(`${at}.matchLabels`, key, qualifiedName(key))
    check(`${at}.matchLabels`, value, labelValue(value))
  }
  for (const [index, { key = '', operator, values = [] }] of matchExpressions.entries()) {
    const field = `${at}.matchExpressions[${index}]`
    check(`${field}.key`, key, qualifiedName(key))
    const needsValues = operator === 'In' || operator === 'NotIn'
    if (needsValues && values.length === 0)
      check(`${field}.values`, '', [`must be specified when operator is ${operator}`])
    if (!needsValues && values.length > 0)
      check(`${field}.values`, values.join(','), [`may not be specified when operator is ${operator}`])
    for (const value of values) check(`${field}.values`, value, labelValue(value))
  }
  return errors
}

/** Names of clusters in grants, each once. */
export const clusterNamesIn = (grants: readonly Grant[]): readonly string[] => [
  ...new Set(
    grants.flatMap(grant =>
      grant.type === 'clusterRole' || grant.type === 'deliver' ? (grant.clusters.names ?? []) : [],
    ),
  ),
]

/** A JSON object that maps names of clusters to uids. Only the server writes it (D26). */
export const clusterUidsAnnotation = 'platform.sh/cluster-uids'

export function clusterUidsOf({ metadata }: Pick<Resource, 'metadata'>): Uids {
  try {
    const value: unknown = JSON.parse(metadata.annotations?.[clusterUidsAnnotation] ?? '{}')
    return isObject(value) && Object.values(value).every(uid => typeof uid === 'string') ? (value as Uids) : {}
  } catch {
    return {} // written by a user of an earlier version
  }
}

/** Sets these uids. An empty map removes the annotation. */
export function withClusterUids<T extends Resource>(object: T, uids: Uids): T {
  const { [clusterUidsAnnotation]: before, ...others } = object.metadata.annotations ?? {}
  const names = Object.keys(uids).sort()
  const value = names.length ? JSON.stringify(Object.fromEntries(names.map(name => [name, uids[name]]))) : undefined
  if (value === before) return object
  const annotations = value === undefined ? others : { ...others, [clusterUidsAnnotation]: value }
  const { annotations: _, ...metadata } = object.metadata
  return { ...object, metadata: Object.keys(annotations).length ? { ...metadata, annotations } : metadata }
}
