// Limits the lifetime of access keys: to the configured maximum (D18), and to the lifetime of the creating credential (D62).

import type { RequestContext } from '../api/admission.ts'
import type { Caller } from '../api/caller.ts'
import { shortDuration } from '../api/duration.ts'
import { forbidden, invalid, invalidValue } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import type { Resource } from '../api/object.ts'
import { digest } from './digest.ts'

type Spec = {
  readonly user?: string | undefined
  readonly team?: string | undefined
  readonly subject?: string | undefined
  readonly groups?: readonly string[] | undefined
  readonly scope?: unknown
  readonly key?: string | undefined
  readonly ttl?: number | undefined
  readonly ttlAfterLastActivity?: boolean | undefined
  readonly disabled?: boolean | undefined
  readonly type?: string | undefined
  readonly parent?: string | undefined
}
export type Key = Resource<Spec, { readonly digest?: string | undefined; readonly rotatedAt?: string | undefined }>
/** A write of a key, with its effects. */
export type KeyWrite = {
  readonly kind: Kind
  readonly next: Key
  readonly old: Key | undefined
  readonly request: RequestContext
  /** The write issues or sets a new secret, which gives all permissions of the key. */
  readonly isIssued: boolean
  /** Whether the caller administers access keys, and so may create a key for anybody (D14). */
  readonly administers: boolean
}

export const isLifetimeChanged = (next: Key, old: Key): boolean =>
  (next.spec?.ttl || 0) !== (old.spec?.ttl || 0) ||
  (next.spec?.ttlAfterLastActivity ?? false) !== (old.spec?.ttlAfterLastActivity ?? false)

export type LifetimeDependencies = {
  readonly now: () => number
  /** The maximum lifetime of an access key in seconds; undefined: no limit (D18). */
  readonly maxKeyTTL: number | undefined
  /** Whether one scope is at most as wide as another (D25). */
  readonly isNoWider: (inner: unknown, outer: unknown) => boolean
  /** When a key that the caller creates must end, in milliseconds; undefined: no limit. A session sets none (D62). */
  readonly newKeysEnd: (caller: Caller) => number | undefined
  /** Expiry of the current secret of a key in milliseconds; undefined if it does not exist. */
  readonly endOfKey: (uid: string) => number | undefined
}

/** Limits every write that strengthens a key, because its holder would keep the added permissions. */
export function checkLifetime(dependencies: LifetimeDependencies, write: KeyWrite, isStronger: boolean): void {
  if (isStronger || (write.old && isLifetimeChanged(write.next, write.old))) checkSetting(dependencies, write)
  refuseRevival(dependencies, write)
  const { now, isNoWider, newKeysEnd } = dependencies
  const { next, old, request, isIssued, administers } = write
  // A scoped key does not count as administrator, so the keys it creates have its own limits.
  const isExempt = administers && isNoWider(undefined, request.caller.scope)
  if (isExempt || !isStronger) return
  const ownEnd = newKeysEnd(request.caller)
  if (ownEnd === undefined) return
  const { ttl, ttlAfterLastActivity } = next.spec ?? {}
  const refuse = (why: string) =>
    forbidden(
      write.kind,
      next.metadata.name ?? '',
      `${why}: a key must not outlive the credential that creates or strengthens it, which expires at ${new Date(ownEnd).toISOString()}`,
    )
  if (ttlAfterLastActivity) throw refuse('spec.ttlAfterLastActivity: its expiry would move with every use')
  const start = isIssued ? now() : Date.parse(old?.status?.rotatedAt ?? old?.metadata.creationTimestamp ?? '')
  // Stored times have whole seconds.
  const from = Math.floor(start / 1000)
  if (ttl && from + ttl <= ownEnd / 1000) return
  const maxSeconds = Math.floor(ownEnd / 1000 - from)
  throw refuse(maxSeconds > 0 ? `spec.ttl must be from 1 to ${maxSeconds}` : 'spec.ttl: no time left')
}

/** An expired secret stays expired, also for administrators (D18). */
function refuseRevival(
  { now, endOfKey }: Pick<LifetimeDependencies, 'now' | 'endOfKey'>,
  { kind, next, old, request }: KeyWrite,
): void {
  // A dry run must not confirm a guess, so that any secret in it counts as new.
  const isNew = old && ((request.dryRun && next.spec?.key) || hasNewSecret(next, old))
  if (!old || isNew || !isLifetimeChanged(next, old)) return
  const end = endOfKey(old.metadata.uid ?? '')
  if (end === undefined || end > now()) return
  const { name = '' } = next.metadata
  throw invalid(kind, name, [
    invalidValue(
      'spec.ttl',
      next.spec?.ttl ?? 0,
      'the key has expired and its lifetime cannot change; rotate it instead',
    ),
  ])
}

const hasNewSecret = ({ spec, status }: Key, old: Key): boolean =>
  (spec?.key ? digest(spec.key) : status?.digest) !== old.status?.digest

/** With a limit, a key requires a ttl. The first key of the server needs none, but it expires at the limit. */
function checkSetting(
  { maxKeyTTL }: Pick<LifetimeDependencies, 'maxKeyTTL'>,
  { kind, next, request: { caller } }: KeyWrite,
): void {
  const ttl = next.spec?.ttl
  if (maxKeyTTL === undefined || caller.groups.includes('system:masters') || (ttl && ttl <= maxKeyTTL)) return
  throw invalid(kind, next.metadata.name ?? '', [
    invalidValue(
      'spec.ttl',
      ttl ?? 0,
      `must be from 1 to ${maxKeyTTL} seconds (${shortDuration(maxKeyTTL)}), the longest lifetime of an access key on this server`,
    ),
  ])
}
