// Handles the `rotate` subresource of access keys: issues a new secret, and keeps the old one until the overlap ends (D22).

import type { SubresourceHandler } from '../api/admission.ts'
import { shortDuration } from '../api/duration.ts'
import { type ApiError, conflict, type FieldError, invalid, invalidValue } from '../api/errors.ts'
import type { ObjectOf } from '../api/kind.ts'
import { isObject, type Json, type Resource, timestamp } from '../api/object.ts'
import { makeKey } from '../kinds/key-format.ts'
import { overlapReason } from '../kinds/key-rotation.ts'
import { OwnedAccessKey } from '../kinds/owned-access-key.ts'
import { digest } from './digest.ts'

export type RotationDependencies = {
  readonly now: () => number
  readonly random: (bytes: number) => Uint8Array
  /** Expiry of the current secret of a key in milliseconds; undefined if it does not exist. */
  readonly endOfKey: (uid: string) => number | undefined
}

const longest = 30 * 24 * 3600

export const rotateKey =
  ({ now, random, endOfKey }: RotationDependencies): SubresourceHandler<ObjectOf<typeof OwnedAccessKey>> =>
  async (old, { body }) => {
    const { name = '', uid = '' } = old.metadata
    const { overlap, force, errors } = readBody(body)
    if (errors.length) throw invalid({ group: OwnedAccessKey.group, kind: 'KeyRotation' }, name, errors)
    const key = makeKey(random)
    const time = now()
    const { digest: last, previous: running, ...status } = old.status ?? {}
    if (!force && running?.until !== undefined && Date.parse(running.until) > time)
      throw overlapRunning(name, running.until)
    // The old secret keeps its own expiry, and an expired one stays expired.
    const end = Math.min(time + overlap * 1000, endOfKey(uid) ?? Number.POSITIVE_INFINITY)
    const previous = overlap > 0 && end > time ? { previous: { digest: last, until: timestamp(end) } } : {}
    const next = { ...status, digest: digest(key), rotatedAt: timestamp(time), ...previous }
    const shown = (stored: Resource) => ({ ...stored, spec: { ...stored.spec, key } })
    return { object: { ...old, status: next } as unknown as Resource, shown }
  }

function overlapRunning(name: string, until: string): ApiError {
  const message = `the secret from before the last rotation is valid until ${until}, and another rotation would end it early`
  return conflict(OwnedAccessKey, name, `${message}; send spec.force: true to end it now and revoke its tokens`, [
    { reason: overlapReason, message, field: 'spec.force' },
  ])
}

type Wanted = { readonly overlap: number; readonly force: boolean; readonly errors: readonly FieldError[] }

function readBody(body: Json = {}): Wanted {
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
