// Defines the object envelope (SPEC §2.1, §2.2), and plain JSON values.

export type Json = null | boolean | number | string | readonly Json[] | JsonObject
export type JsonObject = { readonly [key: string]: Json }
/** The same, while it is being built. Create maps with arbitrary keys with `emptyMap()`. */
export type Draft = { [key: string]: Json }

export type OwnerReference = {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
  readonly controller?: boolean
  readonly blockOwnerDeletion?: boolean
}

export type ManagedFieldsEntry = {
  readonly manager?: string
  readonly operation?: 'Apply' | 'Update'
  readonly apiVersion?: string
  readonly time?: string
  readonly fieldsType?: 'FieldsV1'
  readonly fieldsV1?: JsonObject
  readonly subresource?: string
}

export type Metadata = {
  readonly name?: string
  readonly generateName?: string
  readonly namespace?: string
  readonly uid?: string
  readonly resourceVersion?: string
  readonly generation?: number
  readonly creationTimestamp?: string
  readonly deletionTimestamp?: string
  readonly deletionGracePeriodSeconds?: number
  readonly labels?: { readonly [key: string]: string }
  readonly annotations?: { readonly [key: string]: string }
  readonly ownerReferences?: readonly OwnerReference[]
  readonly finalizers?: readonly string[]
  readonly managedFields?: readonly ManagedFieldsEntry[]
}

/** Any object of any kind. Kinds narrow `spec` and `status` from their schema. */
export type Resource<Spec = JsonObject, Status = JsonObject> = {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: Metadata
  readonly spec?: Spec
  readonly status?: Status
}

/** The namespace and name of an object. `namespace` is empty for cluster-scoped kinds. */
export type Ref = { readonly namespace: string; readonly name: string }

const listed = new WeakMap<object, readonly string[]>()
const many = 1000

/**
 * Caches the keys of a map, because listing them is most of the work for very large maps. For values that no longer
 * change.
 */
export function keysOf(map: object): readonly string[] {
  return listed.get(map) ?? rememberKeys(map, Object.keys(map))
}

/** For callers that already have the keys. */
export function rememberKeys(map: object, keys: readonly string[]): readonly string[] {
  if (keys.length > many) listed.set(map, keys)
  return keys
}

/** A map without a prototype, so that `__proto__` and similar names are ordinary keys (D4). */
export function emptyMap<T = Json>(): { [key: string]: T } {
  return Object.create(null)
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

let lastSecond = Number.NaN
let lastText = ''

/** RFC 3339 in whole seconds, like Kubernetes. Caches the newest, because every write needs it several times. */
export function timestamp(milliseconds: number): string {
  const second = Math.floor(milliseconds / 1000)
  if (second !== lastSecond) {
    lastText = `${new Date(second * 1000).toISOString().slice(0, 19)}Z`
    lastSecond = second
  }
  return lastText
}
