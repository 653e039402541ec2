// Implements the verbs for every kind, in process.

import type { Admissions, Companion } from '../api/admission.ts'
import { type Caller, systemCaller } from '../api/caller.ts'
import type { Candidates } from '../api/candidates.ts'
import type { Kind } from '../api/kind.ts'
import type { Ref, Resource } from '../api/object.ts'
import { parseStored } from '../api/parse-cache.ts'
import type { Decision, PermissionVersions, Question } from '../api/permissions.ts'
import type { Gate } from '../api/power-gate.ts'
import type { Resources, WriteCheck, WriteOptions } from '../api/resources.ts'
import type { Store } from '../storage/store.ts'
import { commitAlone, type Written } from './companion-writes.ts'
import { type Context, keyOf, refOf, type Sealer } from './context.ts'
import { create } from './create.ts'
import { remove, removeCollection } from './delete.ts'
import { get } from './get.ts'
import { list } from './list.ts'
import { load } from './object-codec.ts'
import { patch } from './patch.ts'
import { openPendingWrites } from './pending-writes.ts'
import { confirm, reachVersion } from './resource-version.ts'
import { openShownActivity } from './shown-activity.ts'
import { findSubresource, readSubresource, runSubresource } from './subresource.ts'
import { update } from './update.ts'
import { openVisibilityIndex } from './visibility-index.ts'
import { watch } from './watch.ts'

export type RegistryOptions = {
  readonly kinds: readonly Kind[]
  readonly store: Store
  /** The store of controllers; absent: the same. */
  readonly controllerStore?: Store | undefined
  readonly sealer: Sealer
  readonly gate: Gate
  readonly admissions: Admissions
  readonly now: () => number
  readonly uuid: () => string
  readonly random: (bytes: number) => Uint8Array
  readonly lastActivity: (uid: string) => number | undefined
  readonly authorize: (caller: Caller, question: Question) => Decision
  readonly permissionVersions: PermissionVersions
}

export interface Registry {
  /** `check`: called before each attempt to write. */
  as(caller: Caller, check?: WriteCheck): Resources
  /** The same for controllers. */
  controllerAs(caller: Caller): Resources
  /** Waits until reads contain everything that was written before, by any replica. Throws 503 if the state is outdated. */
  confirm(isAnyVersion: boolean): Promise<void> | undefined
  /** Waits for a resourceVersion that the store has not reached. */
  reachVersion(resourceVersion: string): Promise<void>
  /** Reads with hidden fields and without decryption. For controllers and authentication, never for a request. */
  readonly internalClient: Resources
  /** The internal client of the controllers. Its writes fail if another replica runs them. */
  readonly controllerClient: Resources
  /** A stored object without decryption, for decisions that need no encrypted field. */
  peek(kind: Kind, ref: Ref): Resource | undefined
  /** Stored objects among candidates, without decryption. */
  among(kind: Kind, candidates: Candidates): readonly Resource[]
  /** Builds the index of filtered lists and watches in the background, so that the first of them need not wait. */
  startIndex(): void
  /** Resolves once the index is complete; undefined if it is. */
  indexed(): Promise<void> | undefined
  /** A stored object, decrypted and with hidden fields, for signing and admission. Never return it in a response. */
  open(kind: Kind, ref: Ref): Resource | undefined
  /** Writes companions without a change. For controllers, never for a request. */
  write(make: () => readonly Companion[], isController?: boolean): Promise<readonly Written[]>
  /** Resolves when the running commits of changes of these kinds have ended, and the indexes have seen them. */
  settled(kinds: readonly Kind[]): Promise<void>
}

export function openRegistry(given: RegistryOptions): Registry {
  const pending = openPendingWrites()
  const visibility = openVisibilityIndex(given.store, given.kinds)
  const activity = openShownActivity(given.lastActivity)
  const options = { ...given, activity, pending, reserved: new Map(), turns: new Map(), visibility }
  /** A caller stays the same object until something about it changes, so its verbs are bound once. */
  const bound = new WeakMap<Caller, Resources>()
  const internal = contextOf(options, systemCaller, true)
  const ofControllers = { ...options, store: given.controllerStore ?? given.store }
  const controlling = contextOf(ofControllers, systemCaller, true)
  return {
    as: (caller, check) => {
      if (check) return resourcesOf({ ...contextOf(options, caller, false), check })
      const resources = bound.get(caller) ?? resourcesOf(contextOf(options, caller, false))
      bound.set(caller, resources)
      return resources
    },
    controllerAs: caller => resourcesOf(contextOf(ofControllers, caller, false)),
    confirm: isAnyVersion => confirm(given.store, isAnyVersion),
    reachVersion: version => reachVersion(options.store, version),
    internalClient: resourcesOf(internal),
    controllerClient: resourcesOf(controlling),
    write: (make, isController) => commitAlone(isController ? controlling : internal, make),
    settled: pending.settled,
    peek: openPeek(options.store),
    startIndex: options.visibility.start,
    indexed: options.visibility.ready,
    among: (kind, among) => options.store.list({ bucket: kind.id, among }).entries.map(({ text }) => parseStored(text)),
    open: (kind, ref) => {
      const entry = options.store.get(keyOf(kind, refOf(kind, ref)))
      return entry && load(options, kind, entry)
    },
  }
}

const openPeek =
  (store: Store): Registry['peek'] =>
  (kind, ref) => {
    const entry = store.get(keyOf(kind, refOf(kind, ref)))
    return entry && parseStored(entry.text)
  }

function contextOf(
  options: RegistryOptions & Pick<Context, 'activity' | 'pending' | 'reserved' | 'turns' | 'visibility'>,
  caller: Caller,
  isInternal: boolean,
): Context {
  return { ...options, lastActivity: options.activity.current(caller), caller, isInternal }
}

function resourcesOf(ctx: Context): Resources {
  const dryRun = { ...ctx, lastActivity: ctx.activity.shown(ctx.caller) }
  const contextFor = (write: WriteOptions | undefined) => (write?.dryRun ? dryRun : ctx)
  return {
    create: (kind, namespace, object, write) => create(ctx, kind, namespace, object, write),
    get: (kind, ref, how) => {
      const found = findSubresource(kind, how?.subresource)
      return found ? readSubresource(ctx, kind, ref, found) : get(ctx, kind, ref, how)
    },
    act: (kind, ref, subresource, body, write) =>
      runSubresource(contextFor(write), kind, ref, subresource, body, write),
    list: (kind, how) => list(ctx, kind, how),
    watch: (kind, how) => watch(ctx, kind, how),
    update: (kind, ref, object, write) => update(contextFor(write), kind, ref, object, write),
    patch: (kind, ref, body, write) => patch(contextFor(write), kind, ref, body, write),
    delete: (kind, ref, how) => remove(ctx, kind, ref, how),
    deleteCollection: (kind, selection, how) => removeCollection(ctx, kind, selection, how),
  }
}
