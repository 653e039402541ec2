// Keeps ProjectSecrets that follow a SharedSecret a copy of it (D30). The informers see sealed bytes; a value is open only while it is compared and copied.

import type { Caller } from '../api/caller.ts'
import { canonical } from '../api/codec.ts'
import { ApiError, ignoreNotFound, isUndecryptable } from '../api/errors.ts'
import type { Question } from '../api/kind.ts'
import { type Json, type JsonObject, type Ref, type Resource, timestamp } from '../api/object.ts'
import type { Affects } from '../api/permissions.ts'
import { type Resources, refOf } from '../api/resources.ts'
import { forEachInSlices } from '../api/time-slices.ts'
import { type Condition, conditionOf, type Finding, withConditions } from '../kinds/object-conditions.ts'
import { ProjectSecret } from '../kinds/project-secret.ts'
import {
  pinnedOwner,
  printOwner,
  readSource,
  type Source,
  sourceOf,
  syncManager,
  withSourceUid,
} from '../kinds/project-secret-source.ts'
import { SharedSecret } from '../kinds/shared-secret.ts'
import { teamUidsOf } from '../kinds/team-uids.ts'
import { mentions } from '../reconcile/document-words.ts'
import { startInformer } from '../reconcile/informer.ts'
import { startLoop } from '../reconcile/work-queue.ts'

export type ProjectSecretOptions = {
  /** Objects as they lie there, to follow them by. */
  readonly internalClient: Resources
  /** The same with sealed fields open, to copy them. */
  readonly opened: Resources
  readonly callerOf: (owner: Owner) => Caller | undefined
  readonly authorizer: { decide(caller: Caller, question: Question): { readonly allowed: boolean } }
  /** Calls back whenever somebody's rights may have changed; answers how to stop that. */
  readonly permissionsChanged: (callback: (affects: Affects) => void) => () => void
  /** Whether a copy whose source is gone or forbidden is removed. */
  readonly removeStale: boolean
  readonly now: () => number
  readonly failed: (what: string, error: unknown) => void
}

/** `uid`: which team of that name (D61). */
type Owner = {
  readonly user?: string | undefined
  readonly team?: string | undefined
  readonly uid?: string | undefined
}
type Following = { readonly source: Source | undefined; readonly owner: Owner }
type Status = { readonly conditions?: readonly Condition[]; readonly lastSynced?: string }
/** `uid`: of the source, where the data is its. */
type Outcome = {
  readonly data?: Json | undefined
  readonly uid?: string | undefined
  readonly reason: string
  readonly message: string
}

/** Rights may also end without a word, as with a key that expires and whose groups counted. */
const checkEvery = 60_000
const slotOf = ({ namespace, name }: Ref) => `${namespace}/${name}`
const isSame = (one: unknown, other: unknown) => canonical((one ?? null) as Json) === canonical((other ?? null) as Json)

export function startProjectSecrets(options: ProjectSecretOptions): {
  readonly ready: Promise<void>
  idle(): Promise<void>
  stop(): Promise<void>
} {
  const { internalClient, callerOf, permissionsChanged, failed } = options
  /** The project secrets that follow a SharedSecret, by its namespace and name. */
  const followers = new Map<string, Set<string>>()
  const following = new Map<string, Following>()
  /** The last known result about the owner's permission. */
  const allowed = new Map<string, boolean>()

  const loop = startLoop({
    reconcile: async slot => {
      const [namespace = '', name = ''] = slot.split('/')
      const one = following.get(slot)
      if (one) allowed.set(slot, mayRead(options, callerOf(one.owner), one.source))
      await sync(options, { namespace, name })
      return undefined
    },
    failed: (slot, error) => failed(`copying the source of project secret ${slot}`, error),
  })
  const follow = (slot: string, now: Following | undefined, before: Following | undefined) => {
    if (before?.source) {
      const others = followers.get(slotOf(before.source))
      others?.delete(slot)
      if (others?.size === 0) followers.delete(slotOf(before.source))
    }
    if (now?.source) {
      const source = slotOf(now.source)
      followers.set(source, (followers.get(source) ?? new Set()).add(slot))
      following.set(slot, now)
    } else {
      following.delete(slot)
      allowed.delete(slot)
    }
    loop.add(slot)
  }
  const moved = (source: Ref) => {
    for (const slot of followers.get(slotOf(source)) ?? []) loop.add(slot)
  }
  /** Finds followers whose owner gained or lost the permission. An owner with many followers is evaluated once. */
  const check = async (affects: Affects = () => true) => {
    const owners = new Map<string, Caller | undefined>()
    await forEachInSlices(following, ([slot, { owner, source }]) => {
      const id = JSON.stringify(owner)
      if (!owners.has(id)) owners.set(id, callerOf(owner))
      const caller = owners.get(id)
      if (caller && !affects(caller)) return
      if (mayRead(options, caller, source) !== allowed.get(slot)) loop.add(slot)
    })
  }

  const secrets = startInformer({
    resources: internalClient,
    kind: ProjectSecret,
    counts: mentions('sharedSecretRef'),
    keep: followingOf,
    changed: (ref, now, before) => follow(slotOf(ref), now, before),
    failed: error => failed('watching project secrets', error),
  })
  // Secrets without followers are ignored and never parsed.
  const sources = startInformer({
    resources: internalClient,
    kind: SharedSecret,
    counts: ({ ref }) => followers.has(slotOf(ref)),
    keep: () => undefined,
    changed: moved,
    deleted: object => moved(refOf(object)),
    listed: () => {
      for (const slot of following.keys()) loop.add(slot)
    },
    failed: error => failed('watching shared secrets', error),
  })
  const unfollow = permissionsChanged(affects => void check(affects))
  const timer = setInterval(() => void check(), checkEvery).unref()
  return {
    ready: Promise.all([secrets.ready, sources.ready]).then(() => {}),
    idle: loop.idle,
    async stop() {
      unfollow()
      clearInterval(timer)
      secrets.stop()
      sources.stop()
      await loop.stop()
    },
  }
}

function mayRead(
  { authorizer }: ProjectSecretOptions,
  caller: Caller | undefined,
  source: Source | undefined,
): boolean {
  return caller !== undefined && source !== undefined && authorizer.decide(caller, readSource(source)).allowed
}

function followingOf(object: Resource): Following {
  const owner = (object.spec?.['owner'] ?? {}) as Owner
  return { source: sourceOf(object), owner: pinnedOwner(owner, teamUidsOf(object)) }
}

/** Reads both sides, writes the data if it differs, and says how it stands. */
async function sync(options: ProjectSecretOptions, ref: Ref): Promise<void> {
  const { opened, removeStale, now } = options
  const secret = await opened.get(ProjectSecret, ref).then(({ object }) => object, ignoreNotFound)
  if (!secret || secret.metadata.deletionTimestamp) return
  const source = sourceOf(secret)
  if (!source) return writeCondition(opened, secret, { outcome: undefined, now: now() })
  const outcome = await evaluate(options, secret, source)
  const there = secret.spec?.['data'] as Json | undefined
  const stays = outcome.data === undefined && (!removeStale || outcome.reason === 'SourceUnreadable')
  const isThere = stays || isSame(there ?? {}, outcome.data ?? {})
  // A reference without a uid means the first secret that is found under its name (D61).
  const pinned = outcome.uid && !source.uid ? withSourceUid(secret, outcome.uid) : secret
  const written =
    isThere && pinned === secret ? secret : await copy(opened, pinned, isThere ? (there ?? undefined) : outcome.data)
  const message = stays && there ? `${outcome.message}; the data stays as it was last copied` : outcome.message
  await writeCondition(opened, written, { outcome: { ...outcome, message }, now: now(), isCopied: !isThere })
}

async function evaluate(options: ProjectSecretOptions, secret: Resource, source: Source): Promise<Outcome> {
  const { owner } = followingOf(secret)
  const described = `SharedSecret ${slotOf(source)}`
  const reason = 'SourceForbidden'
  if (!owner.user && !owner.team) return { reason, message: `the secret has no owner who could get ${described}` }
  // First, so that the condition tells nothing about a secret that the owner may not get.
  if (!mayRead(options, options.callerOf(owner), source))
    return { reason, message: `${described} does not exist, or the owner, ${printOwner(owner)}, may not get it` }
  const found = await options.opened
    .get(SharedSecret, source)
    .then(({ object }) => object, ignoreNotFound)
    .catch(unreadable)
  if (found instanceof ApiError) return { reason: 'SourceUnreadable', message: found.message }
  if (!found) return { reason: 'SourceNotFound', message: `${described} does not exist` }
  const { uid } = found.metadata
  if (source.uid && source.uid !== uid)
    return {
      reason: 'SourceReplaced',
      message: `${described} was created again with uid ${uid}; set spec.sharedSecretRef.uid to it to follow the new one`,
    }
  const data = (found.spec?.['data'] ?? {}) as Json
  return { data, uid, reason: 'Copied', message: `the data is that of ${described}` }
}

/** Writes only at the version that was read: after a concurrent write the object is checked again. */
async function copy(opened: Resources, secret: Resource, data: Json | undefined): Promise<Resource> {
  const { data: _, ...spec } = (secret.spec ?? {}) as JsonObject
  const next = { ...secret, spec: data === undefined ? spec : { ...spec, data } } as unknown as Json
  return (await opened.update(ProjectSecret, refOf(secret), next, { fieldManager: syncManager })).object
}

type ConditionUpdate = { readonly outcome: Outcome | undefined; readonly now: number; readonly isCopied?: boolean }

/** The conditions and the time, if they are new. No outcome: it follows nothing any more. */
async function writeCondition(
  opened: Resources,
  secret: Resource,
  { outcome, now, isCopied = false }: ConditionUpdate,
): Promise<void> {
  const { lastSynced, ...rest } = (secret.status ?? {}) as Status
  const before = conditionOf(secret, 'Synced')
  const isNewly = outcome?.data !== undefined && (isCopied || before?.status !== 'True')
  const at = isNewly ? timestamp(now) : outcome && lastSynced
  const others = rest.conditions?.filter(({ type }) => type !== 'Synced')
  const bare = { ...secret, status: { ...rest, ...(outcome || !others ? {} : { conditions: others }) } } as Resource
  const { status } = withConditions(bare, outcome ? [finding(outcome)] : [], now)
  const next = { ...(status as Status), ...(at ? { lastSynced: at } : {}) }
  if (isSame(secret.status, next)) return
  await opened.update(ProjectSecret, refOf(secret), { ...secret, status: next } as unknown as Json, {
    fieldManager: syncManager,
    subresource: 'status',
  })
}

const finding = ({ data, reason, message }: Outcome): Finding =>
  data === undefined
    ? { type: 'Synced', status: 'False', severity: 'Error', reason, message }
    : { type: 'Synced', status: 'True', reason, message }

/** The stored file was damaged. The condition says so, and the copy is checked again after the source changes. */
function unreadable(error: unknown): ApiError {
  if (!isUndecryptable(error)) throw error
  return error
}
