// Commits a change together with the objects that it writes, such as a token revocation (D33).

import type { Companion, Precondition } from '../api/admission.ts'
import { unavailable } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import { type Json, type JsonObject, type Metadata, type Resource, timestamp } from '../api/object.ts'
import type { Document } from '../api/resources.ts'
import { isEqual } from '../smd/compare.ts'
import { type Key, type Op, StoreError } from '../storage/store.ts'
import { type Context, keyOf } from './context.ts'
import { newMetadata } from './metadata.ts'
import { encode, loadToReplace, presentStored } from './object-codec.ts'

/** `more`, `preconditions`: in addition to those of the kind. */
type Change<Old extends Resource | undefined> = {
  readonly old: Old
  readonly next: Resource | undefined
  readonly more?: readonly Companion[] | undefined
  readonly preconditions?: (() => readonly Precondition[]) | undefined
}

/**
 * Commits a write together with its companions, whose times are those of the commit. Store errors are about the key of the
 * write.
 */
export async function commitChange(ctx: Context, kind: Kind, write: Op, change: Change<Resource>): Promise<number> {
  const { old, next } = change
  const { revision } = await ctx.pending.track(
    kind,
    commitAll(ctx, [write], () => extrasOf(ctx, kind, change)),
  )
  if (kind.rights && !isEqual(sharingOf(old), sharingOf(next))) ctx.permissionVersions.step(affectedBy(kind, old, next))
  return revision
}

/** Commits a new object together with its companions. Most have none. */
export async function commitNew(ctx: Context, kind: Kind, write: Op, change: Change<undefined>): Promise<number> {
  const extras = () => extrasOf(ctx, kind, change)
  const { companions, preconditions } = extras()
  if (companions.length + preconditions.length === 0) return ctx.store.commit([write])
  const commit = commitAll(ctx, [write], extras)
  return (await (companions.length ? ctx.pending.track(kind, commit) : commit)).revision
}

type Extras = { readonly companions: readonly Companion[]; readonly preconditions: readonly Precondition[] }

function extrasOf(ctx: Context, kind: Kind, change: Change<Resource | undefined>): Extras {
  const { old, next, more = [] } = change
  const { companions, preconditions } = ctx.admissions.get(kind) ?? {}
  return {
    companions: [...(companions?.(old, next) ?? []), ...more],
    preconditions: [...(preconditions?.(old, next) ?? []), ...(change.preconditions?.() ?? [])],
  }
}

/** Whom the object grants permissions, and whether it is being deleted. */
const sharingOf = (object: Resource | undefined): Json =>
  object
    ? ([object.spec?.['owner'], object.spec?.['access'], object.metadata.deletionTimestamp] as unknown as Json)
    : null

/** Everybody, if the object is one that others refer to by name, such as a team, and goes. */
function affectedBy(kind: Kind, old: Resource, next: Resource | undefined): ReadonlySet<string> | undefined {
  const isGoing = !next || next.metadata.deletionTimestamp !== old.metadata.deletionTimestamp
  if (!kind.readers || (isGoing && !kind.namespaced)) return undefined
  return new Set([...kind.readers(old), ...(next ? kind.readers(next) : [])])
}

/** A companion that was committed without a change. */
export type Written = { readonly verb: 'create' | 'update'; readonly kind: Kind; readonly document: Document }

/** Writes companions without a change. */
export async function commitAlone(ctx: Context, make: () => readonly Companion[]): Promise<readonly Written[]> {
  const { revision, planned } = await commitAll(ctx, [], () => ({ companions: make(), preconditions: [] }))
  return planned.map(({ op: { value, expect }, kind, object }) => ({
    verb: expect === 0 ? 'create' : 'update',
    kind,
    document: presentStored(ctx, kind, { object, value, revision }),
  }))
}

/**
 * A merged object or a precondition may change between read and commit. The client did not cause that race, so the server retries, even
 * if the client set a resourceVersion. Every retry means that another commit succeeded, so real load never reaches the
 * limit.
 */
async function commitAll(ctx: Context, writes: readonly Op[], make: () => Extras): Promise<Committed> {
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    const { companions, preconditions } = make()
    const planned = companions.flatMap(companion => plan(ctx, companion) ?? [])
    const checks = preconditions.map((one): Op => checkOf(ctx, one))
    const ops = [...writes, ...planned.map(({ op }) => op), ...checks]
    if (ops.length === 0) return { revision: ctx.store.revision, planned }
    const release = reserve(ctx, planned)
    try {
      return { revision: await ctx.store.commit(ops), planned }
    } catch (error) {
      const retried = [...checks, ...planned.flatMap(({ op, isMerged }) => (isMerged ? [op] : []))]
      if (!retried.some(({ key }) => isAbout(error, key))) throw error
    } finally {
      release()
    }
  }
  throw unavailable('too many concurrent changes; try again')
}

const maxAttempts = 1000

function checkOf(ctx: Context, { kind, ref }: Precondition): Op {
  const key = keyOf(kind, ref)
  return { type: 'check', key, expect: ctx.store.get(key)?.revision ?? 0 }
}

type Put = Extract<Op, { readonly type: 'put' }>

type Committed = { readonly revision: number; readonly planned: readonly Planned[] }

type Planned = {
  readonly kind: Kind
  readonly object: Resource
  readonly op: Put
  /** Whether to retry after a conflict. */
  readonly isMerged: boolean
  /** The label term whose number of objects is limited. Set for new objects only. */
  readonly counted?: string | undefined
}

function plan(ctx: Context, companion: Companion): Planned | undefined {
  const { kind, merge, limit } = companion
  const fresh = complete(ctx, kind, companion.object)
  const { namespace = '', name = '' } = fresh.metadata
  const key = keyOf(kind, { namespace, name })
  const entry = merge && ctx.store.get(key)
  if (!entry) {
    if (limit && countOf(ctx, key, limit) >= limit.max) return plan(ctx, limit.instead)
    const op: Put = { type: 'put', key, value: encode(ctx, kind, fresh), expect: 0 }
    return { kind, object: fresh, op, isMerged: merge !== undefined, counted: limit && termOf(key, limit) }
  }
  const stored = loadToReplace(ctx, kind, entry)
  const merged = merge(stored)
  if (!merged) return undefined
  const object = complete(ctx, kind, merged, stored)
  const op: Put = { type: 'put', key, value: encode(ctx, kind, object), expect: entry.revision }
  return { kind, object, op, isMerged: true }
}

type Limit = NonNullable<Companion['limit']>

const termOf = ({ bucket }: Key, { label, value }: Limit) => `${bucket} ${label}=${value}`

/**
 * Counts stored objects with the label, and objects in pending commits. Uses the label index of the store, without a
 * scan.
 */
function countOf(ctx: Context, key: Key, limit: Limit): number {
  const { label, value, max } = limit
  const { entries } = ctx.store.list({ bucket: key.bucket, labels: [{ key: label, values: [value] }], limit: max })
  const pending = [...(ctx.reserved.get(termOf(key, limit)) ?? [])].filter(one => !ctx.store.get(one))
  return entries.length + new Set(pending.map(({ name }) => name)).size
}

/** Counts new objects until their commit ends, so that concurrent commits cannot exceed the limit together. */
function reserve({ reserved }: Context, planned: readonly Planned[]): () => void {
  const taken = planned.flatMap(({ op, counted }) => (counted === undefined ? [] : [{ counted, key: { ...op.key } }]))
  for (const { counted, key } of taken) reserved.set(counted, (reserved.get(counted) ?? new Set()).add(key))
  return () => {
    for (const { counted, key } of taken) {
      const keys = reserved.get(counted)
      keys?.delete(key)
      if (keys?.size === 0) reserved.delete(counted)
    }
  }
}

const isAbout = (error: unknown, { bucket, namespace, name }: Key): boolean =>
  error instanceof StoreError &&
  error.key?.bucket === bucket &&
  error.key.namespace === namespace &&
  error.key.name === name

/** A merged object is a new object with the same name, unless it has the uid of the stored one. */
function complete(ctx: Context, kind: Kind, object: JsonObject, stored?: Resource): Resource {
  const head = { apiVersion: kind.apiVersion, kind: kind.kind }
  const given = object.metadata as Metadata | undefined
  if (stored && given?.uid === stored.metadata.uid) {
    const metadata = { ...stored.metadata, ...given, generation: (stored.metadata.generation ?? 0) + 1 }
    return { ...object, ...head, metadata } as unknown as Resource
  }
  const uid = ctx.uuid()
  const sent = { name: `${kind.generateNamePrefix ?? ''}${uid}`, ...given }
  const namespace = kind.namespaced ? (sent.namespace ?? '') : ''
  const metadata = newMetadata(sent, { namespace, uid, now: timestamp(ctx.now()) })
  return { ...object, ...head, metadata } as unknown as Resource
}
