// A user with a home directory and the real program, for all tests of test/cli. Checks that no secret is left behind (canary.slow.test.ts).

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after } from 'node:test'
import { pathToFileURL } from 'node:url'
import { openCanaries } from './canary.ts'
import { type ExecOptions, exec, type Output } from './exec.ts'
import { runHere } from './run-in-process.ts'
import { type Server, type ServerOptions, startedServers, startServer } from './server.ts'
import { openTerminal, type Terminal } from './terminal.ts'

type Options = Pick<ExecOptions, 'stdin' | 'env'> & {
  /** For `exec`: a script of sh that ends with "$@", which runs the program. */
  readonly within?: string
  /** For `exec` and `start`: modules that are loaded before the program. */
  readonly imports?: readonly string[]
}

export type CliHome = {
  readonly directory: string
  readonly env: NodeJS.ProcessEnv
  /**
   * Runs in this process, with the program's own table and files, because a separate process takes a hundred times as
   * long.
   */
  run(args: string | readonly string[], options?: Options): Promise<Output>
  /** Returns the output; the command must succeed. */
  ok(args: string | readonly string[], options?: Options): Promise<string>
  /** Returns the errors; the command must exit with that code. */
  fails(code: number, args: string | readonly string[], options?: Options): Promise<string>
  /** The same in a separate process. */
  exec(args: string | readonly string[], options?: Options): Promise<Output>
  /** Runs in the background; the test ends it. */
  start(args: readonly string[], options?: Options): ChildProcess
  /** In a terminal. Requires `script`. */
  terminal(args: string | readonly string[], options?: Options): Terminal
  /** Through another program, such as a shell or kubectl, with this `platform` first in its PATH. */
  by(command: readonly string[], options?: ExecOptions): Promise<Output>
  /** The same in a terminal. */
  terminalBy(command: readonly string[], options?: ExecOptions): Terminal
  /** All commands started by programs, one per line. */
  told(): string
  signIn(server: Server, key?: string): Promise<void>
  close(): Promise<void>
}

type HomeOptions = {
  /** Files below the home that may contain a secret at the end. Default: the keys of the contexts. */
  readonly mayHold?: RegExp
  /** Another program than that of this checkout, as a path relative to the home. */
  readonly program?: string
}

const keyFiles = /^\.local\/share\/platform\/keys\//
const ofCheckout = join(import.meta.dirname, '../../bin/platform.js')

/** A server and a signed-in user, for all tests of a file. */
export async function signedIn(options?: ServerOptions): Promise<{ readonly server: Server; readonly home: CliHome }> {
  const server = await startServer({ inProcess: true, ...options })
  const home = await openHome()
  after(async () => {
    try {
      await home.close()
    } finally {
      // Stops the server even if the check of the home fails.
      await server.stop()
    }
  })
  await home.signIn(server)
  return { server, home }
}

/** Closing it checks that no value or key is left in files, here or on a server, in output, or in arguments. */
export async function openHome({ mayHold = keyFiles, program: own = ofCheckout }: HomeOptions = {}): Promise<CliHome> {
  const directory = await mkdtemp(join(tmpdir(), 'platform-cli-'))
  const program = resolve(directory, own)
  const env: NodeJS.ProcessEnv = { PATH: process.env['PATH'], HOME: directory, TERM: 'xterm', KUBERC: 'off' }
  const canaries = openCanaries()
  const started: ChildProcess[] = []
  const terminals: Terminal[] = []
  const said: Buffer[] = []
  // Stops programs of a test that failed before it stopped them.
  const leave = () => {
    for (const terminal of terminals) terminal.kill()
    for (const { pid, exitCode, signalCode } of started)
      if (pid && exitCode === null && signalCode === null)
        try {
          process.kill(-pid, 'SIGKILL')
        } catch {
          // The process has ended, and Node has not noticed yet.
        }
  }
  process.once('exit', leave)
  const aside = await mkdtemp(join(tmpdir(), 'platform-cli-aside-'))
  const argv = join(aside, 'argv')
  const tell = (command: readonly string[]) => appendFileSync(argv, `${JSON.stringify(command)}\n`)
  const teller = pathToFileURL(join(import.meta.dirname, 'spawn-log.mjs'))
  const command = (args: readonly string[], imports: readonly string[] = []) => [
    ...[`${teller}?log=${argv}`, ...imports].flatMap(one => ['--import', one]),
    program,
    ...args,
  ]
  const bin = join(aside, 'bin')
  mkdirSync(bin)
  // Records the arguments that programs pass to other programs.
  const line = [process.execPath, '--import', `${teller}?log=${argv}&own`, program]
  const starter = `#!/bin/sh\nexec ${line.map(one => `'${one}'`).join(' ')} "$@"\n`
  writeFileSync(join(bin, 'platform'), starter, { mode: 0o755 })
  const withBin = (more: NodeJS.ProcessEnv = {}) => ({ ...env, ...more, PATH: `${bin}:${more['PATH'] ?? env['PATH']}` })
  const told = (args: string | readonly string[], { code, stdout, stderr }: Output) =>
    `platform ${words(args).join(' ')} ended with ${code}:\n${stdout}${stderr}`
  const noteCanaries = (text: string) => {
    for (const [value] of text.matchAll(/canary-[\w-]+/g)) canaries.note(value)
  }
  const noteKeys = ({ env: more = {}, stdin = '' }: Options) => {
    for (const { adminKey } of startedServers) canaries.note(adminKey)
    noteCanaries(stdin)
    canaries.note(more['PLATFORM_ACCESS_KEY']?.replace(/[@#].*/, '') ?? '')
    canaries.note(more['PLATFORM_PASSPHRASE'] ?? '')
  }
  /** Standard input and environment values are secrets; printed keys are as well. */
  const watched = async (args: string | readonly string[], options: Options, ended: Promise<Output>) => {
    noteKeys(options)
    if (/^(login|set|import)/.test(words(args)[0] ?? '')) canaries.note(options.stdin ?? '')
    const output = await ended
    for (const [key] of output.stdout.matchAll(/\bplat_\w{49}\b/g)) canaries.note(key)
    assert.equal(canaries.in(output.stderr), undefined, `a secret was said: ${told(args, output)}`)
    return output
  }
  const noted = (terminal: Terminal, note: (typed: string) => void): Terminal => {
    terminals.push(terminal)
    return {
      ...terminal,
      type: text => {
        note(text)
        terminal.type(text)
      },
    }
  }
  const run: CliHome['run'] = (args, options = {}) => {
    const { env: more, stdin = '' } = options
    return watched(args, options, runHere(words(args), { env: { ...env, ...more }, directory, stdin, tell }))
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
      const { env: more, within, imports, ...rest } = options
      const all = [process.execPath, ...command(words(args), imports)]
      const [file = '', ...others] = within === undefined ? all : ['sh', '-c', within, 'sh', ...all]
      const ended = exec(file, others, { cwd: directory, ...rest, env: { ...env, ...more } })
      return watched(args, options, ended)
    },
    start: (args, options = {}) => {
      noteKeys(options)
      const all = { ...env, ...options.env }
      // In its own process group: a child that outlives it would keep the pipes, and so this process, open.
      const how = { cwd: directory, env: all, stdio: 'pipe', detached: true } as const
      const child = spawn(process.execPath, command(args, options.imports), how)
      child.stderr.on('data', chunk => said.push(chunk))
      // A server prints to its standard output.
      if (args[0] === 'serve') child.stdout.on('data', chunk => said.push(chunk))
      started.push(child)
      return child
    },
    terminal: (args, options = {}) => {
      noteKeys(options)
      const all = [process.execPath, ...command(words(args))]
      return noted(openTerminal(all, { ...env, ...options.env }, directory), canaries.note)
    },
    by: ([file = '', ...args], options = {}) => {
      tell([file, ...args])
      canaries.note(options.stdin ?? '')
      const ended = exec(file, args, { cwd: directory, ...options, env: withBin(options.env) })
      return watched([file, ...args], options, ended)
    },
    terminalBy: (all, options = {}) => {
      tell(all)
      noteKeys(options)
      // Most shell input is commands.
      return noted(openTerminal(all, withBin(options.env), options.cwd ?? directory), noteCanaries)
    },
    told: () => readFileSync(argv, 'utf8'),
    async signIn(server, key = server.adminKey) {
      const ca = join(server.directory, 'ca.crt')
      await home.ok(['login', server.https, '--ca-file', ca, '--access-key', '-', '--yes'], { stdin: key })
    },
    async close() {
      leave()
      process.off('exit', leave)
      const left = canaries.below(directory).filter(name => !mayHold.test(name))
      const atServers = [...startedServers].map(one => [
        ...canaries.below(one.directory).filter(name => !/^admin\.(key|kubeconfig)$/.test(name)),
        ...(canaries.in(one.said()) === undefined ? [] : ['its output']),
      ])
      const asArguments = canaries.below(aside)
      const inBackground = canaries.in(Buffer.concat(said)) === undefined ? [] : ['standard error']
      for (const one of [directory, aside]) await rm(one, { recursive: true, force: true })
      assert.deepEqual(
        { left, atServers, asArguments, inBackground },
        { left: [], atServers: atServers.map(() => []), asArguments: [], inBackground: [] },
      )
    },
  }
  return home
}

const words = (args: string | readonly string[]) => (typeof args === 'string' ? args.split(' ') : args)
