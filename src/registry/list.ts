// Lists a collection.
// All pages show the same revision.

import { badRequest, expired, fieldForbidden, invalidOptions, notSupported } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import type { List, ListOptions } from '../api/resources.ts'
import { type ListResult, StoreError } from '../storage/store.ts'
import type { Context } from './context.ts'
import { type Position, readToken, writeToken } from './continue.ts'
import { keepList, recentList, slotOf } from './list-cache.ts'
import { parseVersion, waitForRevision } from './resource-version.ts'
import { type Selected, select, stateOf } from './selection.ts'
import { translate } from './store-errors.ts'
import { presentAmong } from './undecryptable.ts'
import { listVirtual } from './virtual-kinds.ts'

export async function list(ctx: Context, kind: Kind, options: ListOptions = {}): Promise<List> {
  const own = ctx.admissions.get(kind)?.list
  if (own) return own(options, ctx.caller)
  if (!kind.stored) return listVirtual(ctx, kind, options)
  const slot = slotOf(ctx, kind, options)
  const recent = slot === undefined ? undefined : recentList(ctx.store, slot)
  if (recent) return recent
  const selected = select(ctx, kind, options)
  if (selected.access) await ctx.visibility.ready()
  const limit = options.limit && options.limit > 0 ? options.limit : undefined
  const from = options.continue ? continueFrom(kind, options, options.continue) : undefined
  const snapshot = from ? (from.revision === -1 ? undefined : from.revision) : await snapshotOf(ctx, options)
  const read = listOf(ctx, kind, selected, { limit, from, snapshot })
  // In the same turn as the read: informers that start together request a page at the same moment.
  return slot === undefined ? read : keepList(ctx.store, slot, read)
}

function listOf(ctx: Context, kind: Kind, selected: Selected, request: Page): List {
  const result = page(ctx, kind, selected, request)
  const last = result.entries.at(-1)
  const items = result.entries.map(entry => presentAmong(ctx, kind, entry))
  const base = { items, resourceVersion: String(result.revision) }
  if (!result.more || !last) return base
  const next = writeToken(kind, { revision: result.revision, after: last.key })
  return selected.query.filter
    ? { ...base, continue: next }
    : { ...base, continue: next, remainingItemCount: result.remaining }
}

function continueFrom(kind: Kind, options: ListOptions, token: string): Position {
  if (options.resourceVersionMatch)
    throw invalidOptions('ListOptions', [
      fieldForbidden('resourceVersionMatch', 'resourceVersionMatch is forbidden when continue is provided'),
    ])
  if (options.resourceVersion && options.resourceVersion !== '0')
    throw badRequest('specifying resource version is not allowed when using continue')
  return readToken(kind, token)
}

/** The revision that the parameters request; undefined means the newest. */
async function snapshotOf(ctx: Context, options: ListOptions): Promise<number | undefined> {
  const { resourceVersionMatch: match } = options
  const version = parseVersion(options.resourceVersion)
  checkMatch(match, version)
  if (version === undefined) return undefined
  if (version > ctx.store.revision) await waitForRevision(ctx.store, version)
  return match === 'Exact' ? version : undefined
}

/** Checks which values of resourceVersion and resourceVersionMatch go together. */
export function checkMatch(match: string | undefined, version: number | undefined): void {
  if (match === undefined || match === '') return
  const field = 'resourceVersionMatch'
  if (version === undefined)
    throw invalidOptions('ListOptions', [
      fieldForbidden(field, 'resourceVersionMatch is forbidden unless resourceVersion is provided'),
    ])
  if (match !== 'Exact' && match !== 'NotOlderThan')
    throw invalidOptions('ListOptions', [notSupported(field, match, ['Exact', 'NotOlderThan', ''])])
  if (match === 'Exact' && version === 0)
    throw invalidOptions('ListOptions', [
      fieldForbidden(field, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'),
    ])
}

type Page = {
  readonly limit: number | undefined
  readonly from: Position | undefined
  readonly snapshot: number | undefined
}

function page(ctx: Context, kind: Kind, selected: Selected, { limit, from, snapshot }: Page): ListResult {
  try {
    if (selected.single && !from && snapshot === undefined) return stateOf(ctx, selected)
    return ctx.store.list({
      ...selected.query,
      ...selected.among(),
      ...(limit ? { limit } : {}),
      ...(from ? { after: from.after } : {}),
      ...(snapshot === undefined ? {} : { revision: snapshot }),
    })
  } catch (error) {
    if (error instanceof StoreError && error.reason === 'compacted' && from) throw tokenTooOld(kind, from)
    throw translate(error, kind, '')
  }
}

function tokenTooOld(kind: Kind, from: Position): Error {
  return expired(
    'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.',
    writeToken(kind, { revision: -1, after: from.after }),
  )
}
