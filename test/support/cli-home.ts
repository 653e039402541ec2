// One person at one command line: a home of their own, the real program, and a terminal where a command asks. Every test in test/cli types into it.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { commands } from '../../src/bin/commands.ts'
import { openFiles } from '../../src/bin/files.ts'
import { io as ownIo } from '../../src/bin/io.ts'
import { openKeychain } from '../../src/bin/keychain.ts'
import type { Io } from '../../src/cli/command.ts'
import { runCommand } from '../../src/cli/run-command.ts'
import { openCanaries } from './canary.ts'
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
type Options = Pick<ExecOptions, 'stdin' | 'env'> & {
  /** For `exec`: a script of sh that ends by running "$@", which is the program. */
  readonly within?: string
}

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

type HomeOptions = {
  /** Files below the home in which a secret may be at the end: the keys of the contexts, unless a test says otherwise. */
  readonly mayHold?: RegExp
}

const keyFiles = /^\.local\/share\/platform\/keys\//

/** Its end is a check: no value and no key that was handed to it is left in a file, nor was it said or an argument. */
export async function openHome({ mayHold = keyFiles }: HomeOptions = {}): Promise<CliHome> {
  const directory = await mkdtemp(join(tmpdir(), 'platform-cli-'))
  const env: NodeJS.ProcessEnv = { PATH: process.env['PATH'], HOME: directory, TERM: 'xterm', KUBERC: 'off' }
  const canaries = openCanaries()
  const servers = new Set<Server>()
  const started: ChildProcess[] = []
  // A test that fails before it has ended them leaves nothing behind.
  const leave = () => {
    for (const child of started) if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
  }
  process.once('exit', leave)
  const spawns = join(await mkdtemp(join(tmpdir(), 'platform-cli-spawns-')), 'argv')
  const command = (args: readonly string[]) => [
    '--import',
    `${pathToFileURL(join(import.meta.dirname, 'told-spawns.mjs'))}?log=${spawns}`,
    program,
    ...args,
  ]
  const told = (args: string | readonly string[], { code, stdout, stderr }: Output) =>
    `platform ${words(args).join(' ')} ended with ${code}:\n${stdout}${stderr}`
  /** What comes in by standard input or environment is a secret; what is printed as a key is one as well. */
  const watched = async (
    args: string | readonly string[],
    { stdin = '', env: more = {} }: Options,
    ended: Promise<Output>,
  ) => {
    if (/^(login|set|import)/.test(words(args)[0] ?? '')) canaries.note(stdin)
    for (const [value] of stdin.matchAll(/canary-[\w-]+/g)) canaries.note(value)
    canaries.note(more['PLATFORM_ACCESS_KEY']?.replace(/[@#].*/, '') ?? '')
    canaries.note(more['PLATFORM_PASSPHRASE'] ?? '')
    const output = await ended
    for (const [key] of output.stdout.matchAll(/\bplat_\w{49}\b/g)) canaries.note(key)
    assert.equal(canaries.in(output.stderr), undefined, `a secret was said: ${told(args, output)}`)
    return output
  }
  const run: CliHome['run'] = (args, options = {}) => {
    const { env: more, stdin = '' } = options
    return watched(args, options, runHere(words(args), { ...env, ...more }, directory, stdin))
  }
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
    exec: (args, options = {}) => {
      const { env: more, within, ...rest } = options
      const line = [process.execPath, ...command(words(args))]
      const [file = '', ...others] = within === undefined ? line : ['sh', '-c', within, 'sh', ...line]
      const ended = exec(file, others, { cwd: directory, ...rest, env: { ...env, ...more } })
      return watched(args, options, ended)
    },
    start: (args, { env: more } = {}) => {
      const child = spawn(process.execPath, command(args), { cwd: directory, env: { ...env, ...more }, stdio: 'pipe' })
      started.push(child)
      return child
    },
    terminal: (args, { env: more } = {}) => {
      const { type, ...terminal } = openTerminal(
        [process.execPath, ...command(words(args))],
        { ...env, ...more },
        directory,
      )
      return {
        ...terminal,
        type: text => {
          canaries.note(text)
          type(text)
        },
      }
    },
    async signIn(server, key = server.adminKey) {
      servers.add(server)
      const ca = join(server.directory, 'ca.crt')
      await home.ok(['login', server.https, '--ca-file', ca, '--access-key', '-', '--yes'], { stdin: key })
    },
    async close() {
      leave()
      process.off('exit', leave)
      const left = canaries.below(directory).filter(name => !mayHold.test(name))
      const atServers = [...servers].map(one => [
        ...canaries.below(one.directory).filter(name => !/^admin\.(key|kubeconfig)$/.test(name)),
        ...(canaries.in(one.output()) === undefined ? [] : ['its output']),
      ])
      const asArguments = canaries.below(dirname(spawns))
      for (const one of [directory, dirname(spawns)]) await rm(one, { recursive: true, force: true })
      assert.deepEqual(
        { left, atServers, asArguments },
        { left: [], atServers: atServers.map(() => []), asArguments: [] },
      )
    },
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
    ended,
  }
}

/** Declares tests that need a terminal, or the one that says why not. */
export async function withTerminal(declare: () => void): Promise<void> {
  const { code } = await exec('script', ['--version'])
  if (code === 0) declare()
  else notRun('script')
}
