// The objects that a caller can possibly see. The authorizer names them by terms, the registry indexes objects by the same terms.

import type { Ref } from './object.ts'

/**
 * A superset of what a filter keeps: objects with one of these terms, in one of these namespaces, or with one of these
 * names. The filter still decides about each.
 */
export type Candidates = {
  readonly terms: readonly string[]
  readonly namespaces: readonly string[]
  readonly refs: readonly Ref[]
}
