// Reduces cached objects to the fields the syncer needs, to save memory.

import type { Metadata } from '../../api/object.ts'
import type { ServiceObject, SyncedObject } from './kinds.ts'
import { conditionsAnnotation } from './sync-annotations.ts'

export const serviceState = ({ spec }: ServiceObject) =>
  Object.keys(spec?.selector ?? {}).length ? 'selector' : 'plain'

/** Drops managed fields, which are half of an object and not used here. */
export function withoutManagedFields(object: SyncedObject): SyncedObject {
  const { managedFields: _, ...metadata } = object.metadata
  return { ...object, metadata }
}
/** Without its content: only whose object it is matters. */
export const bare = ({ apiVersion, kind, metadata }: SyncedObject): SyncedObject =>
  withoutManagedFields({ apiVersion, kind, metadata })

/** Keeps only whether the service exists and has a selector. */
export function serviceSummary({
  apiVersion,
  kind,
  metadata: { name, namespace, resourceVersion },
  spec,
}: ServiceObject): ServiceObject {
  const metadata: Metadata = {
    ...(name ? { name } : {}),
    ...(namespace ? { namespace } : {}),
    ...(resourceVersion ? { resourceVersion } : {}),
  }
  return {
    apiVersion,
    kind,
    metadata,
    spec: serviceState({ spec } as ServiceObject) === 'selector' ? { selector: { any: '' } } : {},
  }
}

/** Ignores our own condition, because reacting to it would loop. */
export function isOnlyCondition(next: SyncedObject, before: SyncedObject): boolean {
  const condition = (object: SyncedObject) => object.metadata.annotations?.[conditionsAnnotation]
  if (condition(next) === condition(before) || condition(next) === undefined) return false
  const rest = ({ metadata: { resourceVersion: _, ...metadata }, ...object }: SyncedObject) => {
    const { [conditionsAnnotation]: __, ...annotations } = metadata.annotations ?? {}
    return JSON.stringify({ ...object, metadata: { ...metadata, annotations } })
  }
  return rest(next) === rest(before)
}
