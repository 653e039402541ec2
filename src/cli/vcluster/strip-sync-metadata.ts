// An object without the syncer's bookkeeping, for showing what patches change. Used by `vcluster patch` and `vcluster test`.

import { isObject, type Json, type JsonObject } from '../../api/object.ts'
import { MARK } from '../../vcluster/sync/names.ts'

export function withoutMarks(object: JsonObject): JsonObject {
  const metadata = isObject(object['metadata']) ? object['metadata'] : {}
  const own = (map: Json | undefined) =>
    Object.fromEntries(Object.entries(isObject(map) ? map : {}).filter(([key]) => !key.startsWith(MARK)))
  const { labels, annotations, uid: _, resourceVersion: __, creationTimestamp: ___, ...rest } = metadata
  const maps = { labels: own(labels), annotations: own(annotations) }
  const kept = Object.fromEntries(Object.entries(maps).filter(([, map]) => Object.keys(map).length))
  return { ...object, metadata: { ...rest, ...kept } }
}
