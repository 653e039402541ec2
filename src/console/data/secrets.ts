// Values of secrets. They are read when somebody asks for one, and only that one is shown. None is kept.

import { ApiError } from '../../api/errors.ts'
import type { Kind } from '../../api/kind.ts'
import type { JsonObject, Ref, Resource } from '../../api/object.ts'
import { pathOf } from '../../api/paths.ts'
import { maxChangedKeys } from '../../kinds/secret-version.ts'
import { readMasked } from './object.ts'
import { getJson, server } from './server.ts'

/** How the server shows a value that was not asked for. */
export const keyNames = ({ spec }: Resource): readonly string[] =>
  Object.keys((spec?.['data'] ?? {}) as JsonObject).toSorted()

/** A recorded read. undefined: the key is gone. */
export async function readValue(kind: Kind, ref: Ref, key: string, version?: number): Promise<SecretValue | undefined> {
  const { object } =
    version === undefined
      ? await server.get(kind, ref)
      : await server.get(kind, ref, { subresource: `history/${version}` })
  const data = (object.spec?.['data'] ?? {}) as { readonly [key: string]: string }
  return Object.hasOwn(data, key) ? decode(data[key] ?? '') : undefined
}

/** A byte order mark is part of the value. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** A field of a page changes all line ends, so it would damage a value with carriage returns. */
export const isEditable = ({ isText, shown }: SecretValue): boolean => isText && !shown.includes('\r')

/** `isText`: otherwise `shown` is base64. */
export type SecretValue = { readonly shown: string; readonly isText: boolean }

function decode(base64: string): SecretValue {
  try {
    return { shown: utf8.decode(Uint8Array.fromBase64(base64)), isText: true }
  } catch {
    return { shown: base64, isText: false }
  }
}

const encode = (value: string): string => new TextEncoder().encode(value).toBase64()
export const sizeOf = (value: string): number => new TextEncoder().encode(value).length

export type Version = {
  readonly number: number
  readonly author?: string
  readonly key?: string
  readonly time?: string
  readonly restored?: number
  readonly changed?: readonly string[]
  readonly current?: boolean
}

export async function readHistory(kind: Kind, ref: Ref): Promise<readonly Version[]> {
  const { object } = await server.get(kind, ref, { subresource: 'history' })
  return (object.status?.['versions'] ?? []) as unknown as readonly Version[]
}

export async function readLastRead(kind: Kind, ref: Ref): Promise<string | undefined> {
  const { status } = await getJson<Resource>(pathOf(kind, { ...ref, subresource: 'lastread' }))
  return status?.['lastRead'] as string | undefined
}

export const versionOf = ({ status }: Resource): number =>
  ((status?.['version'] ?? {}) as { readonly number?: number }).number ?? 0

/** New values by key; null removes the key. */
export type DataChange = { readonly [key: string]: string | null }

export type DataSaved =
  | { readonly result: 'saved' }
  /** Somebody changed the same keys since the edit began, or may have: the history no longer has all changes. */
  | {
      readonly result: 'conflict'
      readonly keys: readonly string[]
      readonly theirs: Resource
      readonly isKnown: boolean
    }

const maxAttempts = 5

/** Writes the changed keys only. Changes of others to other keys are kept. */
export async function saveData(kind: Kind, ref: Ref, base: Resource, change: DataChange): Promise<DataSaved> {
  const data = Object.fromEntries(
    Object.entries(change).map(([key, value]) => [key, value === null ? null : encode(value)]),
  )
  let { resourceVersion } = base.metadata
  for (let attempt = 0; ; attempt++) {
    try {
      const body = { metadata: { resourceVersion: resourceVersion ?? '', ...uidOf(base) }, spec: { data } }
      await server.patch(kind, ref, { type: 'merge', body }, { fieldManager: 'console' })
      return { result: 'saved' }
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 409 || attempt >= maxAttempts) throw error
      const { object: theirs } = await readMasked(kind, ref)
      if (theirs.metadata.uid !== base.metadata.uid) throw error
      const touched = changedBetween(base, theirs, await readHistory(kind, ref))
      const keys = Object.keys(change).filter(key => !touched || touched.has(key))
      if (keys.length) return { result: 'conflict', keys, theirs, isKnown: touched !== undefined }
      resourceVersion = theirs.metadata.resourceVersion
    }
  }
}

/** The server refuses a patch with another uid, so it never reaches a secret that was created again. */
const uidOf = ({ metadata: { uid } }: Resource) => (uid ? { uid } : {})

/** Keys that differ between two versions; undefined: the history does not tell. */
function changedBetween(base: Resource, theirs: Resource, history: readonly Version[]): Set<string> | undefined {
  const since = history.filter(({ number }) => number > versionOf(base))
  const isComplete =
    since.filter(({ number }) => number <= versionOf(theirs)).length === versionOf(theirs) - versionOf(base)
  const isCut = since.some(({ changed = [] }) => changed.length >= maxChangedKeys)
  return isComplete && !isCut ? new Set(since.flatMap(({ changed = [] }) => changed)) : undefined
}

/** Restores the data of an earlier version as a new version. */
export async function rollBack(kind: Kind, ref: Ref, base: Resource, version: number): Promise<void> {
  const { object } = await server.get(kind, ref, { subresource: `history/${version}` })
  const wanted = (object.spec?.['data'] ?? {}) as { readonly [key: string]: string }
  const gone = keyNames(base).filter(key => !Object.hasOwn(wanted, key))
  const data = { ...wanted, ...Object.fromEntries(gone.map(key => [key, null])) }
  const body = { metadata: { resourceVersion: base.metadata.resourceVersion ?? '', ...uidOf(base) }, spec: { data } }
  await server.patch(kind, ref, { type: 'merge', body }, { fieldManager: 'console' })
}
