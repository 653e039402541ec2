// SecretVersion: an internal kind with the data of a secret before a change, encrypted (D2, D35).
// Stored in the same commit as the change, and deleted with its secret.

import type { Companion } from '../api/admission.ts'
import type { Caller } from '../api/caller.ts'
import { defineKind, type Kind, type Subresource } from '../api/kind.ts'
import { type JsonObject, type Ref, type Resource, timestamp } from '../api/object.ts'
import { integer, list, type Static, struct, text, time } from '../api/schema.ts'
import { sourceOf } from './project-secret-source.ts'
import { data } from './secret-data.ts'

/** The maximum number of changed keys in a version. It describes the change and is not a copy. */
export const maxChangedKeys = 1000

export const version = struct('Version of the data and its author.', {
  number: integer('Starts at 1 and increases with every change of the data.'),
  author: text('User who wrote it.'),
  key: text('Name of the access key that the author used.'),
  time: time('Time of the change.'),
  restored: integer('The earlier version whose data this version restored. Absent if the data is new.'),
  changed: list(text(''), `Keys that differ from the previous version, at most ${maxChangedKeys}.`, {
    maxItems: maxChangedKeys,
  }),
})
export type Version = Static<typeof version>

/** The handler is in src/admission/secret-history.ts. */
export const history: Subresource = { verb: 'get', kind: 'SecretHistory', hasParts: true }

export const SecretVersion: Kind = defineKind({
  kind: 'SecretVersion',
  plural: 'secretversions',
  singular: 'secretversion',
  namespaced: true,
  description: 'SecretVersion is an earlier version of the data of a SharedSecret or ProjectSecret.',
  spec: struct('The version.', {
    secret: struct('The secret of this version.', {
      kind: text('Kind of the secret.'),
      name: text('Name of the secret.'),
    }),
    version,
    data,
  }),
  sealed: ['spec.data'],
  verbs: ['delete', 'get', 'list', 'watch'],
  served: false,
  sample: {
    apiVersion: 'management.platform.sh/v1',
    kind: 'SecretVersion',
    metadata: { name: '8f14e45f-ceea-467f-a8b5-5c2b9f0a6d1e.1', namespace: 'default' },
    spec: { version: { number: 1 }, data: { password: 'aHVudGVyMg==' } },
  },
})

/** Label with the uid of the secret, used to find its versions. */
export const versionLabel = 'platform.sh/secret'

type Data = { readonly [key: string]: string }
type Spec = {
  readonly data?: Data | undefined
  readonly sharedSecretRef?: { readonly name?: string | undefined } | undefined
}
export type Secret = Resource<Spec, { readonly version?: Version | undefined; readonly lastRead?: string | undefined }>

export const versionRef = ({ metadata }: Resource<unknown, unknown>, wanted: number | string): Ref => ({
  namespace: metadata.namespace ?? '',
  name: `${metadata.uid}.${wanted}`,
})

/** The version of an object. An object from before versions existed has version 1. */
export function versionOf({ metadata, spec, status }: Secret): Version & { readonly number: number } {
  const { number = 1, ...known } = status?.version ?? {
    time: metadata.creationTimestamp,
    changed: changedKeys(undefined, spec?.data),
  }
  return { number, ...known }
}

/**
 * The server sets status.version and ignores the client's value. A copy of another secret has no versions of its own.
 */
export function countVersion<T extends Secret>(next: T, old: T | undefined, author: Author): T {
  const { version: _, lastRead: __, ...status } = next.status ?? {}
  const counted = sourceOf(next) ? lastOwn(old) : versionAfter(next, old, author)
  const whole = { ...status, ...(counted ? { version: counted } : {}) }
  if (Object.keys(whole).length) return { ...next, status: whole }
  const { status: ___, ...bare } = next
  return bare as T
}

/** A secret that follows another keeps its last own number, from which its next own version continues. */
function lastOwn(old: Secret | undefined): Version | undefined {
  if (!old || sourceOf(old) || old.status?.version) return old?.status?.version
  return Object.keys(old.spec?.data ?? {}).length ? versionOf(old) : undefined
}

type Author = {
  readonly caller: Caller
  readonly now: number
  /** The earlier version with the same data. */
  readonly restored?: number | undefined
}

function versionAfter(next: Secret, old: Secret | undefined, { caller, now, restored }: Author): Version | undefined {
  const changed = changedKeys(old?.spec?.data, next.spec?.data)
  if (old && !sourceOf(old) && changed.length === 0) return old.status?.version
  return {
    number: old ? (sourceOf(old) && !old.status?.version ? 1 : versionOf(old).number + 1) : 1,
    author: caller.username,
    ...(caller.key === undefined ? {} : { key: caller.key }),
    time: timestamp(now),
    ...(restored === undefined ? {} : { restored }),
    changed: changed.slice(0, maxChangedKeys),
  }
}

/** The version to store for a change of data. A secret that starts to follow another keeps its own last data. */
export function previousVersion(kind: Kind, old: Secret, next: Secret | undefined): readonly Companion[] {
  if (!next || sourceOf(old)) return []
  const isKept = sourceOf(next)
    ? Object.keys(old.spec?.data ?? {}).length > 0
    : changedKeys(old.spec?.data, next.spec?.data).length > 0
  if (!isKept) return []
  const { name = '', uid = '' } = old.metadata
  const was = versionOf(old)
  const metadata = {
    ...versionRef(old, was.number),
    labels: { [versionLabel]: uid },
    ownerReferences: [{ apiVersion: kind.apiVersion, kind: kind.kind, name, uid }],
  }
  const spec = { secret: { kind: kind.kind, name }, version: was, ...(old.spec?.data ? { data: old.spec.data } : {}) }
  return [{ kind: SecretVersion, object: { metadata, spec } as unknown as JsonObject }]
}

/** Whether a change creates a version, and both versions have data of their own. */
export const hasNewData = (old: Secret, next: Secret) =>
  !sourceOf(old) && !sourceOf(next) && changedKeys(old.spec?.data, next.spec?.data).length > 0

export const isSameData = (one: Data | undefined, other: Data | undefined) => changedKeys(one, other).length === 0

function changedKeys(before: Data = {}, after: Data = {}): string[] {
  const isSame = (key: string) => Object.hasOwn(before, key) && Object.hasOwn(after, key) && before[key] === after[key]
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(key => !isSame(key)).sort()
}
