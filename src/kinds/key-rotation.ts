// Rotation of an access key (D22): a new key at once, the old one for as long as the overlap lasts, both seen with their last use.

import { invalid, invalidValue } from '../api/errors.ts'
import type { Kind, Ran, Subresource, Tools } from '../api/kind.ts'
import { isObject, type Json, type JsonObject, type Resource, timestamp } from '../api/object.ts'
import { integer, type Schema, struct } from '../api/schema.ts'
import { makeKey } from './key-format.ts'

/** Short enough to tell keys of one object apart, too short to find the digest by. */
export const keyId = (digest: string) => digest.slice(0, 12)

const longest = 30 * 24 * 3600

const spec = struct('', { overlapSeconds: integer('Seconds for which the old key works on.') }) as Schema

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
  const overlap = overlapOf(body)
  if (overlap === undefined || overlap < 0 || overlap > longest)
    throw invalid({ group: kind.group, kind: 'KeyRotation' }, name, [
      invalidValue(
        'spec.overlapSeconds',
        isObject(body) && isObject(body.spec) ? body.spec.overlapSeconds : body,
        `must be a whole number of seconds from 0 to ${longest}`,
      ),
    ])
  const key = makeKey(tools.random)
  const now = tools.now()
  const { digest, previous: _, ...status } = (old.status ?? {}) as JsonObject
  const previous = overlap > 0 ? { previous: { digest: digest as string, until: timestamp(now + overlap * 1000) } } : {}
  const next = { ...status, digest: tools.digest(key), rotatedAt: timestamp(now), ...previous }
  const shown = (stored: Resource) => ({ ...stored, spec: { ...stored.spec, key } })
  return { object: { ...old, status: next }, shown }
}

function overlapOf(body: Json | undefined): number | undefined {
  if (body === undefined) return 0
  const spec = isObject(body) ? (body.spec ?? {}) : undefined
  if (!isObject(spec)) return undefined
  const seconds = spec.overlapSeconds ?? 0
  return Number.isSafeInteger(seconds) ? (seconds as number) : undefined
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
