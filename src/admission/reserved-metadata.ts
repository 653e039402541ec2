// Protects labels and annotations of platform.sh, which only the server may write, because controllers and the authorizer rely on them (D26).

import { type FieldError, fieldForbidden, invalid } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import { keysOf, type Metadata, type Resource } from '../api/object.ts'

const reserved = 'platform.sh/'
type Words = Metadata['labels']

/** Keeps the stored reserved labels and annotations. Throws 422 if the write sets others. */
export function keepReserved(kind: Kind, next: Resource, old: Resource | undefined): Resource {
  const errors: FieldError[] = []
  let { metadata } = next
  for (const field of ['labels', 'annotations'] as const) {
    const [now, before] = [metadata[field], old?.metadata[field]]
    errors.push(...setBy(now, before, `metadata.${field}`))
    const removed = removedFrom(now, before)
    if (removed) metadata = { ...metadata, [field]: { ...now, ...removed } }
  }
  if (errors.length) throw invalid(kind, next.metadata.name ?? '', errors)
  return metadata === next.metadata ? next : { ...next, metadata }
}

function setBy(now: Words, before: Words, field: string): FieldError[] {
  if (!now || now === before) return []
  return keysOf(now).flatMap(key =>
    key.startsWith(reserved) && now[key] !== before?.[key]
      ? [fieldForbidden(field, `"${key}" is reserved for the server; omit keys with the prefix ${reserved}`)]
      : [],
  )
}

function removedFrom(now: Words, before: Words): Words {
  if (!before || now === before) return undefined
  const removed = keysOf(before).filter(key => key.startsWith(reserved) && now?.[key] === undefined)
  return removed.length ? Object.fromEntries(removed.map(key => [key, before[key] as string])) : undefined
}
