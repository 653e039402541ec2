// Resolves secrets and keys from NAME.KEY, and reads and writes their data.

import { didYouMean } from '../../api/did-you-mean.ts'
import { ApiError, notFound } from '../../api/errors.ts'
import type { Kind } from '../../api/kind.ts'
import type { Json, Ref, Resource } from '../../api/object.ts'
import { UsageError } from '../../host/command.ts'
import { quoted } from '../../host/sanitize.ts'
import { ProjectSecret } from '../../kinds/project-secret.ts'
import { SharedSecret } from '../../kinds/shared-secret.ts'
import { contextFlag, type DryRun, isDryRun, namespaceFlag, projectFlag } from '../flags.ts'
import { namespaceFor } from '../resolve-namespace.ts'
import type { Session } from '../session.ts'
import { withHint } from './missing.ts'

export const secretFlags = { ...contextFlag, ...namespaceFlag, ...projectFlag } as const
export const keyFlag = {
  key: { type: 'text', value: 'KEY', what: 'The key. NAME is then the full name, including dots.' },
} as const

/** For hints: does not repeat a word that cannot be a name, because it may be a misplaced secret. */
export const nameOrNot = (word: string) => (/^[a-z0-9][a-z0-9.-]{0,31}$/.test(word) ? word : 'NAME')

export type Where = { readonly project?: string | undefined; readonly namespace?: string | undefined }

export const secretKind = ({ project }: Where): Kind => (project === undefined ? SharedSecret : ProjectSecret)

export function secretRef(session: Session, name: string, where: Where) {
  return { namespace: namespaceFor(secretKind(where), where, session.namespace), name }
}

export type Found = { readonly object: Resource; readonly key: string | undefined }

type Wanted = { readonly name: string; readonly version?: number; readonly key?: string }

/** Parses NAME[@VERSION][.KEY] and NAME.KEY@VERSION. Secret names and keys never contain @. Throws UsageError. */
export function parseSecret(word: string): Wanted {
  if (!word.includes('@')) return { name: word }
  const [, name = '', version, key] = /^([^@]+)@([1-9]\d{0,8})(?:\.([^@]+))?$/.exec(word) ?? []
  if (name) return { name, version: Number(version), ...(key === undefined ? {} : { key }) }
  const shown = nameOrNot(word.split('@')[0] || 'db')
  throw new UsageError([`${quoted(word)} must be NAME[@VERSION][.KEY], such as ${shown}@3 or ${shown}@3.password`])
}

type How = { readonly key?: string | undefined; readonly version?: number | undefined }

/** For a.b.c the longest existing name wins: a.b.c, then key c of a.b, then key b.c of a. */
export async function findSecret(session: Session, word: string, where: Where, how: How = {}): Promise<Found> {
  const { key, version } = how
  const options = version === undefined ? {} : { subresource: `history/${version}` }
  if (word === '') throw new UsageError(['NAME is empty'])
  const kind = secretKind(where)
  const steps = word.split('.')
  const most = key === undefined ? steps.length : 1
  let denied: ApiError | undefined
  for (let left = 0; left < most; left++) {
    const name = steps.slice(0, steps.length - left).join('.')
    const rest = left === 0 ? key : steps.slice(-left).join('.')
    if (name === '' || rest === '') continue
    try {
      const { object } = await session.resources.get(kind, secretRef(session, name, where), options)
      return { object, key: rest }
    } catch (error) {
      // A key for secret "a" gets 403 for "a.b" whether it exists or not (D49). The last 403 is about the secret itself.
      if (!(error instanceof ApiError && [403, 404, 422, 400].includes(error.code))) throw error
      // Of a version, the last error is about the shortest name: the secret, or its missing version.
      if (denied === undefined || error.code === 403 || (version && denied.code !== 403)) denied = error
    }
  }
  if (denied?.code !== 404 || version) throw denied
  const { namespace } = secretRef(session, word, where)
  throw await withHint(session, denied, {
    word,
    isWhole: key !== undefined,
    namespace,
    isOfProject: where.project !== undefined,
  })
}

type Conditions = { readonly conditions?: readonly { readonly [field: string]: unknown }[] }

/** Returns a warning if the secret is out of sync with its source. */
export function staleness({ metadata, status }: Resource): string | undefined {
  const { conditions = [] } = (status ?? {}) as Conditions
  const found = conditions.find(({ type }) => type === 'Synced')
  if (found?.['status'] !== 'False') return undefined
  return `${metadata.name} is out of sync with its source: ${String(found['message'] ?? found['reason'])}`
}

/** Decoded values. A Map, so that no key resolves to an inherited property. */
export function dataOf({ spec }: Resource): Map<string, Buffer> {
  const entries = Object.entries((spec?.['data'] ?? {}) as { [key: string]: string })
  return new Map(entries.map(([key, value]) => [key, Buffer.from(value, 'base64')]))
}

export function secretValue(object: Resource, key: string, kind: Kind): Buffer {
  const data = dataOf(object)
  const value = data.get(key)
  if (value) return value
  const { name = '' } = object.metadata
  const { status } = notFound(kind, name)
  const keys = [...data.keys()]
  throw new ApiError(
    404,
    'NotFound',
    `${kind.singular} "${name}" has no key ${quoted(key)}${didYouMean(key, keys) || `; known keys: ${keys.join(', ') || 'none'}`}`,
    {
      ...(status.details ? { details: status.details } : {}),
    },
  )
}

/** Returns undefined if the bytes are not UTF-8. */
export function textOf(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

/** Text unchanged; other bytes as {base64: …}. */
export const readable = (value: Uint8Array): Json => textOf(value) ?? { base64: Buffer.from(value).toString('base64') }

const keyPattern = /^[-._a-zA-Z0-9]{1,253}$/
export const maxBytes = 512 * 1024

/** Checks the server's rules (D7, D29) before sending anything. Messages never contain values. */
export function checkEntries(entries: ReadonlyMap<string, Uint8Array>): void {
  const problems = [...entries.keys()]
    .filter(key => !keyPattern.test(key))
    .map(
      key =>
        `${key.length > 64 ? 'a key (not shown, longer than 64 characters)' : `the key "${key}"`} must be 1 to 253 letters, digits, '-', '_' or '.'`,
    )
  const size = [...entries.values()].reduce((sum, value) => sum + value.length, 0)
  if (size > maxBytes) problems.push(`the secret is too large: ${size} bytes, at most ${maxBytes}`)
  if (problems.length) throw new UsageError(problems)
}

type Done = 'created' | 'changed' | 'unchanged'

/** Sets keys, removes those with null, and creates the secret if it is missing. */
export async function writeData(
  session: Session,
  name: string,
  where: Where & DryRun,
  entries: ReadonlyMap<string, Uint8Array | null>,
): Promise<Done> {
  const kind = secretKind(where)
  const ref = secretRef(session, name, where)
  const data = Object.fromEntries(
    [...entries].map(([key, value]) => [key, value && Buffer.from(value).toString('base64')]),
  )
  const options = { fieldManager: 'platform', dryRun: isDryRun(where) }
  const change = async (): Promise<Done> => {
    const before = await generationOf(session, kind, ref)
    const patch = { type: 'merge', body: { spec: { data } } } as const
    const { object } = await session.resources.patch(kind, ref, patch, options)
    const { uid, generation } = object.metadata
    return before?.uid === uid && before?.generation === generation ? 'unchanged' : 'changed'
  }
  try {
    return await change()
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 404) throw error
  }
  try {
    await session.resources.create(kind, ref.namespace, { metadata: { name }, spec: { data } }, options)
    return 'created'
  } catch (error) {
    // Another client created it in the meantime.
    if (!(error instanceof ApiError) || error.code !== 409) throw error
    return change()
  }
}

/**
 * The generation tells whether a write changed something, also in a dry run. Reads a row, which does not count as reading the secret
 * (D35). Returns undefined if the caller may not read it: the server then reports every write as a change, so that nobody can guess a
 * value by writing it (D5).
 */
async function generationOf({ rows }: Session, kind: Kind, ref: Ref): Promise<Resource['metadata'] | undefined> {
  try {
    return (await rows.get(kind, ref)).object.metadata
  } catch (error) {
    if (error instanceof ApiError && error.code === 403) return undefined
    throw error
  }
}
