// Starts the real program in its own directory and sends requests over TLS. All end-to-end tests use it.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, rmSync } from 'node:fs'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import pino from 'pino'
import { runApiServer } from '../../src/apiserver/run.ts'
import { readSettings } from '../../src/apiserver/settings.ts'
import { freePort } from './ports.ts'
import { type Answer, openRequests, type RequestOptions, type WatchEvent } from './request.ts'

export type ServerOptions = {
  readonly storage?: 'memory' | 'sqlite'
  /** Another replica of the same installation: it gets the same master key. */
  readonly replicaOf?: Pick<Server, 'directory' | 'adminKey'>
  readonly args?: readonly string[]
  /** A directory that was used before; default: a new, empty one. */
  readonly directory?: string
  /** Modules to load before the program, and its environment. */
  readonly begin?: Again
  /** Runs the server in this process, which is faster. Such a server cannot crash. */
  readonly inProcess?: boolean
}

export type Server = {
  readonly https: string
  readonly http: string
  readonly directory: string
  readonly kubeconfig: string
  readonly adminKey: string
  readonly ca: string
  /** One request over https; the path is relative to /kubernetes/management. */
  request(method: string, path: string, options?: RequestOptions): Promise<Answer>
  /** The parsed events of a watch. Leaving the loop ends it. */
  watch(path: string, options?: RequestOptions): AsyncIterableIterator<WatchEvent>
  /** Stops it with SIGTERM, and starts it again on the same directory and ports. `meanwhile` runs in between. */
  restart(meanwhile?: () => Promise<void>, again?: Again): Promise<void>
  /** Everything the running program has printed so far. */
  output(): string
  /** The same, with the output of earlier programs in this directory. */
  said(): string
  /** Sends a signal such as SIGSTOP. */
  signal(name: NodeJS.Signals): void
  /** Kills it if it still runs, and starts it again on the same directory and ports. */
  crash(again: Again): Promise<void>
  /** Resolves when it has exited by itself. If it still runs, kills it. */
  died(): Promise<void>
  die(): Promise<void>
  /** Stops it, checks that it exited cleanly, and removes its directory. */
  stop(): Promise<void>
  /** Kills it, and removes its directory. */
  kill(): Promise<void>
}

/** Start options: modules to load before the program, variables, and another program than this version's. */
export type Again = {
  readonly imports?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly program?: string
}

const ownProgram = join(import.meta.dirname, '../../bin/platform.js')
/** The flags that the launcher would set. With these it does not restart itself. */
const flags = ['--max-semi-space-size=32']
const within = 60_000

/** Running servers of this process, for checks of leftover data. */
export const startedServers: ReadonlySet<Server> = new Set()
const started = startedServers as Set<Server>

export async function startServer(options: ServerOptions = {}): Promise<Server> {
  const directory = options.directory ?? (await mkdtemp(join(tmpdir(), 'platform-test-')))
  let running: Running | undefined
  let ending: Running | undefined
  let before = ''
  // Stops the server of a test that failed before its stop().
  const leave = () => {
    for (const one of [running, ending]) one?.child?.kill('SIGKILL')
    rmSync(directory, { recursive: true, force: true })
  }
  process.once('exit', leave)
  // Fixed ports, so that a restarted server has the same ones.
  const [secure, plain] = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`]
  const args = [
    'serve',
    '--data',
    directory,
    '--https',
    secure,
    '--http',
    plain,
    ...extra(options),
    ...onEtcd(options, directory),
  ]
  if (options.replicaOf) await cp(join(options.replicaOf.directory, 'master.key'), join(directory, 'master.key'))
  const start = (again?: Again) => (options.inProcess ? runInProcess(args) : run(args, again))
  const end = async (how: (one: Running) => Promise<void>, keep = false) => {
    const one = running
    ending = one
    running = undefined
    if (!keep) started.delete(server)
    try {
      if (one) await how(one)
    } finally {
      before += one?.output() ?? ''
      if (!keep) {
        process.off('exit', leave)
        await rm(directory, { recursive: true, force: true })
      }
    }
  }

  running = await start(options.begin).catch(error => {
    leave()
    throw error
  })
  const [https, http] = running.urls
  const read = (name: string) => readFileSync(join(directory, name), 'utf8')
  const adminKey = options.replicaOf?.adminKey ?? read('admin.key').trim()
  const ca = read('ca.crt')
  const server: Server = {
    https,
    http,
    directory,
    kubeconfig: join(directory, 'admin.kubeconfig'),
    adminKey,
    ca,
    ...openRequests({ base: `${https}/kubernetes/management`, ca, key: adminKey }),
    output: () => running?.output() ?? '',
    said: () => before + (running?.output() ?? ''),
    stop: () => end(stopWell),
    kill: () => end(killNow),
    async crash(again) {
      await end(killNow, true)
      running = await start(again)
    },
    died: async () => {
      const child = running?.child
      if (child && child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    },
    signal: name => void running?.child?.kill(name),
    die: () => end(killNow, true),
    async restart(meanwhile, again) {
      await end(stopWell, true)
      await meanwhile?.()
      running = await start(again)
    },
  }
  started.add(server)
  return server
}

/** In `npm run test:etcd`, an e2e test that would use SQLite uses the shared etcd, below a prefix of its directory. */
const onEtcd = ({ storage, args = [] }: ServerOptions, directory: string) => {
  const endpoint = process.env['PLATFORM_TEST_ETCD']
  const isE2e = process.argv[1]?.includes('/test/e2e/')
  if (!endpoint || !isE2e || storage || args.includes('--storage')) return []
  return ['--storage', 'etcd', '--etcd-endpoints', endpoint, '--etcd-prefix', `/test/${basename(directory)}`]
}

const extra = ({ storage, args = [] }: ServerOptions) => [...(storage ? ['--storage', storage] : []), ...args]

type Running = {
  /** undefined: it runs in this process. */
  readonly child?: ChildProcess
  /** Stops a server in this process. */
  readonly stop?: () => Promise<void>
  readonly urls: readonly [https: string, http: string]
  output(): string
}

async function run(
  args: readonly string[],
  { imports = [], env = {}, program = ownProgram }: Again = {},
): Promise<Running> {
  const before = imports.flatMap(file => ['--import', file])
  const child = spawn(process.execPath, [...flags, ...before, program, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  })
  let printed = ''
  const output = () => printed
  const urls = await new Promise<[string, string]>((resolve, reject) => {
    const fail = (why: string) => reject(new Error(`the server ${why}; it printed:\n${printed}`))
    const timer = setTimeout(() => {
      child.kill('SIGKILL')
      fail(`was not ready within ${within / 1000} s`)
    }, within)
    child.on('error', error => fail(error.message))
    child.on('exit', (code, signal) => {
      clearTimeout(timer)
      fail(`ended with ${signal ?? code}`)
    })
    // Searches only until the line is found: a server under load prints a lot, and this process measures it.
    let isReady = false
    const look = (chunk: Buffer) => {
      printed += chunk
      const ready = isReady ? null : /^platform is ready: (\S+) (\S+)$/m.exec(printed)
      if (!ready) return
      isReady = true
      clearTimeout(timer)
      resolve([ready[1] as string, ready[2] as string])
    }
    child.stdout.on('data', look)
    child.stderr.on('data', look)
  })
  return { child, urls, output }
}

/** The program's own settings, log and shutdown. */
async function runInProcess(args: readonly string[]): Promise<Running> {
  const settings = await readSettings(args.slice(1), {})
  let printed = ''
  const write = (text: string) => {
    printed += text
  }
  const log = pino({ level: settings.logLevel, base: null }, { write })
  const { promise: shutdown, resolve: beginShutdown } = Promise.withResolvers<void>()
  const { promise: ready, resolve: beReady } = Promise.withResolvers<void>()
  const waitForShutdown = () => {
    beReady()
    return shutdown
  }
  const ended = runApiServer({
    settings,
    env: {},
    version: 'test',
    log,
    print: text => write(`${text}\n`),
    waitForShutdown,
  })
  await Promise.race([ready, ended])
  // The ready line is printed in the same turn as the call of waitForShutdown.
  await new Promise(setImmediate)
  const found = /^platform is ready: (\S+) (\S+)$/m.exec(printed)
  assert.ok(found, `the server is not ready; it printed:\n${printed}`)
  const stop = () => {
    beginShutdown()
    return ended
  }
  return { urls: [found[1] as string, found[2] as string], output: () => printed, stop }
}

async function stopWell({ child, stop, output }: Running): Promise<void> {
  if (!child) return stop?.()
  if (child.exitCode === null && child.signalCode === null) {
    const timer = setTimeout(() => child.kill('SIGKILL'), within)
    child.kill('SIGTERM')
    await once(child, 'exit')
    clearTimeout(timer)
  }
  assert.equal(child.exitCode, 0, `the server ended with ${child.signalCode ?? child.exitCode}:\n${output()}`)
}

async function killNow({ child, stop }: Running): Promise<void> {
  if (!child) return stop?.()
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'exit')
}
