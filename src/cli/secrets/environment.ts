// Maps secrets to environment variables of a child process.

import { ApiError } from '../../api/errors.ts'
import { UsageError } from '../../host/command.ts'
import { shortened } from '../../host/sanitize.ts'
import type { Session } from '../session.ts'
import { dataOf, findSecret, secretKind, secretValue, staleness, type Where } from './secret.ts'
import type { SecretValues } from './secret-values.ts'
import { changesStart } from './startup-variables.ts'

/** The object that a value came from, so that it can be watched. */
export type Source = { readonly namespace: string; readonly name: string }
export type Values = SecretValues & {
  readonly sources: readonly Source[]
  /** Warnings about stale secrets. */
  readonly notes: readonly string[]
}

type Requested = {
  /** NAME, NAME.KEY or NAME.KEY=ENV. */
  readonly secrets: readonly string[]
  /** A variable of the secrets, NAME or NAME.KEY. */
  readonly files: readonly string[]
}

/** Throws UsageError with all problems. */
export async function readValues(
  session: Session,
  { secrets: requested, files: fileNames }: Requested,
  where: Where,
): Promise<Values> {
  const values = new Map<string, Buffer>()
  const from = new Map<string, string>()
  const sources: Source[] = []
  const notes = new Set<string>()
  const problems: string[] = []
  const put = (variable: string, value: Buffer, word: string, isMapped = false) => {
    if (!isMapped && changesStart(variable))
      problems.push(
        `${word}: ${variable} changes how programs start, so the author of the secret could run code here; to allow it, map it by name: --secret ${word}=${variable}`,
      )
    const other = from.get(variable)
    if (other !== undefined && !values.get(variable)?.equals(value))
      problems.push(
        `${variable} is set by both ${other} and ${word}: map one of them to another name, such as --secret ${word}=OTHER`,
      )
    from.set(variable, word)
    values.set(variable, value)
  }
  const read = async (word: string) => {
    const found = await findSecret(session, word, where)
    const { namespace = '', name = '' } = found.object.metadata
    if (!sources.some(source => source.name === name && source.namespace === namespace))
      sources.push({ namespace, name })
    const stale = staleness(found.object)
    if (stale) notes.add(stale)
    return found
  }
  const wrong = requested.filter(one => one.includes('=') && !/^[^=]*=[A-Za-z_][A-Za-z0-9_]*$/.test(one))
  if (wrong.length)
    throw new UsageError(
      wrong.map(
        one =>
          `--secret ${shortened(one)}: the part after = must be a variable name such as PGPASSWORD: letters, digits and _, not starting with a digit`,
      ),
    )
  for (const one of requested) {
    const at = one.indexOf('=')
    const [word, variable] = at === -1 ? [one, undefined] : [one.slice(0, at), one.slice(at + 1)]
    const { object, key } = await read(word)
    if (key !== undefined)
      put(variable ?? key, secretValue(object, key, secretKind(where)), word, variable !== undefined)
    else if (variable !== undefined)
      problems.push(`--secret ${one}: a variable holds one key: use --secret ${word}.KEY=${variable}`)
    else for (const [each, value] of dataOf(object)) put(each, value, `${word}.${each}`)
  }
  if (problems.length) throw new UsageError(problems)
  const files = new Map<string, Buffer | ReadonlyMap<string, Buffer>>()
  for (const name of fileNames.filter(one => !values.has(one))) {
    const { object, key } = await read(name).catch(withKnownKeys(name, [...values.keys()]))
    files.set(name, key === undefined ? dataOf(object) : secretValue(object, key, secretKind(where)))
  }
  return { values, files, sources, notes: [...notes] }
}

/** The name of a file may have been meant as a key of the requested secrets. */
const withKnownKeys = (name: string, keys: readonly string[]) => (error: unknown) => {
  if (!(error instanceof ApiError) || error.code !== 404 || !keys.length) throw error
  const { details } = error.status
  const message = `--file ${shortened(name)}: ${error.message}; keys of the requested secrets: ${keys.join(', ')}`
  throw new ApiError(404, 'NotFound', message, details ? { details } : {})
}

/** Rejects NUL bytes: the operating system would silently truncate the variable. */
export function variablesOf(values: ReadonlyMap<string, Buffer>): { [name: string]: string } {
  const problems: string[] = []
  const env: { [name: string]: string } = Object.create(null)
  for (const [name, value] of values) {
    if (value.includes(0))
      problems.push(
        `${name} contains a NUL byte, which environment variables cannot hold; pass it as a file: --file ${name}=PATH`,
      )
    else env[name] = value.toString()
  }
  if (problems.length) throw new UsageError(problems)
  return env
}
