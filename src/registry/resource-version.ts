// Parses the resourceVersion of a query, and waits for a future one (wire §1.11).

import { badRequest, futureRevision, unavailable } from '../api/errors.ts'
import { type Store, StoreError } from '../storage/store.ts'

/** Returns undefined if unset. Throws unless it is a whole number. */
export function parseVersion(text: string | undefined): number | undefined {
  if (text === undefined || text === '') return undefined
  if (!/^\d{1,16}$/.test(text) || !Number.isSafeInteger(Number(text)))
    throw badRequest(`invalid resource version: ${JSON.stringify(text)}: it must be one that this server returned`)
  return Number(text)
}

/**
 * Waits for the version of a query before the server authorizes the caller, so that it uses the permissions of that
 * version.
 */
export async function reachVersion(store: Store, text: string): Promise<void> {
  const version = parseVersion(text)
  if (version !== undefined && version > store.revision) await waitForRevision(store, version)
}

/** Waits until reads contain everything that was written before, by any replica. `isAnyVersion`: any state that is not outdated. */
export function confirm(store: Store, isAnyVersion: boolean): Promise<void> | undefined {
  const { outdated } = store
  if (outdated !== undefined) throw unavailable(`the server cannot read its storage: ${outdated}`)
  return isAnyVersion ? undefined : store.confirm()?.catch(asUnavailable)
}

function asUnavailable(error: unknown): never {
  throw error instanceof StoreError ? unavailable(`the server cannot read its storage: ${error.message}`) : error
}

const timeoutMs = 3000
const pollMs = 50

/** Waits briefly for a revision that another server may have returned, then throws. */
export async function waitForRevision(store: Store, revision: number): Promise<void> {
  for (let waited = 0; store.revision < revision; waited += pollMs) {
    if (waited >= timeoutMs) throw futureRevision(String(revision), String(store.revision))
    await new Promise(resolve => setTimeout(resolve, pollMs))
  }
}
