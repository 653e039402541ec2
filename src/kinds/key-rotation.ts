// Rotation of an access key (D22): the subresource as discovery shows it, and both secrets with their last use during an overlap.

import type { Subresource } from '../api/kind.ts'
import { type JsonObject, type Resource, timestamp } from '../api/object.ts'
import { flag, integer, type Schema, struct } from '../api/schema.ts'

/** Tells the secrets of one object apart, and is too short to reveal the digest. */
export const keyId = (digest: string) => digest.slice(0, 12)

const spec = struct('', {
  overlapSeconds: integer('Seconds for which the old secret stays valid.'),
  force: flag('Whether a running overlap may be ended early.'),
}) as Schema

/** Its handler is src/admission/key-rotation.ts. */
export const rotation: Subresource = { verb: 'create', kind: 'KeyRotation', spec }

/** Reason of the cause if a rotation needs `spec.force`. */
export const overlapReason = 'OverlapRunning'

type Status = {
  readonly digest?: string | undefined
  readonly rotatedAt?: string | undefined
  readonly previous?: { readonly digest?: string | undefined; readonly until?: string | undefined } | undefined
}

/** Adds status.lastActivity and, during an overlap, status.keys with the last use of each secret (D19, D22). */
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
