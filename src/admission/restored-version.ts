// Finds the earlier version of a secret that a change restores, so that the history shows rollbacks (D35).

import type { RequestContext } from '../api/admission.ts'
import type { Caller } from '../api/caller.ts'
import { ApiError } from '../api/errors.ts'
import type { Kind, Question } from '../api/kind.ts'
import type { Ref, Resource } from '../api/object.ts'
import type { Decision } from '../api/permissions.ts'
import { pause } from '../api/time-slices.ts'
import { hasNewData, isSameData, type Secret, versionRef } from '../kinds/secret-version.ts'
import { type HistoryDependencies, storedVersions } from './secret-history.ts'

export type RestoreDependencies = HistoryDependencies & {
  readonly authorize: (caller: Caller, question: Question) => Decision
}

/** The newest earlier version with exactly the new data; undefined if there is none. */
export async function restoredVersion(
  kind: Kind,
  { next, old }: { readonly next: Secret; readonly old: Secret | undefined },
  { caller }: RequestContext,
  dependencies: RestoreDependencies,
): Promise<number | undefined> {
  if (!old || !hasNewData(old, next)) return undefined
  // Otherwise the response would tell whether a guess equals an earlier version.
  const { namespace = '', name = '' } = old.metadata
  const target = { group: kind.group, resource: kind.plural, subresource: 'history', namespace, name }
  if (!dependencies.authorize(caller, { verb: 'get', target }).allowed) return undefined
  for (const { number = 0 } of await storedVersions(old, dependencies)) {
    await pause()
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
