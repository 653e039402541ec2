// What an access key object says about the key: when it ends, what it may reach. whoami, status and the lists of keys show it.

import { isObject, type Json, type JsonObject, type Resource } from '../../api/object.ts'
import { span } from '../print.ts'

/** Milliseconds; undefined: never (D18, D22). */
export function expiryOf({ metadata, spec = {}, status = {} }: Resource): number | undefined {
  const ttl = Number(spec['ttl'] ?? 0)
  if (!ttl) return undefined
  const sliding = spec['ttlAfterLastActivity'] === true ? status['lastActivity'] : undefined
  const from = [metadata.creationTimestamp, status['rotatedAt'], sliding]
    .map(time => (typeof time === 'string' ? Date.parse(time) : 0))
    .reduce((a, b) => Math.max(a, b), 0)
  return from + ttl * 1000
}

export function expiryText(object: Resource, now: number): string {
  const at = expiryOf(object)
  if (at === undefined) return 'never'
  return at <= now ? `expired ${span((now - at) / 1000)} ago` : `in ${span((at - now) / 1000)}`
}

/** A scope in one line; undefined where the key may reach everything its owner may. */
export function scopeText(scope: Json | undefined): string | undefined {
  if (!isObject(scope)) return undefined
  const parts = Object.entries(scope).flatMap(([field, entries]) => {
    if (!Array.isArray(entries) || !entries.length) return entries === true ? [field] : []
    return [`${field}: ${entries.map(entry => (isObject(entry) ? entryText(entry) : String(entry))).join(', ')}`]
  })
  return parts.length ? parts.join('; ') : undefined
}

const entryText = (entry: JsonObject) =>
  Object.values(entry)
    .map(value => (typeof value === 'string' ? value : JSON.stringify(value)))
    .join('/')

/** D25: it is not confined by the projects beside it. */
export const readsEverything =
  'The role platform-cli reads everything that its owner may read, secrets of all projects included.'
