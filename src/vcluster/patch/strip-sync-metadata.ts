// Removes the syncer's labels and annotations from an object, so that diffs show only the patches.

import { isObject, type Json, type JsonObject } from '../../api/object.ts'
import { METADATA_PREFIX } from '../sync/names.ts'

export function stripSyncMetadata(object: JsonObject): JsonObject {
  const metadata = isObject(object['metadata']) ? object['metadata'] : {}
  const own = (map: Json | undefined) =>
    Object.fromEntries(Object.entries(isObject(map) ? map : {}).filter(([key]) => !key.startsWith(METADATA_PREFIX)))
  const { labels, annotations, uid: _, resourceVersion: __, creationTimestamp: ___, ...rest } = metadata
  const maps = { labels: own(labels), annotations: own(annotations) }
  const kept = Object.fromEntries(Object.entries(maps).filter(([, map]) => Object.keys(map).length))
  return { ...object, metadata: { ...rest, ...kept } }
}
