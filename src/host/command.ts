// Defines a command as a record of words, flags and examples, from which help, parsing and hints follow.

import type { Files, Keychain, Start } from './machine.ts'

/** A command's access to the machine. Tests pass a fake. */
export type Io = {
  /** Writes data to standard output. */
  readonly out: (data: string | Uint8Array) => void
  /** Writes messages to standard error. */
  readonly err: (text: string) => void
  /** `-` is standard input. The error names the file. */
  readonly readFile: (path: string) => Promise<Uint8Array>
  /** Sorted names; directories end in `/`. */
  readonly listDirectory: (path: string) => Promise<readonly string[]>
  readonly env: { readonly [name: string]: string | undefined }
  readonly now: () => number
  /** Whether standard output is a terminal. */
  readonly isTerminal: boolean
  /** Whether output for people may use colours. */
  readonly hasColour: boolean
  /** Prompts at the terminal; absent without one. A `hidden` prompt does not echo. */
  readonly ask?: (question: string, how?: 'hidden') => Promise<string>
  readonly random: (bytes: number) => Uint8Array
  readonly files: Files
  /** The keychain of the desktop; undefined if there is none. */
  readonly keychain: () => Promise<Keychain | undefined>
  readonly start: Start
  /** From now on, failed output does not end the program. */
  readonly runToEnd: () => void
  /** The command line that starts this program, for configuration files of other programs. */
  readonly program: readonly string[]
}

type Described = { readonly what: string; readonly short?: string }
export type Flag =
  | (Described & { readonly type: 'switch' })
  | (Described & {
      readonly type: 'text' | 'list'
      /** Placeholder in the help, such as FILE or NAME. */
      readonly value: string
      readonly required?: boolean
      /** All allowed values. */
      readonly choices?: readonly string[]
      readonly default?: string
      /** Accepts an empty value. By default it is an error, because it usually comes from an unset script variable. */
      readonly mayBeEmpty?: boolean
      /** Returns the problems of a value. */
      readonly check?: (value: string) => readonly string[]
      /** Environment variable that is used if the flag is not set. */
      readonly variable?: string
    })
export type Flags = { readonly [name: string]: Flag }

type ValueOf<F extends Flag> = F extends { readonly type: 'switch' }
  ? boolean
  : F extends { readonly type: 'list' }
    ? readonly string[]
    : F extends { readonly required: true } | { readonly default: string }
      ? string
      : string | undefined

export type Positional = {
  readonly name: string
  readonly what: string
  readonly optional?: boolean
  /** The last one may be repeated. */
  readonly many?: boolean
}

export type Given<F extends Flags = Flags> = {
  readonly flags: { readonly [K in keyof F]: ValueOf<F[K]> }
  /** The positional arguments, checked against `positionals`. */
  readonly words: readonly string[]
  /** All arguments after the command's own words, unparsed. */
  readonly args: readonly string[]
}

/** `what` is absent if it would repeat the summary of the command. */
export type Example = { readonly command: string; readonly what?: string }

export type Command<F extends Flags = Flags> = {
  readonly words: readonly string[]
  readonly what: string
  /** Shown first in the help. */
  readonly examples: readonly Example[]
  readonly flags: F
  readonly positionals?: readonly Positional[]
  /** Suggests another command for a wrong number of arguments. */
  readonly instead?: (words: readonly string[]) => string | undefined
  /** The command parses `args` itself; `flags` is only for the help. */
  readonly ownFlags?: boolean
  /** The action that needs confirmation, such as 'deletes anything'. The command then has --yes and calls `confirm`. See docs/CLI.md. */
  readonly asksBefore?: string
  /** Makes several changes and reports each, so it finishes even if its output cannot be written. Other commands end at once. */
  readonly runsToEnd?: boolean
  /** Not listed in help and docs. */
  readonly hidden?: boolean
  /** Returns the exit code. */
  readonly run: (given: Given<F>, io: Io) => Promise<number>
}

/** A command, or a lazy import of it, so that the program loads only the command it runs. */
export type Row = (Command | { readonly words: readonly string[]; readonly load: () => Promise<Command> }) & {
  /** Heading of the command in the overview. */
  readonly subject?: string
}

export const loaded = async (row: Row): Promise<Command> => ('load' in row ? row.load() : row)

/** Infers the types of the flags for `run`, then erases them for the command table. */
export const defineCommand = <const F extends Flags>(command: Command<F>): Command => command as unknown as Command

/** Failures of several operations. The program prints all of them; the first decides the exit code. */
export class SeveralErrors extends Error {
  readonly errors: readonly unknown[]
  constructor(errors: readonly unknown[]) {
    super(errors.map(error => (error instanceof Error ? error.message : String(error))).join('\n'))
    this.name = 'SeveralErrors'
    this.errors = errors
  }
}

/** Like Promise.all, but throws all errors instead of the first. */
export async function allOf<T extends readonly unknown[] | []>(
  tried: T,
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  const settled = await Promise.allSettled(tried)
  const failures = settled.flatMap(one => (one.status === 'rejected' ? [one.reason as unknown] : []))
  if (!failures.length) return Promise.all(tried)
  if (failures.length === 1) throw failures[0]
  const isUsage = failures.every(one => one instanceof UsageError)
  throw isUsage ? new UsageError(failures.flatMap(({ problems }) => problems)) : new SeveralErrors(failures)
}

/** A program could not be started. The exit code is that of a shell. */
export class StartError extends Error {
  readonly exitCode: 126 | 127
  constructor(message: string, exitCode: 126 | 127) {
    super(message)
    this.name = 'StartError'
    this.exitCode = exitCode
  }
}

/** `code` of the error for an unwritable file. The error's `file` is the path. */
export const unwritableCode = 'FileNotWritable'

/** All problems with the arguments or input files (exit code 2). Each line says where and how to fix it. */
export class UsageError extends Error {
  readonly problems: readonly string[]
  constructor(problems: readonly string[]) {
    super(problems.join('\n'))
    this.name = 'UsageError'
    this.problems = problems
  }
}
