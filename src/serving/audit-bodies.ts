// Prepares request and response bodies for the audit log. It records a body only if it knows its type.

import type { Status } from '../api/errors.ts'
import type { Kind, Question, Subresource } from '../api/kind.ts'
import { metadataSchema } from '../api/metadata-schema.ts'
import { isObject, type Json, type JsonObject } from '../api/object.ts'
import type { Document } from '../api/resources.ts'
import { flag, integer, list, oneOf, type Schema, struct, text } from '../api/schema.ts'
import {
  type Hash,
  hashWhole,
  type Protection,
  protectionOf,
  protectionOfSchema,
  redact,
  redactPatch,
} from './audit-redact.ts'
import type { AuditContext } from './exchange.ts'

/** The type of object that a request expects as its body. */
type BodyType = {
  readonly kind: string
  readonly apiVersions: readonly string[]
  readonly protection: Protection
}

const deleteOptions = protectionOfSchema(
  struct('', {
    apiVersion: text(''),
    kind: text(''),
    dryRun: list(oneOf(['All'], ''), ''),
    gracePeriodSeconds: integer(''),
    orphanDependents: flag(''),
    preconditions: struct('', { resourceVersion: text(''), uid: text('') }),
    propagationPolicy: oneOf(['Background', 'Foreground', 'Orphan'], ''),
  }) as Schema,
)

/** The response to a deletion. */
const status = protectionOfSchema(
  struct('', {
    apiVersion: text(''),
    kind: text(''),
    metadata: struct('', {}),
    status: text(''),
    details: struct('', { group: text(''), kind: text(''), name: text(''), uid: text('') }),
  }) as Schema,
)

const ofSubresources = new WeakMap<Subresource, Protection>()

function protectionOfSubresource(own: Subresource): Protection {
  const known = ofSubresources.get(own)
  if (known) return known
  const properties = { apiVersion: text('') as Schema, kind: text('') as Schema, metadata: metadataSchema }
  const made = protectionOfSchema({
    type: 'object',
    properties: own.spec ? { ...properties, spec: own.spec } : properties,
  })
  ofSubresources.set(own, made)
  return made
}

function expectedBody(kind: Kind, question: Question): BodyType {
  const { apiVersion } = kind
  if (question.verb.startsWith('delete'))
    return { kind: 'DeleteOptions', apiVersions: ['v1', 'meta.k8s.io/v1', apiVersion], protection: deleteOptions }
  const name = 'target' in question ? (question.target.subresource ?? '') : ''
  const own = Object.hasOwn(kind.subresources, name) ? kind.subresources[name] : undefined
  return own
    ? { kind: own.kind, apiVersions: [apiVersion], protection: protectionOfSubresource(own) }
    : { kind: kind.kind, apiVersions: [apiVersion], protection: protectionOf(kind) }
}

/** kind and apiVersion are optional. An object that states another type may contain secrets anywhere. */
const isOfType = ({ kind, apiVersion }: JsonObject, expected: BodyType): boolean =>
  (kind == null || kind === expected.kind) &&
  (apiVersion == null || expected.apiVersions.includes(apiVersion as string))

/** undefined: nothing may be recorded. */
export function requestObjectOf(context: SentBody, hash: Hash): Json | undefined {
  const { kind, sent, sentAs, question, decision } = context
  if (!kind || sent == null) return undefined
  const expected = expectedBody(kind, question)
  if (sentAs === 'json-patch')
    return Array.isArray(sent) ? redactPatch(sent, expected.protection, hash) : hashWhole(sent, hash)
  if (!isObject(sent)) return hashWhole(sent, hash)
  if (!isOfType(sent, expected)) return undefined
  return redact(decision.omitManagedFields ? withoutManagedFields(sent) : sent, expected.protection, hash)
}

type SentBody = Pick<AuditContext, 'kind' | 'sent' | 'sentAs' | 'question' | 'decision'>

const large = 64 * 1024

/** Whether the log does not show the whole body. An error message may repeat the rest of it. */
export function isWithheld(context: SentBody & Partial<Pick<AuditContext, 'exchange'>>): boolean {
  if (context.sent == null) return false
  // Searching a large body for secrets would cost more than the message of its error is worth.
  if (Number(context.exchange?.request.headers['content-length']) > large) return true
  let isHashed = false
  const shown = requestObjectOf(context, () => {
    isHashed = true
    return ''
  })
  return isHashed || shown === undefined
}

/**
 * The invalid fields of a body, without their values. A JSON Patch can contain any text instead of a field name, so unknown names
 * are left out.
 */
export function causesIn({ kind, question }: SentBody, { details }: Status): readonly string[] {
  if (!kind) return []
  const { fields } = expectedBody(kind, question).protection
  const known = (details?.causes ?? []).filter(({ field = '' }) => fields.has(field.split(/[.[]/, 1)[0] ?? ''))
  return [...new Set(known.map(({ field, reason }) => `${field}: ${reason}`))]
}

/** The metadata of a body of the expected kind. Empty for any other body. */
export function sentMetadata({ kind, sent, sentAs, question }: SentBody): JsonObject {
  if (!kind || sentAs === 'json-patch' || question.verb.startsWith('delete') || !isObject(sent)) return {}
  return isOfType(sent, expectedBody(kind, question)) && isObject(sent.metadata) ? sent.metadata : {}
}

export function responseObjectOf({ kind, answer, decision }: AuditContext, hash: Hash): Json | undefined {
  if (!kind || !answer) return undefined
  const shown = ({ object }: Document): Json[] => {
    // Some subresources respond with another kind, whose secret fields are unknown here.
    if (object.kind !== kind.kind) return []
    const value = object as unknown as JsonObject
    return [redact(decision.omitManagedFields ? withoutManagedFields(value) : value, protectionOf(kind), hash)]
  }
  if (answer.document) return shown(answer.document)[0]
  if (answer.status) return redact(answer.status as unknown as Json, status, hash)
  if (!answer.list) return undefined
  const metadata = { resourceVersion: answer.list.resourceVersion }
  return { kind: `${kind.kind}List`, apiVersion: kind.apiVersion, metadata, items: answer.list.items.flatMap(shown) }
}

function withoutManagedFields(object: JsonObject): JsonObject {
  if (!isObject(object.metadata)) return object
  const { managedFields: _, ...metadata } = object.metadata
  return { ...object, metadata }
}
