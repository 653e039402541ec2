// Turns a change of an object into a request: a replacement, or one of the four kinds of patch.

import type { HttpRequest } from '../../support/direct-http.ts'
import { apiVersionOf, collectionOf, type Obj } from './objects.ts'
import type { Method, Step } from './step.ts'

const types: { readonly [method in Method]?: string } = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
}
const httpMethods: { readonly [method in Method]: string } = {
  create: 'POST',
  update: 'PUT',
  json: 'PATCH',
  merge: 'PATCH',
  strategic: 'PATCH',
  apply: 'PATCH',
  delete: 'DELETE',
  deletecollection: 'DELETE',
  get: 'GET',
}

export function requestOf(step: Step): HttpRequest {
  const { kind, namespace, name, sub, method, dryRun, body, as, cookie, query = [] } = step
  const isNamed = method !== 'deletecollection' && !(method === 'create' && sub === '') && name !== ''
  const path = `${collectionOf(kind, namespace)}${isNamed ? `/${encodeURIComponent(name)}` : ''}${sub ? `/${sub}` : ''}`
  const asked = [
    ...query,
    ...(dryRun ? ['dryRun=All'] : []),
    ...(method === 'apply' ? ['fieldManager=prover', 'force=true'] : []),
  ]
  return {
    method: httpMethods[method],
    url: asked.length ? `${path}?${asked.join('&')}` : path,
    headers: {
      ...(cookie === undefined
        ? { authorization: `Bearer ${step.secret}` }
        : { cookie: `${cookie}=${encodeURIComponent(step.secret)}`, 'sec-fetch-site': 'same-origin' }),
      ...(as ? { 'impersonate-user': as.user } : {}),
      ...(as?.groups.length ? { 'impersonate-group': as.groups.join(',') } : {}),
      ...(body === undefined ? {} : { 'content-type': types[method] ?? 'application/json' }),
      ...step.headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  }
}

/** An object as a client reads it, without internal fields. */
export function visibleOf({ metadata, spec, status: _, ...rest }: Obj): Obj {
  const { managedFields: _fields, ...meta } = metadata
  // Encrypted data is a string in the store.
  const { data, ...others } = spec ?? {}
  const shown = typeof data === 'string' ? others : spec
  return structuredClone({ ...rest, metadata: meta, ...(shown ? { spec: shown } : {}) }) as Obj
}

/** The body that changes one state into the other. */
export function bodyOf(method: Method, now: Obj, next: Obj, kind: Step['kind']): unknown {
  switch (method) {
    case 'merge':
    case 'strategic':
      return mergePatch(now, next) ?? {}
    case 'json':
      return jsonPatch(now, next, '')
    case 'apply': {
      const { uid: _, resourceVersion: __, creationTimestamp: ___, generation: ____, ...metadata } = next.metadata
      return { ...changedFields(now, next), apiVersion: apiVersionOf(kind), kind: kind.kind, metadata }
    }
    default:
      return next
  }
}

type Json = { readonly [key: string]: unknown }
const isMap = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)
const isSame = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other)

function mergePatch(now: unknown, next: unknown): unknown {
  if (!isMap(now) || !isMap(next)) return next
  const patch: { [key: string]: unknown } = {}
  for (const key of Object.keys(now)) if (next[key] === undefined) patch[key] = null
  for (const [key, value] of Object.entries(next))
    if (!isSame(now[key], value)) patch[key] = isMap(now[key]) ? mergePatch(now[key], value) : value
  return patch
}

type Operation = { readonly op: 'add' | 'replace' | 'remove'; readonly path: string; readonly value?: unknown }

function jsonPatch(now: Json, next: Json, at: string): Operation[] {
  const escaped = (key: string) => `${at}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`
  const removed = Object.keys(now).filter(key => next[key] === undefined)
  return [
    ...removed.map(key => ({ op: 'remove', path: escaped(key) }) as const),
    ...Object.entries(next).flatMap(([key, value]): Operation[] => {
      const before = now[key]
      if (value === undefined || isSame(before, value)) return []
      if (before === undefined) return [{ op: 'add', path: escaped(key), value }]
      return isMap(before) && isMap(value)
        ? jsonPatch(before, value, escaped(key))
        : [{ op: 'replace', path: escaped(key), value }]
    }),
  ]
}

/** For an apply, which contains only the fields of its manager: differences outside of metadata, and the envelope. */
function changedFields(now: Obj, next: Obj): Partial<Obj> {
  const fields = Object.entries(next).filter(([key, value]) => key !== 'metadata' && !isSame((now as Json)[key], value))
  return Object.fromEntries(
    fields.map(([key, value]) => {
      const before = (now as Json)[key]
      if (key !== 'spec' || !isMap(before) || !isMap(value)) return [key, value]
      return [key, Object.fromEntries(Object.entries(value).filter(([field, one]) => !isSame(before[field], one)))]
    }),
  )
}
