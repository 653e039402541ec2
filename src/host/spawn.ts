// Starts another program with our streams and passes signals on to it until it has ended. io.ts hands it to the commands.

import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import type { Readable, Writable } from 'node:stream'
import { StartError } from './command.ts'
import type { Start, Through } from './machine.ts'

const passedOn = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const
/** A terminal sends these to everyone in front of it; a second one from us would count twice. */
const fromTerminal: readonly string[] = ['SIGINT', 'SIGQUIT']

export const start: Start = ([command = '', ...args], { env, through }) => {
  const output = through ? 'pipe' : 'inherit'
  const child = begun(command, () =>
    spawn(command, args, { stdio: ['inherit', output, output], env: env as NodeJS.ProcessEnv }),
  )
  const listeners = passedOn.map(signal => {
    const pass = () => void (process.stdin.isTTY && fromTerminal.includes(signal) ? undefined : child.kill(signal))
    process.on(signal, pass)
    return () => process.off(signal, pass)
  })
  const printed = through
    ? [pipe(child.stdout, process.stdout, through.out), pipe(child.stderr, process.stderr, through.err)]
    : []
  const ended = new Promise<number>((resolve, reject) => {
    child.on('error', (error: NodeJS.ErrnoException) => {
      const exitCode = error.code === 'ENOENT' ? 127 : 126
      reject(new StartError(`cannot start ${command}: ${told(error)}`, exitCode))
    })
    child.on('close', (code, signal) => resolve(signal ? 128 + (constants.signals[signal] ?? 0) : (code ?? 1)))
  }).finally(() => {
    for (const stop of listeners) stop()
  })
  return {
    ended: ended.then(async code => {
      await Promise.all(printed)
      return code
    }),
    kill: signal => void child.kill(signal),
  }
}

/** What the system refuses at once is told as what it tells later. */
function begun<T>(command: string, begin: () => T): T {
  try {
    return begin()
  } catch (error) {
    throw new StartError(`cannot start ${command}: ${told(error as NodeJS.ErrnoException)}`, 126)
  }
}

async function pipe(from: Readable | null, to: Writable, through: Through): Promise<void> {
  for await (const chunk of from ?? []) to.write(through(chunk as Buffer))
  to.write(through(undefined))
}

const words: { readonly [code: string]: string } = {
  ENOENT: 'there is no such program',
  EACCES: 'it may not be run',
  E2BIG: 'the system takes no arguments and variables as large; --file KEY=PATH gives a value as a file',
}
const told = (error: NodeJS.ErrnoException) => words[error.code ?? ''] ?? error.message
