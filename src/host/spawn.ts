// Starts a child process and forwards signals to it until it exits.

import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import type { Readable, Writable } from 'node:stream'
import { StartError } from './command.ts'
import type { OutputFilter, Start } from './machine.ts'

const forwardedSignals = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const
/** The terminal already sends these to the whole process group. */
const fromTerminal: readonly string[] = ['SIGINT', 'SIGQUIT']

export const start: Start = ([command = '', ...args], { env, through }) => {
  const output = through ? 'pipe' : 'inherit'
  const child = spawned(command, () =>
    spawn(command, args, { stdio: ['inherit', output, output], env: env as NodeJS.ProcessEnv }),
  )
  const listeners = forwardedSignals.map(signal => {
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
      reject(new StartError(`cannot start ${command}: ${reasonOf(error)}`, exitCode))
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

/** Some errors throw at once instead of emitting an event: report them the same way. */
function spawned<T>(command: string, begin: () => T): T {
  try {
    return begin()
  } catch (error) {
    throw new StartError(`cannot start ${command}: ${reasonOf(error as NodeJS.ErrnoException)}`, 126)
  }
}

async function pipe(from: Readable | null, to: Writable, through: OutputFilter): Promise<void> {
  for await (const chunk of from ?? []) to.write(through(chunk as Buffer))
  to.write(through(undefined))
}

const reasons: { readonly [code: string]: string } = {
  ENOENT: 'program not found',
  EACCES: 'permission denied',
  E2BIG: 'arguments and environment are too large; pass a value as a file with --file KEY=PATH',
}
const reasonOf = (error: NodeJS.ErrnoException) => reasons[error.code ?? ''] ?? error.message
