// Plans the write that makes an object of the cluster as wanted. Pure.

import type { Actual } from './wanted-object.ts'

export type Action = 'none' | 'create' | 'update' | 'replace' | 'delete'

type Wanted = Pick<Actual, 'digest' | 'fixed'>

/** undefined: the object is not wanted, or does not exist. */
export function plan(wanted: Wanted | undefined, actual: Actual | undefined): Action {
  if (!actual) return wanted ? 'create' : 'none'
  // The deletion of an object with finalizers is over when the cluster says so. Nobody may change a foreign object.
  if (actual.isTerminating || !actual.isOwn) return 'none'
  if (!wanted) return 'delete'
  if (wanted.fixed !== actual.fixed) return 'replace'
  return wanted.digest === actual.digest ? 'none' : 'update'
}
