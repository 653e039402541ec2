// Replays the recorded responses of a kube-apiserver (test/fixtures/server-side-apply.json) with a naive store.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { type Draft, emptyMap, isObject, type Json, type JsonObject, type Resource } from '../api/object.ts'
import { ApplyConflict, applyConfiguration, applyConflictStatus } from './apply.ts'
import { isEqual } from './compare.ts'
import type { FieldSchema } from './schema.ts'
import { TypedError } from './typed.ts'
import { isSameApartFromTimes, trackUpdate } from './update.ts'

type Request = {
  readonly verb: 'create' | 'update' | 'merge' | 'json' | 'apply'
  readonly manager: string
  readonly sub?: string
  readonly force?: boolean
  readonly body?: JsonObject
  readonly change?: JsonObject
  readonly patch?: Json
}
type Step = { readonly request: Request; readonly answer: JsonObject }
type Fixture = { readonly cases: readonly { readonly case: string; readonly steps: readonly Step[] }[] }

const text: FieldSchema = { type: 'string' }
const texts: FieldSchema = { type: 'array', items: text }
const struct = (properties: { [name: string]: FieldSchema }): FieldSchema => ({ type: 'object', properties })
const mapList = (key: string, items: FieldSchema): FieldSchema => ({
  type: 'array',
  items,
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': [key],
})
const setOf = (items: FieldSchema): FieldSchema => ({ type: 'array', items, 'x-kubernetes-list-type': 'set' })
const mapOf = (additionalProperties: FieldSchema): FieldSchema => ({ type: 'object', additionalProperties })

const owner = struct({ apiVersion: text, kind: text, name: text, uid: text, controller: { type: 'boolean' } })
const metadata = struct({
  name: text,
  namespace: text,
  uid: text,
  resourceVersion: text,
  generation: { type: 'integer' },
  creationTimestamp: text,
  labels: mapOf(text),
  annotations: mapOf(text),
  finalizers: setOf(text),
  ownerReferences: mapList('uid', { ...owner, 'x-kubernetes-map-type': 'atomic' }),
})
const schema = struct({
  apiVersion: text,
  kind: text,
  metadata,
  spec: struct({
    displayName: text,
    description: text,
    owner: struct({ user: text, team: text }),
    users: setOf(text),
    groups: setOf(text),
    clusterRoles: mapList('name', struct({ name: text })),
    access: { type: 'array', items: struct({ name: text, verbs: texts, users: texts, teams: texts }) },
  }),
  status: struct({ conditions: mapList('type', struct({ type: text, status: text, reason: text })) }),
})

const API = { apiVersion: 'management.platform.sh/v1', kind: 'Team' }
const request = { apiVersion: API.apiVersion, now: '2026-01-02T03:04:05Z', resetStatus: true }

class Refusal extends Error {
  readonly code: number
  readonly causes: Json | undefined
  constructor(code: number, message: string, causes?: Json) {
    super(message)
    this.code = code
    this.causes = causes
  }
}

/** The part of a registry that the fixture needs. */
function openTeams(name: string) {
  let stored: Resource | undefined

  function perform({ verb, manager, sub = '', force = false, body, change, patch }: Request): { code: number } {
    if (verb === 'create') return create(trackNew({ ...body } as JsonObject, manager))
    if (verb === 'apply') return apply(checked({ ...API, ...body }), { manager, force, subresource: sub })
    const before = stored!
    const requested = (
      verb === 'json' ? patched(before as never, patch as never) : merged(before as never, (change ?? patch)!)
    ) as never
    const after = keepTheRest(before, requested, sub)
    const entries = trackUpdate({ ...request, schema, before, after, manager, subresource: sub })
    return replace(withEntries(after, entries))
  }

  function trackNew(body: JsonObject, manager: string): Resource {
    const after = fresh({ ...API, ...body } as unknown as Resource)
    return withEntries(after, trackUpdate({ ...request, schema, before: undefined, after, manager, subresource: '' }))
  }

  function fresh(object: Resource): Resource {
    const { status: _, ...rest } = object
    return { ...rest, metadata: { ...object.metadata, name, uid: 'u', generation: 1, resourceVersion: '7' } }
  }

  function create(object: Resource): { code: number } {
    stored = tidy(object)
    return { code: 201 }
  }

  function checked(body: JsonObject): Resource {
    const { metadata = {}, kind } = body as unknown as Resource
    if (kind !== 'Team') throw new Refusal(400, `invalid object type: ${API.apiVersion}, Kind=${kind}`)
    if (metadata.name !== undefined && metadata.name !== name) {
      throw new Refusal(400, `the name of the object (${metadata.name}) does not match the name on the URL (${name})`)
    }
    return { ...body, metadata: { ...metadata, name } } as unknown as Resource
  }

  function apply(config: Resource, options: { manager: string; force: boolean; subresource: string }) {
    const version = config.metadata.resourceVersion
    if (version !== undefined && version !== stored?.metadata.resourceVersion) {
      throw new Refusal(
        409,
        `Operation cannot be fulfilled on teams.management.platform.sh "${name}": the object has been modified; please apply your changes to the latest version and try again`,
      )
    }
    const { object } = applyConfiguration({ ...request, ...options, schema, live: stored, config })
    return stored === undefined ? create(fresh(object)) : replace(keepTheRest(stored, object, options.subresource))
  }

  function keepTheRest(before: Resource, requested: Resource, subresource: string): Resource {
    if (subresource === 'status') {
      return withEntries(
        { ...before, ...(requested.status && { status: requested.status }) },
        requested.metadata.managedFields,
      )
    }
    const { status: _, ...rest } = requested
    return before.status === undefined ? rest : { ...rest, status: before.status }
  }

  function replace(object: Resource): { code: number } {
    const before = stored!
    const after = tidy(object)
    if (isSameApartFromTimes(before, after)) return { code: 200 }
    const generation = (before.metadata.generation ?? 0) + (isEqual(after.spec, before.spec) ? 0 : 1)
    const resourceVersion = String(Number(before.metadata.resourceVersion) + 1)
    stored = { ...after, metadata: { ...after.metadata, generation, resourceVersion } }
    return { code: 200 }
  }

  return { perform, read: () => stored }
}

function withEntries(object: Resource, entries: Resource['metadata']['managedFields']): Resource {
  return { ...object, metadata: { ...object.metadata, managedFields: entries ?? [] } }
}

/** Removes empty maps and lists from metadata. */
function tidy(object: Resource): Resource {
  const kept = Object.entries(object.metadata).filter(
    ([, value]) => !(typeof value === 'object' && Object.keys(value).length === 0),
  )
  return { ...object, metadata: Object.fromEntries(kept) }
}

function merged(target: Json | undefined, patch: Json): Json {
  if (!isObject(patch)) return patch
  const result: Draft = Object.assign(emptyMap(), isObject(target) ? target : {})
  for (const key of Object.keys(patch)) {
    if (patch[key] === null) delete result[key]
    else result[key] = merged(result[key], patch[key]!)
  }
  return result
}

function patched(target: JsonObject, patch: readonly { op: string; path: string; value: Json }[]): Json {
  const copy = structuredClone(target) as Draft
  for (const { path, value } of patch) {
    const steps = path.split('/').slice(1)
    const last = steps.pop()!
    const parent = steps.reduce<Json>((node, step) => (node as Draft)[step]!, copy) as Draft
    if (Array.isArray(parent)) parent.push(value)
    else parent[last] = value
  }
  return copy
}

function answerOf(teams: ReturnType<typeof openTeams>, step: Step, name: string): JsonObject {
  const before = teams.read()?.metadata.resourceVersion
  try {
    const { code } = teams.perform(step.request)
    const { metadata, spec, status } = teams.read()!
    const { generation, labels, annotations, finalizers, ownerReferences, managedFields, resourceVersion } = metadata
    const entries = (managedFields ?? []).map(entry => ({ ...entry, time: undefined }))
    const unchanged = resourceVersion === before
    return plain({
      code,
      generation,
      unchanged,
      labels,
      annotations,
      finalizers,
      ownerReferences,
      spec,
      status,
      managedFields: entries,
    })
  } catch (error) {
    if (error instanceof Refusal) return plain({ code: error.code, message: error.message })
    if (error instanceof ApplyConflict) return plain({ code: 409, ...applyConflictStatus(error) })
    if (!(error instanceof TypedError)) throw error
    const prefix = `failed to create typed patch object (/${name}; ${API.apiVersion}, Kind=Team): `
    const isOwn = error.message.startsWith('metadata.managedFields')
    return plain({ code: 400, message: isOwn ? error.message : prefix + error.message })
  }
}

function plain(value: object): JsonObject {
  return JSON.parse(JSON.stringify(value))
}

describe('field ownership agrees with a recorded kube-apiserver (kubernetes-wire §1.14)', () => {
  const path = new URL('../../test/fixtures/server-side-apply.json', import.meta.url)
  const fixture: Fixture = JSON.parse(readFileSync(path, 'utf8'))
  for (const [index, { case: title, steps }] of fixture.cases.entries()) {
    it(title, () => {
      const name = `g${index}`
      const teams = openTeams(name)
      for (const step of steps) {
        const { reason: _, ...answer } = step.answer
        // An invalid request is a client error, even if upstream responds with 500.
        const expected = { ...answer, code: answer['code'] === 500 ? 400 : answer['code']! }
        const normal = (value: JsonObject) => JSON.parse(JSON.stringify(value).replaceAll(name, 'NAME'))
        assert.deepEqual(normal(answerOf(teams, step, name)), normal(expected))
      }
    })
  }
})
