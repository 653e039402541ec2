// Copies the content of a referenced object to the other cluster, and recognizes a copy that is up to date.

import { canonical } from '../../api/codec.ts'
import { ApiError } from '../../api/errors.ts'
import {
  emptyMap,
  isObject,
  type Json,
  type JsonObject,
  type Metadata,
  type Ref,
  type Resource,
} from '../../api/object.ts'
import type { Resources } from '../../api/resources.ts'
import type { ReferencedKind } from './referenced-kinds.ts'
import { hashOf, sourceHashAnnotation } from './sync-annotations.ts'

export type DataObject = Resource & {
  readonly data?: JsonObject
  readonly binaryData?: JsonObject
  readonly type?: string
  readonly immutable?: boolean
}

const manager = { fieldManager: 'platform-vcluster-sync' }

/** Everything that describes the object, and nothing that a server adds. */
export function contentOf(object: DataObject, { isGeneric }: ReferencedKind): JsonObject {
  if (isGeneric) {
    const { apiVersion: _, kind: __, metadata: ___, status: ____, ...content } = object
    return content as unknown as JsonObject
  }
  const { data, binaryData, type, immutable } = object
  return {
    ...(data ? { data } : {}),
    ...(binaryData ? { binaryData } : {}),
    ...(type ? { type } : {}),
    ...(immutable === undefined ? {} : { immutable }),
  }
}

const same = (a: unknown, b: unknown) => canonical(a as Json) === canonical(b as Json)

export type Copy = {
  readonly to: Resources
  readonly at: Ref
  readonly kind: ReferencedKind
  readonly content: JsonObject
  /** The copy as it is now. */
  readonly current: DataObject | undefined
  /** Labels and annotations that the copy must have. Absent: other labels and annotations stay. */
  readonly metadata: Pick<Metadata, 'labels' | 'annotations' | 'ownerReferences'>
}

/** Writes nothing if the copy is up to date. */
export async function writeCopy(copy: Copy): Promise<void> {
  const { to, at, kind, content, current } = copy
  const metadata = kind.isGeneric ? withHash(copy) : copy.metadata
  const head = { apiVersion: kind.kind.apiVersion, kind: kind.kind.kind }
  if (!current) {
    const object = { ...head, metadata: { ...at, ...metadata }, ...content }
    await to.create(kind.kind, at.namespace, object as unknown as Json, manager)
    return
  }
  const { managedFields: _, ...kept } = current.metadata
  const isCurrent =
    hasContent(current, content, kind) &&
    (!metadata.labels || same(kept.labels ?? {}, metadata.labels)) &&
    (!metadata.annotations || same(kept.annotations ?? {}, metadata.annotations))
  if (isCurrent) return
  const status = kind.isGeneric && current.status ? { status: current.status } : {}
  const update = (next: JsonObject) =>
    to.update(
      kind.kind,
      at,
      { ...head, metadata: { ...kept, ...metadata }, ...next, ...status } as unknown as Json,
      manager,
    )
  try {
    await update(content)
  } catch (error) {
    // Fields that a server has set may be immutable, such as the volume of a claim.
    if (!kind.isGeneric || !(error instanceof ApiError) || error.code !== 422) throw error
    await update(merged(contentOf(current, kind), content) as JsonObject)
  }
}

/** Servers complete generic objects, so the copy may have more fields. The hash shows that the source removed a field. */
function hasContent(copy: DataObject, content: JsonObject, kind: ReferencedKind): boolean {
  if (!kind.isGeneric) return same(contentOf(copy, kind), content)
  return copy.metadata.annotations?.[sourceHashAnnotation] === hash(content) && includes(contentOf(copy, kind), content)
}

const hash = (content: JsonObject) => hashOf(canonical(content))

function withHash({ metadata, content }: Copy): Copy['metadata'] {
  return { ...metadata, annotations: { ...metadata.annotations, [sourceHashAnnotation]: hash(content) } }
}

function includes(whole: Json | undefined, part: Json): boolean {
  if (isObject(part))
    return isObject(whole) && Object.entries(part).every(([key, value]) => includes(whole[key], value as Json))
  if (Array.isArray(part))
    return Array.isArray(whole) && whole.length === part.length && part.every((one, at) => includes(whole[at], one))
  return whole === part || (part === null && whole === undefined)
}

function merged(whole: Json | undefined, part: Json): Json {
  if (!isObject(part) || !isObject(whole)) return part
  const next = emptyMap()
  for (const [key, value] of Object.entries(whole)) next[key] = value as Json
  for (const [key, value] of Object.entries(part)) next[key] = merged(whole[key], value as Json)
  return next
}
