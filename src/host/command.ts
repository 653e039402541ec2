// What a command of the command line is: a record of words, flags and examples. Help, parsing and hints follow from it.

import type { Files, Keychain, Start } from './machine.ts'

/** What a command sees of the world; bin hands it in, tests hand in another. */
export type Io = {
  /** Data, as it is: goes to standard output. */
  readonly out: (data: string | Uint8Array) => void
  /** Talk: goes to standard error. */
  readonly err: (text: string) => void
  /** `-` is standard input. Rejects with a sentence that names the file. */
  readonly readFile: (path: string) => Promise<Uint8Array>
  /** Names of what is in a directory, sorted; directories end in `/`. */
  readonly listDirectory: (path: string) => Promise<readonly string[]>
  readonly env: { readonly [name: string]: string | undefined }
  readonly now: () => number
  /** Whether a person looks at standard output. */
  readonly isTerminal: boolean
  /** Whether what a person reads may be coloured. */
  readonly hasColour: boolean
  /** Asks the person at the terminal; absent where nobody is. What is typed to a `hidden` question is not shown. */
  readonly ask?: (question: string, how?: 'hidden') => Promise<string>
  readonly random: (bytes: number) => Uint8Array
  readonly files: Files
  /** Where the machine keeps secrets; undefined where it has no such place. */
  readonly keychain: () => Promise<Keychain | undefined>
  readonly start: Start
  /** How this program is started by others: a command and its first arguments. */
  readonly program: readonly string[]
}

type Described = { readonly what: string; readonly short?: string }
export type Flag =
  | (Described & { readonly type: 'switch' })
  | (Described & {
      readonly type: 'text' | 'list'
      /** What stands for the value in the help: FILE, NAME. */
      readonly value: string
      readonly required?: boolean
      /** The only values there are. */
      readonly choices?: readonly string[]
      readonly default?: string
      /** Nothing is something to say; elsewhere it is a variable of a script that was not filled. */
      readonly mayBeEmpty?: boolean
      /** What is wrong with a value; empty: nothing. */
      readonly check?: (value: string) => readonly string[]
      /** Environment variable that counts where the flag is not given. */
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
  /** The last one may be given many times. */
  readonly many?: boolean
}

export type Given<F extends Flags = Flags> = {
  readonly flags: { readonly [K in keyof F]: ValueOf<F[K]> }
  /** As many as `positionals` names, or more where the last may be many; optional ones may be missing. */
  readonly words: readonly string[]
  /** Everything behind the command's own words, untouched. */
  readonly args: readonly string[]
}

export type Example = { readonly command: string; readonly what: string }

export type Command<F extends Flags = Flags> = {
  readonly words: readonly string[]
  readonly what: string
  /** Shown first in the help. */
  readonly examples: readonly Example[]
  readonly flags: F
  readonly positionals?: readonly Positional[]
  /** For words too many or too few that people type here: what they may have meant, such as another command. */
  readonly instead?: (words: readonly string[]) => string | undefined
  /** The command reads `args` itself: flags are for the help alone. */
  readonly ownFlags?: boolean
  /** What it takes away, such as 'deletes anything': then it has --yes and calls `confirm`. docs/CLI.md has the rule. */
  readonly asksBefore?: string
  /** For programs, not for people: in no help and no page. */
  readonly hidden?: boolean
  /** Answers the exit code. */
  readonly run: (given: Given<F>, io: Io) => Promise<number>
}

/** A row of the table: a command, or where it is once it is wanted. A program of fifty commands loads one of them. */
export type Row = Command | { readonly words: readonly string[]; readonly load: () => Promise<Command> }

export const loaded = async (row: Row): Promise<Command> => ('load' in row ? row.load() : row)

/** Keeps the flags' types while it is written, and forgets them in the table. */
export const defineCommand = <const F extends Flags>(command: Command<F>): Command => command as unknown as Command

/** What failed of many that were tried: all are told, and the first decides the exit code. */
export class SeveralErrors extends Error {
  readonly errors: readonly unknown[]
  constructor(errors: readonly unknown[]) {
    super(errors.map(error => (error instanceof Error ? error.message : String(error))).join('\n'))
    this.name = 'SeveralErrors'
    this.errors = errors
  }
}

/** For things of which none is of use without the others: all of them, or everything that failed. */
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

/** A program that could not be started: what a shell would end with. */
export class StartError extends Error {
  readonly exitCode: 126 | 127
  constructor(message: string, exitCode: 126 | 127) {
    super(message)
    this.name = 'StartError'
    this.exitCode = exitCode
  }
}

/** `code` of the error for a file that cannot be written; its `file` is the path. */
export const unwritableCode = 'FileNotWritable'

/** Everything that is wrong with what was asked, exit code 2; each line says where and what would be right. */
export class UsageError extends Error {
  readonly problems: readonly string[]
  constructor(problems: readonly string[]) {
    super(problems.join('\n'))
    this.name = 'UsageError'
    this.problems = problems
  }
}
