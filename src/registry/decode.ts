// Decodes the body of a write: checks the envelope, and finds unknown and duplicate fields (D24, wire §1.7, §1.8).

import {
  type ApiError,
  badRequest,
  type FieldError,
  fieldForbidden,
  invalid,
  invalidValue,
  isEnough,
  tooLongReason,
  tooManyReason,
} from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import { metadataSchema } from '../api/metadata-schema.ts'
import { emptyMap, isObject, type Json, type JsonObject, type Metadata, type Resource } from '../api/object.ts'
import type { WriteOptions } from '../api/resources.ts'
import { withTextStored } from './text-forms.ts'
import { conform, type Findings, noFindings, noteUnknown, nothing, typeName } from './validate.ts'

/** A well-formed object of the kind with all field errors so far. Bodies of another kind do not get this far. */
export type DecodedObject = { readonly object: Resource; readonly errors: readonly FieldError[] }

export function decodeObject(
  kind: Kind,
  sent: Json,
  options: WriteOptions,
  strictness: 'decode' | 'patch' = 'decode',
): DecodedObject {
  if (!isObject(sent))
    throw badRequest(
      `the object provided is unrecognized (must be of type ${kind.kind}): it is ${article(typeName(sent))}, not an object`,
    )
  const errors = checkEnvelope(kind, sent)
  const found = noFindings()
  // The server would drop an unknown restriction outside of `spec`, or a duplicate one, like a mistyped one in `spec`
  // (D25).
  const isClosed = kind.spec?.['x-closed'] === true
  if (isClosed) refuseDuplicates(kind, options)
  const metadata = receiveMetadata(kind, sent, found)
  if (isClosed)
    for (const field of found.unknown.splice(0)) found.errors.push(fieldForbidden(field, `unknown field "${field}"`))
  const atRoot = { unknown: [] as string[] }
  const object = emptyMap()
  object.apiVersion = kind.apiVersion
  object.kind = kind.kind
  object.metadata = metadata as unknown as Json
  for (const key of Object.keys(sent)) {
    if (key === 'apiVersion' || key === 'kind' || key === 'metadata') continue
    const schema = Object.hasOwn(kind.fields, key) ? kind.fields[key] : undefined
    const value = sent[key] as Json
    if (!schema && isClosed) found.errors.push(fieldForbidden(key, `unknown field "${key}"`))
    else if (!schema) noteUnknown(atRoot, '', key)
    else if (value !== null || schema['x-closed']) object[key] = conform(schema, value, key, found)
  }
  // Stop here if a value exceeds a limit, because the limit exists to avoid the cost of further checks. After many errors the
  // rest was not checked.
  if (isEnough(found.errors) || found.errors.some(isLimit)) throw invalid(kind, metadata.name ?? '', found.errors)
  report(kind, (metadata.name ?? '') as string, found, atRoot.unknown, options, strictness)
  const all = [...errors, ...found.errors]
  return { object: (all.length ? object : withTextStored(kind, object)) as unknown as Resource, errors: all }
}

function refuseDuplicates(kind: Kind, { duplicates = [] }: WriteOptions): void {
  if (duplicates.length) throw notHandled(kind, `strict decoding error: ${duplicates.slice(0, maxWarnings).join(', ')}`)
}

const isLimit = ({ reason }: FieldError) => reason === tooManyReason || reason === tooLongReason

/** kind and apiVersion are optional. If set, they must match the URL (D24). */
function checkEnvelope(kind: Kind, sent: JsonObject): FieldError[] {
  const { apiVersion, kind: word } = sent
  if (apiVersion !== undefined && apiVersion !== null && apiVersion !== kind.apiVersion)
    throw badRequest(
      `the API version in the data (${typeof apiVersion === 'string' ? apiVersion : typeName(apiVersion)}) does not match the expected API version (${kind.apiVersion})`,
    )
  if (word === undefined || word === null || word === kind.kind) return []
  return [invalidValue('kind', typeof word === 'string' ? word : typeName(word), `must be ${kind.kind}`)]
}

function receiveMetadata(kind: Kind, sent: JsonObject, found: Findings): Metadata {
  const value = sent.metadata ?? emptyMap()
  const own = noFindings()
  const metadata = conform(metadataSchema, value, 'metadata', own)
  found.unknown.push(...own.unknown)
  found.deprecated.push(...own.deprecated)
  found.errors.push(...(isEnough(own.errors) ? own.errors : own.errors.filter(isLimit)))
  // Missing fields of ownerReferences are field errors. A wrong JSON type is a decoding error.
  const [wrong] = own.wrongTypes
  if (wrong) {
    const { actual, expected } = wrong
    const field = wrong.field
      .replace(/^metadata\.?/, 'ObjectMeta.')
      .replace(/^(ObjectMeta\.(labels|annotations))\..*/, '$1')
    const word = actual === 'integer' ? 'number' : actual === 'boolean' ? 'bool' : actual // Go's type names
    throw notHandled(kind, `json: cannot unmarshal ${word} into Go struct field ${field} of type ${expected}`)
  }
  const out = emptyMap()
  for (const [key, item] of Object.entries(metadata as JsonObject))
    if (key === 'managedFields' || !isEmpty(item)) out[key] = item
  return out as unknown as Metadata
}

/** Empty maps and lists in metadata are the same as absent ones. An empty managedFields list resets the field. */
const isEmpty = (value: Json) => value === nothing || (Array.isArray(value) && value.length === 0)

const notHandled = (kind: Kind, why: string) =>
  badRequest(`${kind.kind} in version "${kind.version}" cannot be handled as a ${kind.kind}: ${why}`)

/** Upstream stops here as well, so that a body of unknown fields does not get a response of its size. */
const maxWarnings = 100

function report(
  kind: Kind,
  name: string,
  found: Findings,
  atRoot: readonly string[],
  options: WriteOptions,
  strictness: 'decode' | 'patch',
): void {
  const metadataFirst = [
    ...found.unknown.filter(path => path.startsWith('metadata.')),
    ...atRoot,
    ...found.unknown.filter(path => !path.startsWith('metadata.')),
  ]
  const problems = [...(options.duplicates ?? []), ...metadataFirst.map(path => `unknown field "${path}"`)].slice(
    0,
    maxWarnings,
  )
  if (problems.length && options.fieldValidation === 'Strict') {
    if (strictness === 'patch')
      throw invalid(kind, name, [
        {
          reason: 'FieldValueInvalid',
          field: 'patch',
          message: `Invalid value: strict decoding error: ${problems.join(', ')}`,
        },
      ])
    throw notHandled(kind, `strict decoding error: ${problems.join(', ')}`)
  }
  if (options.fieldValidation !== 'Ignore') for (const problem of problems) options.warn?.(problem)
  for (const path of new Set(found.deprecated)) options.warn?.(deprecation(kind, path))
}

function deprecation(kind: Kind, path: string): string {
  return `${kind.apiVersion} ${kind.kind}: ${path} is deprecated`
}

const article = (word: string) => (/^[aeio]/.test(word) ? `an ${word}` : `a ${word}`)

/** The Strict error for a JSON Patch with unknown members in its operations. */
export const strictPatchError = (kind: Kind, name: string, members: readonly string[]): ApiError =>
  invalid(kind, name, [
    {
      reason: 'FieldValueInvalid',
      field: 'patch',
      message: `Invalid value: strict decoding error: ${members.map(one => `json patch unknown field "${one}"`).join(', ')}`,
    },
  ])
