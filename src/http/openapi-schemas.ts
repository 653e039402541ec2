// The schemas of OpenAPI, made from the kinds' own: what `kubectl explain` prints and client generators read.

import type { Kind } from '../api/kind.ts'
import { metadataSchema, wholeSchema } from '../api/metadata-schema.ts'
import type { Draft, Json, JsonObject } from '../api/object.ts'
import type { Schema } from '../api/schema.ts'

/** v3 nests references in allOf, so that a description can stand beside them; v2 readers expect them bare. */
export type Dialect = { readonly ref: (name: string) => string; readonly version: 2 | 3 }

const meta = 'io.k8s.apimachinery.pkg.apis.meta.v1'
export const statusName = `${meta}.Status`
export const deleteOptionsName = `${meta}.DeleteOptions`

/** `management.platform.sh/v1 Team` → `sh.platform.management.v1.Team`. */
export const schemaName = (kind: Kind) =>
  [...kind.group.split('.').reverse(), kind.version, kind.kind].filter(Boolean).join('.')
const gvk = (kind: Kind, word = kind.kind): JsonObject => ({ group: kind.group, kind: word, version: kind.version })

export function schemasOf(kinds: readonly Kind[], dialect: Dialect): { [name: string]: JsonObject } {
  const schemas: { [name: string]: JsonObject } = {
    [`${meta}.ObjectMeta`]: convert(metadataSchema, dialect),
    [`${meta}.ListMeta`]: listMeta,
    [statusName]: { ...status, 'x-kubernetes-group-version-kind': [{ group: '', kind: 'Status', version: 'v1' }] },
    [deleteOptionsName]: deleteOptions,
  }
  for (const kind of kinds) {
    schemas[schemaName(kind)] = whole(kind, dialect)
    if (kind.verbs.includes('list')) schemas[`${schemaName(kind)}List`] = list(kind, dialect)
  }
  return schemas
}

function whole(kind: Kind, dialect: Dialect): JsonObject {
  const converted = convert(wholeSchema(kind), dialect)
  const metadata = reference(`${meta}.ObjectMeta`, 'Standard metadata of the object.', dialect)
  return {
    ...converted,
    properties: { ...(converted.properties as JsonObject), metadata },
    'x-kubernetes-group-version-kind': [gvk(kind)],
  }
}

function list(kind: Kind, dialect: Dialect): JsonObject {
  return {
    description: `${kind.kind}List is a list of ${kind.kind}.`,
    type: 'object',
    required: ['items'],
    properties: {
      apiVersion: { type: 'string', description: 'Versioned schema of this representation.' },
      items: { type: 'array', description: 'The objects.', items: reference(schemaName(kind), '', dialect) },
      kind: { type: 'string', description: 'The kind of this list.' },
      metadata: reference(`${meta}.ListMeta`, 'Standard metadata of the list.', dialect),
    },
    'x-kubernetes-group-version-kind': [gvk(kind, `${kind.kind}List`)],
  }
}

function reference(name: string, description: string, { ref, version }: Dialect): JsonObject {
  if (version === 2) return { $ref: ref(name), ...(description ? { description } : {}) }
  return { ...(description ? { description } : {}), allOf: [{ $ref: ref(name) }], default: {} }
}

const copied = ['type', 'description', 'format', 'default', 'enum', 'minimum', 'required'] as const

/** A schema without what is the server's own affair. */
function convert(schema: Schema, dialect: Dialect): JsonObject {
  const out: Draft = {}
  for (const key of copied) if (schema[key] !== undefined && schema[key] !== '') out[key] = schema[key] as Json
  for (const key of Object.keys(schema)) if (key.startsWith('x-kubernetes-')) out[key] = schema[key as 'type'] as Json
  if (schema.deprecated && dialect.version === 3) out.deprecated = true
  if (schema.properties) {
    const visible = Object.entries(schema.properties).filter(([, property]) => !property['x-internal'])
    out.properties = Object.fromEntries(visible.map(([name, property]) => [name, convert(property, dialect)]))
  }
  if (typeof schema.additionalProperties === 'object')
    out.additionalProperties = convert(schema.additionalProperties, dialect)
  if (schema.items) out.items = convert(schema.items, dialect)
  return out
}

const string = (description: string): JsonObject => ({ type: 'string', description })
const int64 = (description: string): JsonObject => ({ type: 'integer', format: 'int64', description })

const listMeta: JsonObject = {
  description: 'ListMeta is the metadata of a list.',
  type: 'object',
  properties: {
    continue: string('Set when there are more objects; send it back to get them.'),
    remainingItemCount: int64('Number of remaining objects, if known.'),
    resourceVersion: string('Version of the list; a watch can start from it.'),
  },
}

const status: JsonObject = {
  description: 'Status is the answer to a request that returns no object.',
  type: 'object',
  properties: {
    apiVersion: string('v1.'),
    code: { type: 'integer', format: 'int32', description: 'Suggested HTTP code.' },
    details: { type: 'object', description: 'Details about the result.', 'x-kubernetes-preserve-unknown-fields': true },
    kind: string('Status.'),
    message: string('Human-readable message.'),
    metadata: { type: 'object', description: 'Metadata of the answer.', 'x-kubernetes-preserve-unknown-fields': true },
    reason: string('Machine-readable reason.'),
    status: string('Success or Failure.'),
  },
}

const deleteOptions: JsonObject = {
  description: 'DeleteOptions controls how an object is deleted.',
  type: 'object',
  properties: {
    apiVersion: string('v1.'),
    dryRun: { type: 'array', items: { type: 'string' }, description: 'All: nothing is deleted.' },
    gracePeriodSeconds: int64('Seconds until the object is removed.'),
    kind: string('DeleteOptions.'),
    orphanDependents: { type: 'boolean', description: 'Deprecated: use propagationPolicy.' },
    preconditions: {
      type: 'object',
      description: 'Conditions that the object must meet to be deleted.',
      properties: { resourceVersion: string('Its resourceVersion.'), uid: string('Its uid.') },
    },
    propagationPolicy: string('Background, Foreground or Orphan.'),
  },
}
