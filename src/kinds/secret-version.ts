// SecretVersion: the data of a secret before a change (D35); internal (D2). Stored encrypted in the commit of the change, deleted with its secret.

import type { Companion } from '../api/admission.ts'
import type { Caller } from '../api/caller.ts'
import { defineKind, type Kind } from '../api/kind.ts'
import { type JsonObject, type Ref, type Resource, timestamp } from '../api/object.ts'
import { integer, list, type Static, struct, text, time } from '../api/schema.ts'
import { sourceOf } from './project-secret-source.ts'
import { data } from './secret-data.ts'

/** A version names at most this many changed keys. */
const mostNamed = 1000

export const version = struct('Which version of the data this is, and where it comes from.', {
  number: integer('Counts from 1, one up with every change of data.'),
  author: text('Who wrote it.'),
  key: text('Name of the access key they used.'),
  time: time('When.'),
  changed: list(text(''), `Keys that differ from the version before, at most ${mostNamed} of them.`),
})
export type Version = Static<typeof version>

export const SecretVersion: Kind = defineKind({
  kind: 'SecretVersion',
  plural: 'secretversions',
  singular: 'secretversion',
  namespaced: true,
  description: 'SecretVersion is an earlier version of the data of a SharedSecret or ProjectSecret.',
  spec: struct('The version.', {
    secret: struct('The secret it is of.', { kind: text('Its kind.'), name: text('Its name.') }),
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

/** Label with the uid of the secret. */
export const versionLabel = 'platform.sh/secret'

type Data = { readonly [key: string]: string }
type Spec = {
  readonly data?: Data | undefined
  readonly sharedSecretRef?: { readonly name?: string | undefined } | undefined
}
export type Secret = Resource<Spec, { readonly version?: Version | undefined; readonly lastRead?: string | undefined }>

export const versionPlace = ({ metadata }: Resource<unknown, unknown>, wanted: number | string): Ref => ({
  namespace: metadata.namespace ?? '',
  name: `${metadata.uid}.${wanted}`,
})

/** The version of an object. An object from before versions were counted is at version 1. */
export function versionOf({ metadata, spec, status }: Secret): Version & { readonly number: number } {
  const { number = 1, ...known } = status?.version ?? {
    time: metadata.creationTimestamp,
    changed: changedKeys(undefined, spec?.data),
  }
  return { number, ...known }
}

/** Sets status.version, which counts changes of data. Clients cannot set it. A copy of another secret has no versions. */
export function countVersion<T extends Secret>(next: T, old: T | undefined, author: Author): T {
  const { version: _, lastRead: __, ...status } = next.status ?? {}
  const counted = sourceOf(next) ? lastOwn(old) : versionAfter(next, old, author)
  const whole = { ...status, ...(counted ? { version: counted } : {}) }
  if (Object.keys(whole).length) return { ...next, status: whole }
  const { status: ___, ...bare } = next
  return bare as T
}

/** A secret that follows another keeps its last number. Its next own version continues from there. */
function lastOwn(old: Secret | undefined): Version | undefined {
  if (!old || sourceOf(old) || old.status?.version) return old?.status?.version
  return Object.keys(old.spec?.data ?? {}).length ? versionOf(old) : undefined
}

type Author = { readonly caller: Caller; readonly now: number }

function versionAfter(next: Secret, old: Secret | undefined, { caller, now }: Author): Version | undefined {
  const changed = changedKeys(old?.spec?.data, next.spec?.data)
  if (old && !sourceOf(old) && changed.length === 0) return old.status?.version
  return {
    number: old ? (sourceOf(old) && !old.status?.version ? 1 : versionOf(old).number + 1) : 1,
    author: caller.username,
    ...(caller.key === undefined ? {} : { key: caller.key }),
    time: timestamp(now),
    changed: changed.slice(0, mostNamed),
  }
}

/** The earlier version that a change of data stores. A secret that starts to follow another stores its own data. */
export function previousVersion(kind: Kind, old: Secret, next: Secret | undefined): readonly Companion[] {
  if (!next || sourceOf(old)) return []
  const isKept = sourceOf(next)
    ? Object.keys(old.spec?.data ?? {}).length > 0
    : changedKeys(old.spec?.data, next.spec?.data).length > 0
  if (!isKept) return []
  const { name = '', uid = '' } = old.metadata
  const was = versionOf(old)
  const metadata = {
    ...versionPlace(old, was.number),
    labels: { [versionLabel]: uid },
    ownerReferences: [{ apiVersion: kind.apiVersion, kind: kind.kind, name, uid }],
  }
  const spec = { secret: { kind: kind.kind, name }, version: was, ...(old.spec?.data ? { data: old.spec.data } : {}) }
  return [{ kind: SecretVersion, object: { metadata, spec } as unknown as JsonObject }]
}

function changedKeys(before: Data = {}, after: Data = {}): string[] {
  const isSame = (key: string) => Object.hasOwn(before, key) && Object.hasOwn(after, key) && before[key] === after[key]
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(key => !isSame(key)).sort()
}
