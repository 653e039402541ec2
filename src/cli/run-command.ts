// Finds and runs a command, and maps errors to messages and exit codes.

import { didYouMean } from '../api/did-you-mean.ts'
import { ApiError } from '../api/errors.ts'
import { type Command, type Io, loaded, type Row, SeveralErrors, StartError, UsageError } from '../host/command.ts'
import { readFlags } from '../host/read-flags.ts'
import { plainLines } from '../host/sanitize.ts'
import { helpOf, overviewOf } from './help.ts'

/** 0: success. 1: failure or difference. 2: usage error. Scripts can tell these API errors apart. */
const exitCodes: { readonly [code: number]: number } = { 401: 4, 403: 5, 404: 3, 409: 6, 429: 7, 503: 7, 504: 7 }

/** Returns the exit code; never throws. */
export async function runCommand(commands: readonly Row[], args: readonly string[], io: Io): Promise<number> {
  const { flags: leading, words } = splitLeadingFlags(commands, args)
  const given = withSecretWord(commands, normalize(words))
  const row = rowOf(commands, given)
  const wantsHelp = given.slice(0, endOfFlags(given)).some(one => one === '--help' || one === '-h')
  if (!row && leading.length && !given.length) {
    io.err(`platform: no command after ${leading[0]?.replace(/=.*/s, '')}\nplatform --help lists the commands\n`)
    return 2
  }
  if (!row) return unknownCommand(commands, given, wantsHelp, io)
  const command = await loaded(row)
  if (wantsHelp) {
    io.out(`${helpOf(command)}\n`)
    return 0
  }
  try {
    if (leading.length) checkLeadingFlags(command, leading)
    checkSubcommand(commands, command, given)
    const rest = [...leading, ...given.slice(command.words.length)]
    const parsed = command.ownFlags ? { flags: {}, words: [], args: rest } : readFlags(command, rest, io.env)
    if (command.runsToEnd) io.runToEnd()
    return await command.run(parsed, io)
  } catch (error) {
    for (const line of linesOf(error)) io.err(`platform: ${plainLines(line)}\n`)
    return exitCodeOf(error)
  }
}

const withValue = /^(--(context|namespace|project|output|selector)|-[nol])$/

/** Allows flags before the command, as kubectl does. */
function splitLeadingFlags(rows: readonly Row[], args: readonly string[]) {
  const first = new Set(['help', ...rows.map(({ words }) => words[0])])
  let at = 0
  while (/^-./.test(args[at] ?? '') && !/^(--|-h|--help|-V|--version)$/.test(args[at] ?? '')) {
    const [flag = '', next] = args.slice(at)
    // The next word is the value of an unknown flag, unless it starts a command.
    const hasValue = withValue.test(flag) || (next !== undefined && !next.startsWith('-') && !first.has(next))
    at += hasValue && !flag.includes('=') ? 2 : 1
  }
  return { flags: args.slice(0, at), words: args.slice(at) }
}

function checkLeadingFlags({ words, ownFlags, flags }: Command, leading: readonly string[]): void {
  if (ownFlags && !Object.keys(flags).length)
    throw new UsageError([
      `${leading[0]} is not allowed before ${words.join(' ')}, which passes on all its arguments; set PLATFORM_CONTEXT to choose the context`,
    ])
}

/** An extra word may be a mistyped subcommand. */
function checkSubcommand(
  rows: readonly Row[],
  { words, positionals, ownFlags }: Command,
  given: readonly string[],
): void {
  const word = given[words.length]
  if (positionals || ownFlags || !word || word.startsWith('-')) return
  const longer = rows
    .map(row => row.words)
    .filter(one => one.length > words.length && words.every((w, at) => one[at] === w))
  const meant = didYouMean(
    word,
    longer.map(one => one[words.length] ?? ''),
    one => `platform ${words.join(' ')} ${one}`,
  )
  if (meant) throw new UsageError([`unknown command "${words.join(' ')} ${word}"${meant}`])
}

/** Maps common forms: `help run` to `run --help`, `--version` to `version`. */
function normalize([first, ...rest]: readonly string[]): readonly string[] {
  if (first === 'help') return [...rest, '--help']
  if (first === '--version' || first === '-V') return ['version', ...rest]
  return first === undefined ? [] : [first, ...rest]
}

/** SharedSecrets are global secrets to their users, so `set globalsecret` is `set secret`. */
function withSecretWord(rows: readonly Row[], args: readonly string[]): readonly string[] {
  const [verb, word = '', ...rest] = args
  const [, secret] = /^global(secrets?)$/.exec(word) ?? []
  const isKnown = rows.some(({ words }) => words[0] === verb && words.length <= 2 && verb !== 'kubectl')
  return verb !== undefined && secret !== undefined && isKnown ? [verb, secret, ...rest] : args
}

/** The longest match wins: `vcluster patch` before `vcluster`. A singular matches a plural: `list secret`. */
function rowOf(commands: readonly Row[], args: readonly string[]): Row | undefined {
  return commands
    .filter(({ words }) => words.every((word, at) => args[at] === word || (at > 0 && `${args[at]}s` === word)))
    .toSorted((a, b) => b.words.length - a.words.length)[0]
}

/** Arguments after `--` belong to another program. */
function endOfFlags(args: readonly string[]): number {
  const at = args.indexOf('--')
  return at === -1 ? args.length : at
}

async function unknownCommand(rows: readonly Row[], args: readonly string[], help: boolean, io: Io): Promise<number> {
  const listed = await Promise.all(rows.map(async row => ({ command: await loaded(row), subject: row.subject })))
  const commands = listed.map(({ command }) => command)
  const words = args.slice(0, args.findIndex(one => one.startsWith('-')) >>> 0)
  const isGroup = commands.some(command => words.every((word, at) => command.words[at] === word))
  if (isGroup) {
    const text = `${overviewOf(listed, words)}\n`
    if (help) io.out(text)
    else io.err(text)
    return help ? 0 : 2
  }
  const names = commands.map(command => command.words.join(' '))
  const { hintFor } = await import('./unknown-command.ts')
  const hint = await hintFor(words, names)
  // Repeat only words that look like a command: others may be a secret.
  const shown = words
    .slice(0, 3)
    .filter(one => /^[a-z][a-z0-9-]{0,31}$/.test(one))
    .join(' ')
  io.err(`platform: unknown command "${shown}"${hint}\nplatform --help lists the commands\n`)
  return 2
}

function linesOf(error: unknown): readonly string[] {
  if (error instanceof SeveralErrors) return error.errors.flatMap(linesOf)
  if (error instanceof UsageError) return error.problems
  return [error instanceof Error ? error.message : String(error)]
}

function exitCodeOf(error: unknown): number {
  if (error instanceof SeveralErrors) return exitCodeOf(error.errors[0])
  if (error instanceof UsageError) return 2
  if (error instanceof StartError) return error.exitCode
  return error instanceof ApiError ? (exitCodes[error.code] ?? 1) : 1
}
