// Defines the rotation subresource of access keys, and shows the last use of both secrets during an overlap (D22).

import type { Subresource } from '../api/kind.ts'
import { type JsonObject, type Resource, timestamp } from '../api/object.ts'
import { flag, integer, type Schema, struct } from '../api/schema.ts'

/** Long enough to distinguish the keys of one object, too short to reveal the digest. */
export const keyId = (digest: string) => digest.slice(0, 12)

const spec = struct('', {
  overlapSeconds: integer('Seconds for which the old secret stays valid.'),
  force: flag('Whether a running overlap may be ended early.'),
}) as Schema

/** The handler is in src/admission/key-rotation.ts. */
export const rotation: Subresource = { verb: 'create', kind: 'KeyRotation', spec }

/** The cause reason of a rotation that needs `spec.force`. */
export const overlapReason = 'OverlapRunning'

type Status = {
  readonly digest?: string | undefined
  readonly rotatedAt?: string | undefined
  readonly previous?: { readonly digest?: string | undefined; readonly until?: string | undefined } | undefined
}

/** Adds status.lastActivity and, while two keys are valid, status.keys with the last use of each (D19, D22). */
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
