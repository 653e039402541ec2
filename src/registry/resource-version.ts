// How a resourceVersion in a query is read, and the wait for one that is not there yet (wire §1.11).

import { badRequest, futureRevision } from '../api/errors.ts'
import type { Store } from '../storage/store.ts'

/** undefined: unset. Anything but a whole number is refused. */
export function parseVersion(text: string | undefined): number | undefined {
  if (text === undefined || text === '') return undefined
  if (!/^\d{1,16}$/.test(text) || !Number.isSafeInteger(Number(text)))
    throw badRequest(`invalid resource version: ${JSON.stringify(text)}: it must be one that this server gave out`)
  return Number(text)
}

/** Waits for the version that a query names, before the caller is authorized for what there is by then. */
export async function reachVersion(store: Store, text: string): Promise<void> {
  const version = parseVersion(text)
  if (version !== undefined && version > store.revision) await mustReach(store, version)
}

const patience = 3000
const step = 50

/** Waits a little for a revision that another server may be about to show; then says it is too large. */
export async function mustReach(store: Store, revision: number): Promise<void> {
  for (let waited = 0; store.revision < revision; waited += step) {
    if (waited >= patience) throw futureRevision(String(revision), String(store.revision))
    await new Promise(resolve => setTimeout(resolve, step))
  }
}
