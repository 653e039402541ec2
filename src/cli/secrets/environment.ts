// What a child gets: secrets as environment variables, by name or as mapped. run.ts builds it and builds it anew when something changes.

import { UsageError } from '../../host/command.ts'
import { shortened } from '../../host/sanitize.ts'
import type { Session } from '../session.ts'
import { dataOf, findSecret, secretKind, secretValue, staleness, type Where } from './secret.ts'
import { changesStart } from './startup-variables.ts'

/** Which object a value came from, to follow it. */
export type Source = { readonly namespace: string; readonly name: string }
export type Values = {
  readonly values: ReadonlyMap<string, Buffer>
  readonly sources: readonly Source[]
  /** What is to be known of some of them. */
  readonly notes: readonly string[]
}

/** NAME, NAME.KEY or NAME.KEY=ENV. Throws UsageError with everything that is wrong. */
export async function readValues(session: Session, asked: readonly string[], where: Where): Promise<Values> {
  const values = new Map<string, Buffer>()
  const from = new Map<string, string>()
  const sources: Source[] = []
  const notes = new Set<string>()
  const problems: string[] = []
  const put = (variable: string, value: Buffer, word: string, isMapped = false) => {
    if (!isMapped && changesStart(variable))
      problems.push(
        `${word}: ${variable} changes how programs start, so whoever writes the secret could run code here; if that is meant, map it by name: --secret ${word}=${variable}`,
      )
    const other = from.get(variable)
    if (other !== undefined && !values.get(variable)?.equals(value))
      problems.push(`${variable} comes from ${other} and from ${word}: map one of them, such as --secret ${word}=OTHER`)
    from.set(variable, word)
    values.set(variable, value)
  }
  const wrong = asked.filter(one => one.includes('=') && !/^[^=]*=[A-Za-z_][A-Za-z0-9_]*$/.test(one))
  if (wrong.length)
    throw new UsageError(
      wrong.map(
        one =>
          `--secret ${shortened(one)}: behind = stands the name of a variable: letters, digits and _, no digit first, such as PGPASSWORD`,
      ),
    )
  for (const one of asked) {
    const at = one.indexOf('=')
    const [word, variable] = at === -1 ? [one, undefined] : [one.slice(0, at), one.slice(at + 1)]
    const { object, key } = await findSecret(session, word, where)
    const { namespace = '', name = '' } = object.metadata
    if (!sources.some(source => source.name === name && source.namespace === namespace))
      sources.push({ namespace, name })
    const stale = staleness(object)
    if (stale) notes.add(stale)
    if (key !== undefined)
      put(variable ?? key, secretValue(object, key, secretKind(where)), word, variable !== undefined)
    else if (variable !== undefined)
      problems.push(`--secret ${one}: one variable takes one key: --secret ${word}.KEY=${variable}`)
    else for (const [each, value] of dataOf(object)) put(each, value, `${word}.${each}`)
  }
  if (problems.length) throw new UsageError(problems)
  return { values, sources, notes: [...notes] }
}

/** The operating system ends a variable at its first NUL: a value with one would be cut without a word. */
export function variablesOf(values: ReadonlyMap<string, Buffer>): { [name: string]: string } {
  const problems: string[] = []
  const env: { [name: string]: string } = Object.create(null)
  for (const [name, value] of values) {
    if (value.includes(0))
      problems.push(
        `${name} holds a NUL byte, which no environment variable can; --file ${name}=PATH gives it as a file`,
      )
    else env[name] = value.toString()
  }
  if (problems.length) throw new UsageError(problems)
  return env
}
