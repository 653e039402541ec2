// Runs a command in this process, with the program's own table, files and keychain, in a given home. cli-home.ts calls it.

import { resolve } from 'node:path'
import { runCommand } from '../../src/cli/run-command.ts'
import { commands } from '../../src/cmd/commands.ts'
import type { Io } from '../../src/host/command.ts'
import { openFiles } from '../../src/host/files.ts'
import { io as ownIo } from '../../src/host/io.ts'
import { openKeychain } from '../../src/host/keychain.ts'
import type { OutputFilter } from '../../src/host/machine.ts'
import type { Output } from './exec.ts'

type Here = {
  readonly env: NodeJS.ProcessEnv
  readonly directory: string
  readonly stdin: string
  /** Called for each started program. */
  readonly tell: (command: readonly string[]) => void
}

/** Returns the same result as a separate process. */
export async function runHere(args: readonly string[], { env, directory, stdin, tell }: Here): Promise<Output> {
  const [out, err]: [Buffer[], string[]] = [[], []]
  const io: Io = {
    ...ownIo,
    out: data => void out.push(Buffer.from(data as string)),
    err: text => void err.push(text),
    readFile: path => (path === '-' ? Promise.resolve(Buffer.from(stdin)) : ownIo.readFile(resolve(directory, path))),
    env,
    isTerminal: false,
    hasColour: false,
    files: openFiles(env, text => void err.push(text)),
    keychain: () => openKeychain(env),
    runToEnd: () => {},
    start: (command, options) => {
      tell(command)
      const { out: ownOut, err: ownErr } = options.through ?? {}
      const kept =
        (own: OutputFilter | undefined, keep: (chunk: Buffer) => void): OutputFilter =>
        chunk => {
          const shown = own ? own(chunk) : chunk
          if (shown) keep(Buffer.from(shown))
          return new Uint8Array()
        }
      // Its output belongs to the command, not to this process.
      const through = {
        out: kept(ownOut, chunk => out.push(chunk)),
        err: kept(ownErr, chunk => err.push(chunk.toString())),
      }
      return ownIo.start(command, { ...options, through })
    },
  }
  const { ask: _, ...rest } = io
  const code = await runCommand(commands, args, rest)
  return { code, stdout: Buffer.concat(out).toString(), stderr: err.join('') }
}
