// A kubectl with its own server and home directory, for all kubectl tests.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { exec, type Output } from './exec.ts'
import type { Kubectl } from './kubectl.ts'
import { type Server, type ServerOptions, startServer } from './server.ts'

type Command = string | readonly string[]
type CommandOptions = {
  /** Standard input of the command; an object becomes JSON. */
  readonly stdin?: unknown
  readonly env?: NodeJS.ProcessEnv
}

export type Session = {
  readonly server: Server
  /** A directory for a test's files. */
  readonly home: string
  run(command: Command, options?: CommandOptions): Promise<Output>
  /** Returns the output; the command must succeed. */
  ok(command: Command, options?: CommandOptions): Promise<string>
  /** Returns the errors; the command must fail with that code. */
  fails(command: Command, options?: CommandOptions & { readonly code?: number }): Promise<string>
  /** The output of a command as an object; adds `-o json`. */
  // biome-ignore lint/suspicious/noExplicitAny: tests assert fields of arbitrary responses
  json(command: Command, options?: CommandOptions): Promise<any>
  /** Starts a long-running command, yields its lines, and ends it when the loop is left. */
  lines(command: Command): AsyncGenerator<string>
  file(name: string, content: unknown): Promise<string>
  close(): Promise<void>
}

/** A separate server and home for this kubectl, so that tests can use any names. */
export async function openSession(kubectl: Kubectl, options?: ServerOptions): Promise<Session> {
  const server = await startServer(options)
  const home = await mkdtemp(join(tmpdir(), 'platform-home-'))
  const environment = (env: NodeJS.ProcessEnv = {}) => ({
    PATH: process.env['PATH'],
    HOME: home,
    KUBECONFIG: server.kubeconfig,
    KUBERC: 'off',
    ...env,
  })
  const run = (command: Command, { stdin, env }: CommandOptions = {}) =>
    exec(kubectl.file, words(command), { stdin: text(stdin ?? ''), env: environment(env), cwd: home })

  const session: Session = {
    server,
    home,
    run,
    async ok(command, options) {
      const { code, stdout, stderr } = await run(command, options)
      assert.equal(code, 0, `kubectl ${words(command).join(' ')} ended with ${code}:\n${stdout}${stderr}`)
      return stdout
    },
    async fails(command, options = {}) {
      const { code, stdout, stderr } = await run(command, options)
      const line = `kubectl ${words(command).join(' ')} ended with ${code}:\n${stdout}${stderr}`
      if (options.code === undefined) assert.notEqual(code, 0, line)
      else assert.equal(code, options.code, line)
      return stderr
    },
    json: async (command, options) => JSON.parse(await session.ok([...words(command), '-o', 'json'], options)),
    lines: command => follow(spawn(kubectl.file, words(command), { env: environment(), cwd: home })),
    async file(name, content) {
      const path = join(home, name)
      await writeFile(path, text(content), { mode: 0o755 })
      return path
    },
    async close() {
      await rm(home, { recursive: true, force: true })
      await server.stop()
    },
  }
  return session
}

const words = (command: Command) => (typeof command === 'string' ? command.split(' ') : command)
const text = (content: unknown) => (typeof content === 'string' ? content : JSON.stringify(content))

async function* follow(child: ChildProcess): AsyncGenerator<string> {
  const timer = setTimeout(() => child.kill('SIGKILL'), 15_000)
  try {
    let rest = ''
    for await (const chunk of child.stdout ?? []) {
      const parts = `${rest}${chunk}`.split('\n')
      rest = parts.pop() ?? ''
      yield* parts
    }
  } finally {
    clearTimeout(timer)
    child.kill('SIGKILL')
  }
}
