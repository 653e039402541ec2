// Finds the earlier version of a secret that a change restores, so that the history shows rollbacks (D35).

import type { RequestContext } from '../api/admission.ts'
import { ApiError } from '../api/errors.ts'
import type { Ref, Resource } from '../api/object.ts'
import { hasNewData, isSameData, type Secret, versionRef } from '../kinds/secret-version.ts'
import { type HistoryDependencies, storedVersions } from './secret-history.ts'

/** The newest earlier version with exactly the new data; undefined if there is none. */
export async function restoredVersion(
  next: Secret,
  old: Secret | undefined,
  { written }: RequestContext,
  dependencies: HistoryDependencies,
): Promise<number | undefined> {
  // A caller who may not see the data must not learn whether it equals an earlier version.
  const isBlind = written.some(path => path === 'spec.data' || path.startsWith('spec.data.'))
  if (!old || isBlind || !hasNewData(old, next)) return undefined
  for (const { number = 0 } of await storedVersions(old, dependencies)) {
    const data = dataOf(versionRef(old, number), dependencies)
    if (data && isSameData(data, next.spec?.data)) return number
  }
  return undefined
}

/** A damaged version must not prevent a write. */
function dataOf(ref: Ref, { openVersion }: HistoryDependencies): NonNullable<Secret['spec']>['data'] {
  try {
    const version: Resource | undefined = openVersion(ref)
    return version && ((version.spec?.['data'] ?? {}) as { readonly [key: string]: string })
  } catch (error) {
    if (error instanceof ApiError) return undefined
    throw error
  }
}
