// Parses the arguments of a command against its flags and reports all errors at once.

import { parseArgs } from 'node:util'
import { didYouMean, didYouMeanOneOf } from '../api/did-you-mean.ts'
import { type Command, type Flag, type Flags, type Given, UsageError } from './command.ts'
import { quoted, shortened } from './sanitize.ts'

type Env = { readonly [name: string]: string | undefined }
type Read = Map<string, string[]>

/** Throws UsageError. */
export function readFlags(
  { words: name, flags, positionals = [], instead }: Command,
  args: readonly string[],
  env: Env,
): Given {
  const problems: string[] = []
  const { read, words, own, strays } = readTokens(args, flags, problems)
  const values = Object.fromEntries(
    Object.entries(flags).map(([flag, row]) => [flag, readValue(flag, row, read.get(flag), env, problems)]),
  )
  const needed = positionals.filter(({ optional }) => !optional)
  for (const missing of needed.slice(words.length)) problems.push(`${missing.name} is missing: ${missing.what}`)
  // An empty argument before -- usually comes from an unset script variable.
  for (const [at, word] of words.slice(0, own).entries()) {
    const { name = 'an argument' } = positionals[Math.min(at, positionals.length - 1)] ?? {}
    if (word === '') problems.push(`${name} is empty`)
  }
  const limit = positionals.at(-1)?.many ? words.length : positionals.length
  const isFitting = words.length - strays <= limit && words.length >= needed.length
  const meant = isFitting || !words.length ? undefined : instead?.(words)
  if (meant !== undefined) throw new UsageError([meant])
  if (!isFitting) problems.push(...tooMany(words.slice(limit)))
  const takesProgram = positionals.some(one => one.name.startsWith('-- '))
  if (problems.length && takesProgram && words.length && !args.includes('--'))
    problems.push('put the program and its arguments after --')
  if (problems.length) throw new UsageError([...problems, `see platform ${name.join(' ')} --help`])
  return { flags: values as Given['flags'], words, args }
}

/** Does not repeat long arguments or KEY=VALUE, which may be a secret with missing quotes. */
const tooMany = (words: readonly string[]) => words.map(word => `unexpected argument ${shown(word)}`)

const shown = (word: string) => (word.length > 32 || word.includes('=') ? `of ${word.length} characters` : `"${word}"`)

/** Returns the values of each flag and the positional words. `own` words are before `--`; `strays` follow an unknown flag and may be its value. */
export function readTokens(
  args: readonly string[],
  flags: Flags,
  problems: string[],
): { read: Read; words: string[]; own: number; strays: number } {
  const options = Object.fromEntries(
    Object.entries(flags).map(([name, { type, short }]) => [
      name,
      { type: type === 'switch' ? ('boolean' as const) : ('string' as const), ...(short ? { short } : {}) },
    ]),
  )
  const parsed = parseArgs({ args: [...args], options, strict: false, allowPositionals: true, tokens: true })
  const read: Read = new Map()
  const words: string[] = []
  let own: number | undefined
  let strays = 0
  for (const [at, token] of parsed.tokens.entries()) {
    if (token.kind === 'positional') words.push(token.value)
    if (token.kind === 'option-terminator') own = words.length
    if (token.kind !== 'option') continue
    const row = Object.hasOwn(flags, token.name) ? flags[token.name] : undefined
    if (!row) {
      const known = [...Object.keys(flags), 'help']
      if (token.value === undefined && parsed.tokens[at + 1]?.kind === 'positional') strays++
      problems.push(`unknown flag ${shortened(token.rawName)}${didYouMean(token.name, known, one => `--${one}`)}`)
    } else if (row.type === 'switch' && token.value !== undefined && !/^(true|false)$/.test(token.value))
      problems.push(`${token.rawName}: ${quoted(token.value)} must be true or false`)
    else if (row.type !== 'switch' && token.value === undefined)
      problems.push(`${token.rawName} requires a value: ${token.rawName} ${row.value}`)
    else read.set(token.name, [...(read.get(token.name) ?? []), token.value ?? 'true'])
  }
  return { read, words, own: own ?? words.length, strays }
}

function readValue(
  name: string,
  row: Flag,
  given: readonly string[] | undefined,
  env: Env,
  problems: string[],
): unknown {
  if (row.type === 'switch') return given?.at(-1) === 'true'
  const variable = row.variable === undefined ? undefined : env[row.variable]
  const values = given ?? (variable ? [variable] : undefined)
  const from = given || row.variable === undefined ? `--${name}` : row.variable
  if (!values && row.required) problems.push(`--${name} ${row.value} is missing: ${row.what}`)
  if (row.type === 'text' && given && given.length > 1) problems.push(`--${name} is set ${given.length} times`)
  if (values?.includes('') && !row.mayBeEmpty) {
    problems.push(`${from} is empty: it requires ${row.value}`)
    return undefined
  }
  for (const value of values ?? [])
    if (row.choices && !row.choices.includes(value))
      problems.push(`${from}: ${quoted(value)} must be ${row.choices.join(', ')}${didYouMeanOneOf(value, row.choices)}`)
  for (const value of values ?? [])
    for (const problem of row.check?.(value) ?? []) problems.push(`${from}: ${quoted(value)} ${problem}`)
  return row.type === 'list' ? (values ?? []) : (values?.at(-1) ?? row.default)
}
