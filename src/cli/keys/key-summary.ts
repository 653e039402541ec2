// Summarizes an access key: its expiry and its scope.

import { isObject, type Json, type JsonObject, type Resource } from '../../api/object.ts'
import { span } from '../print.ts'

/** Milliseconds since the epoch; undefined if the key never expires (D18, D22). */
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

/** Formats a scope in one line; undefined if the key has all permissions of its owner. */
export function scopeText(scope: Json | undefined): string | undefined {
  if (!isObject(scope)) return undefined
  const parts = Object.entries(scope).flatMap(([field, entries]) => {
    if (!Array.isArray(entries) || !entries.length) return entries === true ? [field] : []
    return [`${field}: ${entries.map(entry => (isObject(entry) ? entryText(entry) : String(entry))).join(', ')}`]
  })
  return parts.length ? parts.join('; ') : undefined
}

function entryText({ readOnly, ...entry }: JsonObject): string {
  const isOfProject = entry['project'] !== undefined && entry['name'] !== undefined
  const values = Object.values(entry).map(value => (typeof value === 'string' ? value : JSON.stringify(value)))
  return `${isOfProject ? 'project ' : ''}${values.join('/')}${readOnly === true ? ':ro' : ''}`
}
