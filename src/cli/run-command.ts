// Finds the command that is meant, reads its flags, runs it, and turns whatever goes wrong into words and an exit code.

import { didYouMean } from '../api/did-you-mean.ts'
import { ApiError } from '../api/errors.ts'
import { type Command, type Io, loaded, type Row, SeveralErrors, StartError, UsageError } from '../host/command.ts'
import { readFlags } from '../host/read-flags.ts'
import { plainLines } from '../host/sanitize.ts'
import { helpOf, overviewOf } from './help.ts'

/** 0: done. 1: failed, or differs. 2: wrongly asked. The rest say what a script may want to know. */
const exitCodes: { readonly [code: number]: number } = { 401: 4, 403: 5, 404: 3, 409: 6, 429: 7, 503: 7, 504: 7 }

/** Answers the exit code; never throws. */
export async function runCommand(commands: readonly Row[], args: readonly string[], io: Io): Promise<number> {
  const { flags: early, words } = withoutEarly(commands, args)
  const asked = wordsOf(words)
  const row = rowOf(commands, asked)
  const wantsHelp = asked.slice(0, endOfFlags(asked)).some(one => one === '--help' || one === '-h')
  if (!row && early.length && !asked.length) {
    io.err(`platform: no command behind ${early[0]?.replace(/=.*/s, '')}\nplatform --help lists the commands\n`)
    return 2
  }
  if (!row) return withoutCommand(commands, asked, wantsHelp, io)
  const command = await loaded(row)
  if (wantsHelp) {
    io.out(`${helpOf(command)}\n`)
    return 0
  }
  try {
    if (early.length) checkEarly(command, early)
    checkHalf(commands, command, asked)
    const rest = [...early, ...asked.slice(command.words.length)]
    const given = command.ownFlags ? { flags: {}, words: [], args: rest } : readFlags(command, rest, io.env)
    return await command.run(given, io)
  } catch (error) {
    for (const line of linesOf(error)) io.err(`platform: ${plainLines(line)}\n`)
    return exitCodeOf(error)
  }
}

const withValue = /^(--(context|namespace|project|output|selector)|-[nol])$/

/** Flags before the command, as people type them elsewhere, go behind its words. */
function withoutEarly(rows: readonly Row[], args: readonly string[]) {
  const first = new Set(['help', ...rows.map(({ words }) => words[0])])
  let at = 0
  while (/^-./.test(args[at] ?? '') && !/^(--|-h|--help|-V|--version)$/.test(args[at] ?? '')) {
    const [flag = '', next] = args.slice(at)
    // Of a flag that is no such one, what is no command is its value.
    const hasValue = withValue.test(flag) || (next !== undefined && !next.startsWith('-') && !first.has(next))
    at += hasValue && !flag.includes('=') ? 2 : 1
  }
  return { flags: args.slice(0, at), words: args.slice(at) }
}

function checkEarly({ words, ownFlags, flags }: Command, early: readonly string[]): void {
  if (ownFlags && !Object.keys(flags).length)
    throw new UsageError([
      `${early[0]} before ${words.join(' ')}: everything behind it is ${words.join(' ')}’s; PLATFORM_CONTEXT names the context`,
    ])
}

/** A word behind a command that takes none may be half of a longer one. */
function checkHalf(rows: readonly Row[], { words, positionals, ownFlags }: Command, asked: readonly string[]): void {
  const word = asked[words.length]
  if (positionals || ownFlags || !word || word.startsWith('-')) return
  const longer = rows
    .map(row => row.words)
    .filter(one => one.length > words.length && words.every((w, at) => one[at] === w))
  const meant = didYouMean(
    word,
    longer.map(one => one[words.length] ?? ''),
    one => `platform ${words.join(' ')} ${one}`,
  )
  if (meant) throw new UsageError([`no command "${words.join(' ')} ${word}"${meant}`])
}

/** As people type it elsewhere: `help run` is `run --help`, `--version` is `version`. */
function wordsOf([first, ...rest]: readonly string[]): readonly string[] {
  if (first === 'help') return [...rest, '--help']
  if (first === '--version' || first === '-V') return ['version', ...rest]
  return first === undefined ? [] : [first, ...rest]
}

/** The one with the most words, so that `vcluster patch` is not `vcluster`. What lists many may be asked for by one: `list secret`. */
function rowOf(commands: readonly Row[], args: readonly string[]): Row | undefined {
  return commands
    .filter(({ words }) => words.every((word, at) => args[at] === word || (at > 0 && `${args[at]}s` === word)))
    .toSorted((a, b) => b.words.length - a.words.length)[0]
}

/** Behind `--` everything belongs to somebody else. */
function endOfFlags(args: readonly string[]): number {
  const at = args.indexOf('--')
  return at === -1 ? args.length : at
}

async function withoutCommand(rows: readonly Row[], args: readonly string[], help: boolean, io: Io): Promise<number> {
  const commands = await Promise.all(rows.map(loaded))
  const words = args.slice(0, args.findIndex(one => one.startsWith('-')) >>> 0)
  const isGroup = commands.some(command => words.every((word, at) => command.words[at] === word))
  if (isGroup) {
    const text = `${overviewOf(commands, words)}\n`
    if (help) io.out(text)
    else io.err(text)
    return help ? 0 : 2
  }
  const names = commands.map(command => command.words.join(' '))
  const { hintFor } = await import('./unknown-command.ts')
  const hint = await hintFor(words, names)
  // What is no word of a command may be a secret.
  const shown = words
    .slice(0, 3)
    .filter(one => /^[a-z][a-z0-9-]{0,31}$/.test(one))
    .join(' ')
  io.err(`platform: no command "${shown}"${hint}\nplatform --help lists the commands\n`)
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
