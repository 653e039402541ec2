// What the syncer keeps in memory of the objects it follows, and which changes of them mean something. Pure.

import type { Metadata } from '../../api/object.ts'
import type { EndpointsObject, ServiceObject } from './kinds.ts'
import { conditionsMark } from './sync-annotations.ts'

export const serviceState = ({ spec }: ServiceObject) =>
  Object.keys(spec?.selector ?? {}).length ? 'selector' : 'plain'

/** Managed fields are half of an object, and nobody here reads them. */
export function slim(object: EndpointsObject): EndpointsObject {
  const { managedFields: _, ...metadata } = object.metadata
  return { ...object, metadata }
}
export const bare = ({ subsets: _, ...object }: EndpointsObject): EndpointsObject => slim(object)

/** Of a service it only matters whether it is there and has a selector. */
export function gist({
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

/** Our own condition is no change: acting on it would be talking to ourselves. */
export function isOnlyCondition(next: EndpointsObject, before: EndpointsObject): boolean {
  const mark = (object: EndpointsObject) => object.metadata.annotations?.[conditionsMark]
  if (mark(next) === mark(before) || mark(next) === undefined) return false
  const rest = ({ metadata: { resourceVersion: _, ...metadata }, ...object }: EndpointsObject) => {
    const { [conditionsMark]: __, ...annotations } = metadata.annotations ?? {}
    return JSON.stringify({ ...object, metadata: { ...metadata, annotations } })
  }
  return rest(next) === rest(before)
}
