// Deletes one object or a collection: preconditions, grace period, finalizers, propagation (D10, SPEC §3).

import { invalidOptions, invalidValue, notFound, preconditionFailed, success } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import { type Ref, type Resource, timestamp } from '../api/object.ts'
import { type Deleted, type DeleteOptions, documentOf, type List, type ListOptions } from '../api/resources.ts'
import type { Op } from '../storage/store.ts'
import { commitChange } from './companion-writes.ts'
import { type Context, keyOf, refOf } from './context.ts'
import { list } from './list.ts'
import { encode, presentStored, visible } from './object-codec.ts'
import { retryConflicts } from './retry-conflicts.ts'
import { loadToRemove, presentAmong } from './undecryptable.ts'
import { isGone } from './update.ts'

const policyFinalizer = { Foreground: 'foregroundDeletion', Orphan: 'orphan', Background: undefined } as const

export async function remove(ctx: Context, kind: Kind, at: Ref, options: DeleteOptions = {}): Promise<Deleted> {
  checkGrace(options)
  const ref = refOf(kind, at)
  const key = keyOf(kind, ref)
  const attempt = async (): Promise<Deleted> => {
    ctx.check?.caller()
    const entry = ctx.store.get(key)
    if (!entry) throw notFound(kind, ref.name)
    const { old, sealed } = loadToRemove(ctx, kind, entry)
    ctx.check?.target?.(old)
    checkPreconditions(kind, ref.name, old, options)
    const checking = ctx.gate.checkDelete(kind, old, ctx.caller)
    if (checking) {
      await checking
      ctx.check?.caller()
    }
    const next = marked(old, options, ctx.now())
    const gone = isGone(next, ctx.now())
    const unchanged = next.metadata === old.metadata
    if ((gone || !unchanged) && !options.dryRun) {
      const value = encode(ctx, kind, next, sealed)
      const expect = entry.revision
      const write: Op = gone ? { type: 'delete', key, expect } : { type: 'put', key, value, expect }
      const revision = await commitChange(ctx, kind, write, { old, next: gone ? undefined : next })
      const stored = ctx.store.get(key)
      if (!gone && sealed && stored) return { document: presentAmong(ctx, kind, stored) }
      if (!gone) return { document: presentStored(ctx, kind, { object: next, value, revision }) }
    }
    if (!gone && sealed) return { document: presentAmong(ctx, kind, entry) }
    if (!gone) return { document: documentOf(visible(ctx, kind, next)) }
    return { status: success({ name: ref.name, group: kind.group, kind: kind.plural, uid: old.metadata.uid ?? '' }) }
  }
  return retryConflicts(ctx, kind, ref, attempt)
}

export async function removeCollection(
  ctx: Context,
  kind: Kind,
  selection: ListOptions,
  options: DeleteOptions = {},
): Promise<List> {
  checkGrace(options)
  const found = await list(ctx, kind, selection)
  // Delete nothing if the caller may not delete one of the objects.
  for (const { object } of found.items) {
    const checking = ctx.gate.checkDelete(kind, object, ctx.caller)
    if (checking) await checking
  }
  // The key of this request goes last, because without it nothing more is deleted.
  const isOwnKey = ({ metadata: { uid } }: Resource) => uid !== undefined && uid === ctx.caller.keyUid
  const waiting = found.items.toSorted((one, other) => Number(isOwnKey(other.object)) - Number(isOwnKey(one.object)))
  const work = async () => {
    for (let one = waiting.pop(); one; one = waiting.pop()) {
      const { namespace = '', name = '' } = one.object.metadata
      await remove(ctx, kind, { namespace, name }, options).catch(error => {
        if (error?.code === 404) return // already deleted
        waiting.length = 0
        throw error
      })
    }
  }
  // Concurrent commits share one fsync. After a failure, running deletes finish and no new one starts.
  const ended = await Promise.allSettled(Array.from({ length: concurrency }, work))
  const failed = ended.find(one => one.status === 'rejected')
  if (failed) throw failed.reason
  return found
}

const concurrency = 32

/** The maximum of an int32: 68 years. JavaScript has no dates after the year 275760. */
const longestGrace = 2 ** 31 - 1

function checkGrace({ gracePeriodSeconds = 0 }: DeleteOptions): void {
  if (gracePeriodSeconds > longestGrace)
    throw invalidOptions('DeleteOptions', [
      invalidValue('gracePeriodSeconds', gracePeriodSeconds, `must be less than or equal to ${longestGrace}`),
    ])
}

function checkPreconditions(kind: Kind, name: string, old: Resource, { preconditions }: DeleteOptions): void {
  const { uid, resourceVersion } = old.metadata
  if (preconditions?.uid !== undefined && preconditions.uid !== uid)
    throw preconditionFailed(
      kind,
      name,
      `the UID in the precondition (${preconditions.uid}) does not match the UID in record (${uid}). The object might have been deleted and then recreated`,
    )
  if (preconditions?.resourceVersion !== undefined && preconditions.resourceVersion !== resourceVersion)
    throw preconditionFailed(
      kind,
      name,
      `the ResourceVersion in the precondition (${preconditions.resourceVersion}) does not match the ResourceVersion in record (${resourceVersion}). The object might have been modified`,
    )
}

/** Marks the object for deletion. Returns the same metadata if the request changes nothing. */
function marked(old: Resource, options: DeleteOptions, now: number): Resource {
  const finalizers = nextFinalizers(old.metadata.finalizers ?? [], options)
  const seconds = Math.max(
    0,
    options.gracePeriodSeconds ?? (old.metadata.deletionTimestamp ? Number.POSITIVE_INFINITY : 0),
  )
  const until = now + seconds * 1000
  const set = old.metadata.deletionTimestamp === undefined ? undefined : Date.parse(old.metadata.deletionTimestamp)
  const shorter = set === undefined || until < set // a later delete can only shorten it
  const sameFinalizers = JSON.stringify(finalizers) === JSON.stringify(old.metadata.finalizers ?? [])
  if (!shorter && sameFinalizers) return old
  const { finalizers: _, ...rest } = old.metadata
  return {
    ...old,
    metadata: {
      ...rest,
      ...(finalizers.length ? { finalizers } : {}),
      ...(shorter ? { deletionTimestamp: timestamp(until), deletionGracePeriodSeconds: seconds } : {}),
      ...(set === undefined ? { generation: (old.metadata.generation ?? 0) + 1 } : {}),
    },
  }
}

/** Another propagation policy replaces the finalizer of the previous one. */
function nextFinalizers(finalizers: readonly string[], { propagationPolicy }: DeleteOptions): readonly string[] {
  if (propagationPolicy === undefined) return finalizers
  const wanted = policyFinalizer[propagationPolicy]
  const rest = finalizers.filter(one => (one !== 'orphan' && one !== 'foregroundDeletion') || one === wanted)
  return wanted && !rest.includes(wanted) ? [...rest, wanted] : rest
}
