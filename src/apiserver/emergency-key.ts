// Issues short-lived keys of the administrator on the host, for when nobody can sign in.

import { randomBytes } from 'node:crypto'
import type { Logger } from 'pino'
import { ApiError } from '../api/errors.ts'
import { isObject, type Json, timestamp } from '../api/object.ts'
import { makeKey } from '../kinds/key-format.ts'
import { OwnedAccessKey } from '../kinds/owned-access-key.ts'
import type { Audit } from '../serving/audit.ts'
import type { Metrics } from '../serving/metrics.ts'
import type { ApiServer } from './api-server.ts'

export const emergencyTtl = { minimum: 60, maximum: 3600, default: 900 }
/** No control, format or unassigned characters, because logs and terminals show the text. */
const printable = /^[^\p{C}\p{Zl}\p{Zp}]{1,200}$/u
export const isPrintable = (text: unknown): text is string =>
  typeof text === 'string' && text.trim() !== '' && printable.test(text)

export type EmergencyKey = { readonly name: string; readonly key: string; readonly expires: string }

type Dependencies = {
  readonly apiServer: Pick<ApiServer, 'registry' | 'keyEnds' | 'isUserDisabled'>
  readonly audit: Audit
  readonly refuseUnaudited: boolean
  /** Seconds; 0: no limit. */
  readonly maxKeyTTL: number
  readonly metrics: Metrics
  readonly log: Logger
  readonly now: () => number
}

/** Throws ApiError. */
export function openEmergencyKeys(dependencies: Dependencies): (body: Json) => Promise<EmergencyKey> {
  const { apiServer, audit, refuseUnaudited, maxKeyTTL, metrics, log, now } = dependencies
  const count = metrics.counter('platform_emergency_keys_total', 'Emergency keys issued on the host.')({})
  return async body => {
    const { reason, hostUser, ttlSeconds } = readRequest(body)
    if (apiServer.isUserDisabled('admin'))
      throw new ApiError(
        409,
        'Conflict',
        'the user admin is disabled, and an emergency key does not change that; another administrator can enable it',
      )
    if (refuseUnaudited && audit.failure !== undefined)
      throw new ApiError(503, 'ServiceUnavailable', `the audit log cannot be written: ${audit.failure}`)
    const key = makeKey(size => randomBytes(size))
    const ttl = Math.min(ttlSeconds, maxKeyTTL || ttlSeconds)
    const object = {
      metadata: { generateName: 'emergency-' },
      spec: { type: 'Other', user: 'admin', displayName: `Emergency key: ${reason}`, ttl, key },
    }
    const manager = 'emergency-key'
    const { internalClient } = apiServer.registry
    const document = await internalClient.create(OwnedAccessKey, '', object, { fieldManager: manager })
    count(1)
    const { name } = document.ref
    const noted = { 'platform.sh/emergency-reason': reason, 'platform.sh/emergency-host-user': hostUser }
    audit.own({ verb: 'create', kind: OwnedAccessKey, ref: document.ref, manager, document, noted })
    log.warn({ key: name, reason, hostUser, ttl }, 'emergency key issued')
    if (audit.failure === undefined) await audit.flush()
    await apiServer.registry.settled([OwnedAccessKey])
    const expires = apiServer.keyEnds(key) ?? now() + ttl * 1000
    return { name, key, expires: timestamp(expires) }
  }
}

function readRequest(body: Json) {
  const refuse = (why: string) => new ApiError(400, 'BadRequest', why)
  if (!isObject(body)) throw refuse('the body must be a JSON object')
  const { reason, hostUser, ttlSeconds = emergencyTtl.default, ...others } = body
  const [unknown] = Object.keys(others)
  if (unknown !== undefined) throw refuse('the body has an unknown field')
  if (!isPrintable(reason)) throw refuse('reason must have 1 to 200 printable characters')
  if (!isPrintable(hostUser)) throw refuse('hostUser must have 1 to 200 printable characters')
  const isAllowed =
    typeof ttlSeconds === 'number' &&
    Number.isInteger(ttlSeconds) &&
    ttlSeconds >= emergencyTtl.minimum &&
    ttlSeconds <= emergencyTtl.maximum
  if (!isAllowed) throw refuse(`ttlSeconds must be from ${emergencyTtl.minimum} to ${emergencyTtl.maximum}`)
  return { reason, hostUser, ttlSeconds }
}
