// One person at one command line: a home of their own, the real program, and a terminal where a command asks. Every test in test/cli types into it.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { commands } from '../../src/bin/commands.ts'
import { openFiles } from '../../src/bin/files.ts'
import { io as ownIo } from '../../src/bin/io.ts'
import { openKeychain } from '../../src/bin/keychain.ts'
import type { Io } from '../../src/cli/command.ts'
import { runCommand } from '../../src/cli/run-command.ts'
import { type ExecOptions, exec, type Output } from './exec.ts'
import { notRun } from './missing.ts'
import type { Server } from './server.ts'

const program = join(import.meta.dirname, '../../bin/platform.js')

export type Terminal = {
  /** Resolves once it has printed that, looking only at what came after the last answer. */
  sees(text: RegExp): Promise<string>
  type(text: string): void
  readonly ended: Promise<{ readonly code: number; readonly text: string }>
}
type Options = Pick<ExecOptions, 'stdin' | 'env'>

export type CliHome = {
  readonly directory: string
  readonly env: NodeJS.ProcessEnv
  /** In this process, with the program's own table and files: a process of its own takes a hundred times as long. */
  run(args: string | readonly string[], options?: Options): Promise<Output>
  /** What it printed; it has to succeed. */
  ok(args: string | readonly string[], options?: Options): Promise<string>
  /** What it complained; it has to end with that code. */
  fails(code: number, args: string | readonly string[], options?: Options): Promise<string>
  /** The same as a process of its own. */
  exec(args: string | readonly string[], options?: Options): Promise<Output>
  /** Goes on in the background; the test ends it. */
  start(args: readonly string[], options?: Options): ChildProcess
  /** In a terminal. Needs `script`. */
  terminal(args: string | readonly string[], options?: Options): Terminal
  signIn(server: Server, key?: string): Promise<void>
  close(): Promise<void>
}

export async function openHome(): Promise<CliHome> {
  const directory = await mkdtemp(join(tmpdir(), 'platform-cli-'))
  const env: NodeJS.ProcessEnv = { PATH: process.env['PATH'], HOME: directory, TERM: 'xterm', KUBERC: 'off' }
  const run: CliHome['run'] = (args, { env: more, stdin = '' } = {}) =>
    runHere(words(args), { ...env, ...more }, directory, stdin)
  const told = (args: string | readonly string[], { code, stdout, stderr }: Output) =>
    `platform ${words(args).join(' ')} ended with ${code}:\n${stdout}${stderr}`
  const home: CliHome = {
    directory,
    env,
    run,
    async ok(args, options) {
      const output = await run(args, options)
      assert.equal(output.code, 0, told(args, output))
      return output.stdout
    },
    async fails(code, args, options) {
      const output = await run(args, options)
      assert.equal(output.code, code, told(args, output))
      return output.stderr
    },
    exec: (args, { env: more, ...options } = {}) =>
      exec(process.execPath, [program, ...words(args)], { cwd: directory, ...options, env: { ...env, ...more } }),
    start: (args, { env: more } = {}) =>
      spawn(process.execPath, [program, ...args], { cwd: directory, env: { ...env, ...more }, stdio: 'pipe' }),
    terminal: (args, { env: more } = {}) =>
      openTerminal([process.execPath, program, ...words(args)], { ...env, ...more }, directory),
    async signIn(server, key = server.adminKey) {
      const ca = join(server.directory, 'ca.crt')
      await home.ok(['login', server.https, '--ca-file', ca, '--access-key', '-', '--yes'], { stdin: key })
    },
    close: () => rm(directory, { recursive: true, force: true }),
  }
  return home
}

const words = (args: string | readonly string[]) => (typeof args === 'string' ? args.split(' ') : args)

async function runHere(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  directory: string,
  stdin: string,
): Promise<Output> {
  const [out, err]: [Buffer[], string[]] = [[], []]
  const io: Io = {
    ...ownIo,
    out: data => void out.push(Buffer.from(data as string)),
    err: text => void err.push(text),
    readFile: path => (path === '-' ? Promise.resolve(Buffer.from(stdin)) : ownIo.readFile(resolve(directory, path))),
    env,
    isTerminal: false,
    hasColour: false,
    files: openFiles(env),
    keychain: () => openKeychain(env),
  }
  const { ask: _, ...rest } = io
  const code = await runCommand(commands, args, rest)
  return { code, stdout: Buffer.concat(out).toString(), stderr: err.join('') }
}

/** `script` gives the program a terminal; what is typed into its input is typed there. */
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
  const timer = setTimeout(() => child.kill('SIGKILL'), 20_000)
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
    ended,
  }
}

/** Declares tests that need a terminal, or the one that says why not. */
export async function withTerminal(declare: () => void): Promise<void> {
  const { code } = await exec('script', ['--version'])
  if (code === 0) declare()
  else notRun('script')
}
