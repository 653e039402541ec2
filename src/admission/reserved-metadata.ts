// Labels and annotations of platform.sh are written by the server alone (D26): controllers and the authorizer trust them.

import { type FieldError, fieldForbidden, invalid } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import { keysOf, type Metadata, type Resource } from '../api/object.ts'

const reserved = 'platform.sh/'
type Words = Metadata['labels']

/** The object with the server's own labels and annotations as they were; 422 where the write sets others. */
export function keepReserved(kind: Kind, next: Resource, old: Resource | undefined): Resource {
  const errors: FieldError[] = []
  let { metadata } = next
  for (const field of ['labels', 'annotations'] as const) {
    const [now, before] = [metadata[field], old?.metadata[field]]
    errors.push(...setBy(now, before, `metadata.${field}`))
    const lost = lostFrom(now, before)
    if (lost) metadata = { ...metadata, [field]: { ...now, ...lost } }
  }
  if (errors.length) throw invalid(kind, next.metadata.name ?? '', errors)
  return metadata === next.metadata ? next : { ...next, metadata }
}

function setBy(now: Words, before: Words, field: string): FieldError[] {
  if (!now || now === before) return []
  return keysOf(now).flatMap(key =>
    key.startsWith(reserved) && now[key] !== before?.[key]
      ? [fieldForbidden(field, `"${key}" is written by the server; leave out what begins with ${reserved}`)]
      : [],
  )
}

function lostFrom(now: Words, before: Words): Words {
  if (!before || now === before) return undefined
  const lost = keysOf(before).filter(key => key.startsWith(reserved) && now?.[key] === undefined)
  return lost.length ? Object.fromEntries(lost.map(key => [key, before[key] as string])) : undefined
}
