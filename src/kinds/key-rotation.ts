// Rotation of an access key (D22): a new secret at once, the old one until the overlap ends, both shown with their last use.

import { shortDuration } from '../api/duration.ts'
import { type ApiError, conflict, type FieldError, invalid, invalidValue } from '../api/errors.ts'
import type { Kind, Ran, Subresource, Tools } from '../api/kind.ts'
import { isObject, type Json, type JsonObject, type Resource, timestamp } from '../api/object.ts'
import { flag, integer, type Schema, struct } from '../api/schema.ts'
import { makeKey } from './key-format.ts'

/** Short enough to tell keys of one object apart, too short to find the digest by. */
export const keyId = (digest: string) => digest.slice(0, 12)

const longest = 30 * 24 * 3600

const spec = struct('', {
  overlapSeconds: integer('Seconds for which the old secret stays valid.'),
  force: flag('Whether a running overlap may be ended early.'),
}) as Schema

export function rotation(kind: () => Kind): Subresource {
  return {
    verb: 'create',
    kind: 'KeyRotation',
    spec,
    run: (object, { body }, tools) => rotate(kind(), object, body, tools),
  }
}

async function rotate(kind: Kind, old: Resource, body: Json | undefined, tools: Tools): Promise<Ran> {
  const { name = '' } = old.metadata
  const { overlap, force, errors } = read(body)
  if (errors.length) throw invalid({ group: kind.group, kind: 'KeyRotation' }, name, errors)
  const key = makeKey(tools.random)
  const now = tools.now()
  const until = (old.status as Status | undefined)?.previous?.until
  if (!force && until !== undefined && Date.parse(until) > now) throw overlapRunning(kind, name, until)
  const { digest, previous: _, ...status } = (old.status ?? {}) as JsonObject
  // The old secret does not outlive its own end, and an expired one does not come back.
  const end = Math.min(now + overlap * 1000, tools.endOfKey(old.metadata.uid ?? '') ?? Number.POSITIVE_INFINITY)
  const previous = overlap > 0 && end > now ? { previous: { digest: digest as string, until: timestamp(end) } } : {}
  const next = { ...status, digest: tools.digest(key), rotatedAt: timestamp(now), ...previous }
  const shown = (stored: Resource) => ({ ...stored, spec: { ...stored.spec, key } })
  return { object: { ...old, status: next }, shown }
}

/** The reason of the cause where a rotation needs `spec.force`. */
export const overlapReason = 'OverlapRunning'

function overlapRunning(kind: Kind, name: string, until: string): ApiError {
  const message = `the secret from before the last rotation is valid until ${until}, and another rotation would end it early`
  return conflict(kind, name, `${message}; send spec.force: true to end it now and revoke its tokens`, [
    { reason: overlapReason, message, field: 'spec.force' },
  ])
}

type Wanted = { readonly overlap: number; readonly force: boolean; readonly errors: readonly FieldError[] }

function read(body: Json = {}): Wanted {
  const spec = isObject(body) ? (body.spec ?? {}) : body
  if (!isObject(spec)) return { overlap: 0, force: false, errors: [invalidValue('spec', spec, 'must be an object')] }
  const seconds = spec.overlapSeconds ?? 0
  const force = spec.force ?? false
  const isOverlap = typeof seconds === 'number' && Number.isSafeInteger(seconds) && seconds >= 0 && seconds <= longest
  const errors = [
    ...(isOverlap
      ? []
      : [
          invalidValue(
            'spec.overlapSeconds',
            seconds,
            `must be a whole number from 0 to ${longest} seconds (${shortDuration(longest)})`,
          ),
        ]),
    ...(typeof force === 'boolean' ? [] : [invalidValue('spec.force', force, 'must be true or false')]),
  ]
  return { overlap: isOverlap ? seconds : 0, force: force === true, errors }
}

type Status = {
  readonly digest?: string | undefined
  readonly rotatedAt?: string | undefined
  readonly previous?: { readonly digest?: string | undefined; readonly until?: string | undefined } | undefined
}

/** status.lastActivity, and while two keys work, status.keys with the last use of each (D19, D22). */
export function joinActivity<S, T>(
  object: Resource<S, T>,
  lastActivity: (id: string) => number | undefined,
): Resource<S, T> {
  const { uid = '' } = object.metadata
  const status = (object.status ?? {}) as Status
  const time = (id: string) => {
    const used = lastActivity(id)
    return used === undefined ? {} : { lastActivity: timestamp(used) }
  }
  const one = (digest: string, more: JsonObject) => ({ id: keyId(digest), ...time(`${uid}/${keyId(digest)}`), ...more })
  const keys = status.previous
    ? {
        keys: [
          one(status.digest ?? '', { since: status.rotatedAt ?? '' }),
          one(status.previous.digest ?? '', { until: status.previous.until ?? '' }),
        ],
      }
    : {}
  const joined = { ...time(uid), ...keys }
  return Object.keys(joined).length ? { ...object, status: { ...(object.status as T), ...joined } } : object
}
