// Differences between objects: the user's change as a merge patch, and whether two changes touch the same fields.

import { isObject, type Json, type JsonObject } from '../../api/object.ts'

/** A JSON merge patch from one value to another; undefined: they are equal. */
export function mergePatch(from: Json, to: Json): Json | undefined {
  if (!isObject(from) || !isObject(to)) return isEqual(from, to) ? undefined : to
  const patch: [key: string, value: Json][] = []
  for (const key of new Set([...Object.keys(from), ...Object.keys(to)])) {
    const [before, after] = [own(from, key), own(to, key)]
    if (after === undefined) patch.push([key, null])
    else if (before === undefined) patch.push([key, after])
    else {
      const inner = mergePatch(before, after)
      if (inner !== undefined) patch.push([key, inner])
    }
  }
  return patch.length ? Object.fromEntries(patch) : undefined
}

/** Keys such as `constructor` are names like others. */
const own = (object: JsonObject, key: string): Json | undefined =>
  Object.hasOwn(object, key) ? object[key] : undefined

export function isEqual(one: Json | undefined, other: Json | undefined): boolean {
  if (one === other) return true
  if (Array.isArray(one) && Array.isArray(other))
    return one.length === other.length && one.every((item, index) => isEqual(item, other[index]))
  if (!isObject(one) || !isObject(other)) return false
  const keys = Object.keys(one)
  return keys.length === Object.keys(other).length && keys.every(key => isEqual(one[key], own(other, key)))
}

/** The keys from the root to a field. A label such as `a.b/c` is one key. */
export type Path = readonly string[]

export const pathText = (path: Path): string =>
  path.map((key, index) => (/^[\w-]+$/.test(key) ? (index ? `.${key}` : key) : `["${key}"]`)).join('')

/** Paths that differ. A list is one value. */
export function changedPaths(from: Json | undefined, to: Json | undefined, path: Path = []): Path[] {
  if (isObject(from) && isObject(to))
    return [...new Set([...Object.keys(from), ...Object.keys(to)])].flatMap(key =>
      changedPaths(own(from, key), own(to, key), [...path, key]),
    )
  return isEqual(from, to) ? [] : [path]
}

/** Paths that both changed, differently. One path contains the other if it is a prefix of it. */
export function conflicts(base: JsonObject, mine: JsonObject, theirs: JsonObject): Path[] {
  const theirPaths = changedPaths(base, theirs)
  const touches = (one: Path, other: Path) => one.every((key, index) => index >= other.length || other[index] === key)
  return changedPaths(base, mine).filter(
    path => theirPaths.some(other => touches(path, other)) && !isEqual(valueAt(mine, path), valueAt(theirs, path)),
  )
}

export const valueAt = (value: Json, path: Path): Json | undefined =>
  path.reduce<Json | undefined>((inner, key) => (isObject(inner) ? own(inner, key) : undefined), value)

/** Fields that the server sets. They are neither shown in the editor nor sent. */
const ownedByServer = [
  'uid',
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'managedFields',
  'selfLink',
] as const

export function editable(object: JsonObject): JsonObject {
  const { status: _, apiVersion, kind, metadata, spec, ...rest } = object
  const shown = Object.entries(isObject(metadata) ? metadata : {}).filter(
    ([key]) => !(ownedByServer as readonly string[]).includes(key),
  )
  return {
    apiVersion: apiVersion ?? '',
    kind: kind ?? '',
    metadata: Object.fromEntries(shown),
    ...(spec === undefined ? {} : { spec: isObject(spec) ? withoutOmitted(spec) : spec }),
    ...rest,
  }
}

/** The data of a secret that was read without values. It is edited key by key, not as YAML. */
function withoutOmitted(spec: JsonObject): JsonObject {
  const { data, ...rest } = spec
  const isOmitted = isObject(data) && Object.values(data).every(value => value === '(omitted)')
  return isOmitted ? rest : spec
}
