// A terminal for a program that prompts: tests wait for output and send input.

import { spawn } from 'node:child_process'
import { exec } from './exec.ts'
import { notRun } from './missing-tool.ts'

export type Terminal = {
  /** Resolves when the program has printed that text after the last input. */
  sees(text: RegExp): Promise<string>
  type(text: string): void
  /** Ends the program, if it still runs. */
  kill(): void
  readonly ended: Promise<{ readonly code: number; readonly text: string }>
}

/** `script` gives the program a terminal; its input is typed there. */
export function openTerminal(command: readonly string[], env: NodeJS.ProcessEnv, cwd: string): Terminal {
  const line = command.map(word => `'${word.replaceAll("'", "'\\''")}'`).join(' ')
  const child = spawn('script', ['-qec', line, '/dev/null'], { env: { ...env, SHELL: '/bin/sh' }, cwd })
  let text = ''
  let seen = 0
  let look = () => {}
  child.stdout.on('data', chunk => {
    text += chunk
    look()
  })
  const timer = setTimeout(() => child.kill('SIGKILL'), 60_000)
  const ended = new Promise<{ code: number; text: string }>(resolve =>
    child.on('close', code => {
      clearTimeout(timer)
      look()
      resolve({ code: code ?? 1, text })
    }),
  )
  return {
    sees: wanted =>
      new Promise((resolve, reject) => {
        look = () => {
          if (wanted.test(text.slice(seen))) resolve(text.slice(seen))
          else if (child.exitCode !== null || child.signalCode) reject(new Error(`it ended, and printed:\n${text}`))
        }
        look()
      }),
    type: typed => {
      seen = text.length
      child.stdin.write(typed)
    },
    kill: () => void child.kill('SIGKILL'),
    ended,
  }
}

/** Declares tests that need a terminal, or one test with the reason why they cannot run. */
export async function withTerminal(declare: () => void): Promise<void> {
  const { code } = await exec('script', ['--version'])
  if (code === 0) declare()
  else notRun('script')
}
