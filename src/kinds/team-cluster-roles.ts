// Cluster roles of a team: those of this API, and those of connected clusters (D23, D69).

import { type FieldError, fieldForbidden, invalidValue, isEnough, required } from '../api/errors.ts'
import type { ClusterSelection } from '../api/grant.ts'
import { pathSegment } from '../api/names.ts'
import { mapList, struct, text } from '../api/schema.ts'
import { checkSelection, clusterSelection } from './cluster-selection.ts'

/** An entry with `clusters` grants nothing in this API, so that no unknown field may take its place. */
export const clusterRoles = mapList(
  struct(
    'A cluster role.',
    { name: text('The cluster role to assign.', { maxLength: 253 }), clusters: clusterSelection },
    ['name'],
    { 'x-closed': true },
  ),
  ['name'],
  "Cluster roles assigned to the team's users: of this API, or, with clusters, of these connected clusters.",
)

type Entry = { readonly name?: string | undefined; readonly clusters?: ClusterSelection | undefined }
type Spec = { readonly clusterRoles?: readonly Entry[] | undefined }

const entriesOf = (spec: unknown): readonly Entry[] => (spec as Spec | undefined)?.clusterRoles ?? []

/** Names of the cluster roles of this API. */
export const localRoles = (spec: unknown): readonly string[] =>
  entriesOf(spec).flatMap(({ name = '', clusters }) => (clusters === undefined ? [name] : []))

/** Cluster roles of connected clusters. */
export const remoteRoles = (spec: unknown): readonly { readonly role: string; readonly clusters: ClusterSelection }[] =>
  entriesOf(spec).flatMap(({ name: role = '', clusters }) => (clusters ? [{ role, clusters }] : []))

/** Each is compared with each cluster. */
const maxRemote = 20

export function checkClusterRoles(entries: readonly Entry[] = []): FieldError[] {
  const errors: FieldError[] = []
  let remote = 0
  for (const [index, { name, clusters }] of entries.entries()) {
    if (isEnough(errors)) return errors
    const at = `spec.clusterRoles[${index}]`
    if (name === '') errors.push(required(`${at}.name`, 'cluster role to assign'))
    if (!clusters) continue
    for (const problem of pathSegment(name ?? '')) errors.push(invalidValue(`${at}.name`, name ?? '', problem))
    if (++remote > maxRemote) {
      errors.push(fieldForbidden(`${at}.clusters`, `at most ${maxRemote} roles of connected clusters are allowed`))
      return errors
    }
    errors.push(...checkSelection(clusters, `${at}.clusters`))
  }
  return errors
}
