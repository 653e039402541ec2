// Reads and updates the annotation of kubectl's client-side apply.

import { emptyMap, isObject, type Json, type JsonObject } from '../api/object.ts'
import { compareTyped } from './compare.ts'
import { difference, type FieldSet, NO_FIELDS } from './field-set.ts'
import type { Shape } from './schema.ts'
import { fieldsOf, problemsOf } from './typed.ts'

const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'
/** The limit of Kubernetes for all annotations together. */
const MAX_ANNOTATION_BYTES = 256 * 1024

/** The fields that were applied client-side and are unchanged since. kubectl may take them over from any manager. */
export function fieldsOfLastApplied(shape: Shape, live: JsonObject, apiVersion: string): FieldSet {
  const config = readLastApplied(live)
  if (config === undefined || config['apiVersion'] !== apiVersion) return NO_FIELDS
  if ([live, config].some(value => problemsOf(shape, value, { repeats: false }).length > 0)) return NO_FIELDS
  const { added, modified, removed } = compareTyped(shape, config, live)
  return [modified, added, removed].reduce(difference, fieldsOf(shape, config))
}

function readLastApplied(object: JsonObject): JsonObject | undefined {
  try {
    const config: unknown = JSON.parse(annotationOf(object))
    return isObject(config) ? config : undefined
  } catch {
    return undefined
  }
}

function annotationOf(object: JsonObject): string {
  const value = annotationsOf(object)[LAST_APPLIED]
  return typeof value === 'string' ? value : ''
}

function annotationsOf(object: JsonObject): JsonObject {
  const metadata = object['metadata']
  const annotations = isObject(metadata) ? metadata['annotations'] : undefined
  return isObject(annotations) ? annotations : {}
}

/** Updates the annotation, if the object has one, to the applied configuration. Removes it if it would be too large. */
export function refreshLastApplied(merged: JsonObject, config: JsonObject): JsonObject {
  if (annotationOf(merged) === '') return merged
  const others = omit(annotationsOf(merged), LAST_APPLIED)
  const applied = `${JSON.stringify(sorted(withAnnotations(config, omit(annotationsOf(config), LAST_APPLIED))))}\n`
  const annotations = { ...others, [LAST_APPLIED]: applied }
  const bytes = Object.entries(annotations).reduce(
    (sum, [key, value]) => sum + bytesOf(key) + bytesOf(String(value)),
    0,
  )
  return withAnnotations(merged, bytes > MAX_ANNOTATION_BYTES ? others : annotations)
}

function withAnnotations(object: JsonObject, annotations: JsonObject): JsonObject {
  const metadata = object['metadata']
  if (!isObject(metadata) || metadata['annotations'] === undefined) return object
  return { ...object, metadata: { ...metadata, annotations } }
}

function omit(map: JsonObject, key: string): JsonObject {
  const rest = emptyMap()
  for (const other of Object.keys(map)) if (other !== key) rest[other] = map[other]!
  return rest
}

function bytesOf(text: string): number {
  return new TextEncoder().encode(text).length
}

/** Sorts keys like Kubernetes, so that the same configuration gives the same annotation. */
function sorted(value: Json): Json {
  if (Array.isArray(value)) return value.map(sorted)
  if (!isObject(value)) return value
  const copy = emptyMap()
  for (const key of Object.keys(value).sort()) if (value[key] !== undefined) copy[key] = sorted(value[key])
  return copy
}
