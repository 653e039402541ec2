// Takes secrets out of what the audit log shows: each becomes a keyed hash, so that a known value can be found and an unknown one not guessed.

import { createHmac, randomBytes } from 'node:crypto'
import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { Kind } from '../api/kind.ts'
import { emptyMap, isObject, type Json, type JsonObject } from '../api/object.ts'
import type { Schema } from '../api/schema.ts'

export type Hash = (value: string) => string

export function hashWith(salt: Uint8Array): Hash {
  return value => `hmac-sha256:${createHmac('sha256', salt).update(value).digest('hex')}`
}

/** The salt in a file: 32 bytes in hex, readable by its owner alone; made when missing if `mayMake`. */
export function saltIn(file: string, mayMake: boolean): Buffer {
  if (mayMake) makeSalt(file)
  const salt = Buffer.from(readFileSync(file, 'utf8').trim(), 'hex')
  if (salt.length < 32) throw new Error(`${file} is not a salt: 64 hexadecimal characters are expected`)
  return salt
}

/** Whole or not at all; where another process was quicker, its salt stays. */
function makeSalt(file: string): void {
  const temporary = `${file}.${randomBytes(4).toString('hex')}.tmp`
  try {
    readFileSync(file)
    return
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  writeFileSync(temporary, `${randomBytes(32).toString('hex')}\n`, { mode: 0o600, flush: true })
  try {
    linkSync(temporary, file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    rmSync(temporary, { force: true })
  }
}

/** Secret whatever the kind says: keys and tokens in requests and answers, and the manifest that kubectl copies into an annotation. */
const always = [
  'spec.key',
  'spec.token',
  'status.token',
  'metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]',
]

const fieldPath = (text: string) =>
  [...text.matchAll(/\["([^"]+)"\]|([^.[\]]+)/g)].map(match => (match[1] ?? match[2]) as string)

/** Where secrets are in an object. `isClosed`: a field that is not named here is a mistyped one, and may be a secret. */
export type Protection = {
  readonly isSecret: boolean
  readonly isClosed: boolean
  readonly fields: ReadonlyMap<string, Protection>
  readonly each: Protection | undefined
}

type Protected = Pick<Kind, 'hidden' | 'writeOnly' | 'sealed' | 'fields'>
const known = new WeakMap<Protected, Protection>()

/** Of a kind with protected fields, what its schema does not know is hashed as well: `spec.stringData` holds secrets, too. */
export function protectionOf(kind: Protected): Protection {
  const there = known.get(kind)
  if (there) return there
  const paths = [...kind.hidden, ...kind.writeOnly, ...kind.sealed]
  const envelope: { [name: string]: Schema } = { apiVersion: {}, kind: {}, metadata: {}, ...kind.fields }
  const made = protect([...always, ...paths].map(fieldPath), paths.length ? { properties: envelope } : undefined)
  known.set(kind, made)
  return made
}

export const protectionOfPaths = (paths: readonly string[]): Protection => protect(paths.map(fieldPath), undefined)
/** For bodies that are no object of a kind. */
export const openProtection = protectionOfPaths(always)

function protect(paths: readonly (readonly string[])[], schema: Schema | undefined): Protection {
  const properties = schema?.['x-kubernetes-preserve-unknown-fields'] ? undefined : schema?.properties
  const names = new Set([...paths.flatMap(path => path[0] ?? []), ...Object.keys(properties ?? {})])
  const below = (name: string) => paths.filter(path => path[0] === name).map(path => path.slice(1))
  return {
    isSecret: paths.some(path => path.length === 0),
    isClosed: properties !== undefined,
    fields: new Map([...names].map(name => [name, protect(below(name), properties?.[name])])),
    each: schema?.items ? protect(paths, schema.items) : undefined,
  }
}

/** A copy in which every value that is, or may be, secret is its hash. */
export function redact(value: Json, protection: Protection | undefined, hash: Hash): Json {
  if (protection?.isSecret) return hashed(value, hash)
  if (Array.isArray(value)) return value.map((one: Json) => redact(one, protection?.each ?? protection, hash))
  if (isObject(value)) {
    const copy = emptyMap()
    for (const key of Object.keys(value)) {
      const field = protection?.fields.get(key)
      const one = value[key] as Json
      copy[key] = !field && protection?.isClosed ? hashed(one, hash) : redact(one, field, hash)
    }
    return copy
  }
  // Text where fields were expected is a mistake, and may be the secret itself.
  if (typeof value === 'string') return protection?.fields.size ? hash(value) : scrub(value, hash)
  return value
}

function hashed(value: Json, hash: Hash): Json {
  if (value === null) return null
  if (Array.isArray(value)) return value.map((one: Json) => hashed(one, hash))
  if (!isObject(value)) return hash(String(value))
  const copy = emptyMap()
  for (const key of Object.keys(value)) copy[key] = hashed(value[key] as Json, hash)
  return copy
}

/** The operations of a JSON Patch: each value is judged by where its pointer leads. */
export function redactPatch(patch: Json, protection: Protection, hash: Hash): Json {
  if (!Array.isArray(patch)) return redact(patch, protection, hash)
  return patch.map((operation: Json) => {
    if (!isObject(operation)) return hashed(operation, hash)
    const copy = emptyMap()
    for (const key of Object.keys(operation)) {
      const one = operation[key] as Json
      copy[key] = ['op', 'path', 'from'].includes(key)
        ? redact(one, undefined, hash)
        : redactAt(operation, one, protection, hash)
    }
    return copy
  })
}

function redactAt({ path }: JsonObject, value: Json, protection: Protection, hash: Hash): Json {
  if (typeof path !== 'string') return hashed(value, hash)
  let at: Protection | undefined = protection
  for (const part of path.split('/').slice(1)) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~')
    if (!at || at.isSecret) break
    const next: Protection | undefined = at.each ?? at.fields.get(key)
    if (!next && at.isClosed) return hashed(value, hash)
    // Paths lead through lists without naming their places.
    if (next || !/^(\d+|-)$/.test(key)) at = next
  }
  return redact(value, at, hash)
}

// Keys have a prefix and tokens a shape to be known by, wherever they stray. Neither pattern looks at a character more than twice.
const strays = /plat_[0-9A-Za-z]{40,}|(?<![\w-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}/g

/** Text that should hold no secret, without the keys and tokens that it holds all the same. */
export function scrub(text: string, hash: Hash): string {
  return text.includes('plat_') || text.includes('eyJ') ? text.replace(strays, hash) : text
}
