// Summarizes an access key: its expiry and its scope.

import { isObject, type Json, type JsonObject, type Resource } from '../../api/object.ts'
import { sessionRecordOf } from '../../kinds/login-session.ts'
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

/** A session also ends when nobody uses it. */
export function lifetimeText(object: Resource, now: number): string {
  const record = sessionRecordOf(object)
  return `${expiryText(object, now)}${record ? `, or after ${span(record.idle)} without use` : ''}`
}

/** Formats a scope in one line; undefined if the key has all permissions of its owner. */
export function scopeText(scope: Json | undefined): string | undefined {
  if (!isObject(scope)) return undefined
  const parts = Object.entries(scope).flatMap(([field, entries]) => {
    if (!Array.isArray(entries) || !entries.length) return entries === true ? [field] : []
    return [`${field}: ${entries.map(entry => (isObject(entry) ? entryText(field, entry) : String(entry))).join(', ')}`]
  })
  return parts.length ? parts.join('; ') : undefined
}

/** The fields of an entry in the order that the flags take them (scope-flags.ts). The server stores any order. */
const nameFields = ['namespace', 'project', 'space', 'virtualCluster', 'cluster', 'name'] as const

function entryText(field: string, entry: JsonObject): string {
  if (field === 'rules') return JSON.stringify(entry)
  if (field === 'roles') return roleText(entry)
  const isSecretOfProject = field === 'secrets' && entry['project'] !== undefined
  const names = nameFields.flatMap(name => (typeof entry[name] === 'string' ? [entry[name]] : []))
  return `${isSecretOfProject ? 'project ' : ''}${names.join('/')}${entry['readOnly'] === true ? ':ro' : ''}`
}

function roleText(entry: JsonObject): string {
  const limits = ['projects', 'virtualClusters'].flatMap(field => {
    const names = entry[field]
    return Array.isArray(names) && names.length ? [`${field} ${names.join(' ')}`] : []
  })
  return `${String(entry['role'] ?? '')}${limits.length ? ` (${limits.join(', ')})` : ''}`
}
