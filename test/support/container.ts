// Runs the OCI image in a real container runtime, crun from Debian's archive, with the configuration of the image.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findUmoci } from '../../build/umoci.ts'
import { exec } from './exec.ts'
import { fetchDebian } from './fetch-debian.ts'

const cache = join(import.meta.dirname, '../../node_modules/.cache/platform-tools')

export type Crun = { readonly file: string; readonly env: NodeJS.ProcessEnv }

/** undefined: not available from the archive, or this process is not root. */
export async function findCrun(): Promise<Crun | undefined> {
  if (process.getuid?.() !== 0) return undefined
  const installed = { file: 'crun', env: process.env }
  if ((await exec('crun', ['--version'])).code === 0) return installed
  const [, release] = /^VERSION_CODENAME=(\w+)$/m.exec(readFileSync('/etc/os-release', 'utf8')) ?? []
  // From the release of this machine, because it links to its libraries.
  if (release) await fetchDebian({ name: 'crun', dependencies: 'missing', cache, suites: [[release]] })
  const folder = (await readdir(cache).catch(() => [])).find(name => name.startsWith('crun-'))
  if (!folder) return undefined
  const libraries = ['x86_64-linux-gnu', 'aarch64-linux-gnu'].map(name => join(cache, folder, 'usr/lib', name))
  return { file: join(cache, folder, 'usr/bin/crun'), env: { ...process.env, LD_LIBRARY_PATH: libraries.join(':') } }
}

/** Input of crun, from the runtime specification of OCI. umoci writes it from the configuration of the image. */
export type RuntimeConfig = {
  process: {
    terminal: boolean
    args: string[]
    env: string[]
    readonly cwd: string
    readonly user: { readonly uid: number; readonly gid: number }
    capabilities: { readonly [set: string]: readonly string[] }
    noNewPrivileges: boolean
  }
  root: { path: string; readonly: boolean }
  mounts: { destination: string; type: string; source: string; options?: string[] }[]
  linux: { namespaces: { readonly type: string }[]; resources?: unknown; seccomp?: unknown }
}

export type Bundle = { readonly directory: string; readonly rootfs: string; readonly config: RuntimeConfig }

/** Unpacks the only image of an archive. */
export async function unpackImage(archive: string, directory: string): Promise<Bundle> {
  const layout = join(directory, 'layout')
  mkdirSync(layout, { recursive: true })
  const run = async (file: string, ...args: string[]) => {
    const { code, stderr } = await exec(file, args, { timeout: 300_000 })
    assert.equal(code, 0, stderr)
  }
  await run('tar', '--extract', '--file', archive, '--directory', layout)
  const index = JSON.parse(readFileSync(join(layout, 'index.json'), 'utf8'))
  const tag = index.manifests[0].annotations['org.opencontainers.image.ref.name']
  const bundle = join(directory, 'bundle')
  await run(await findUmoci(), 'unpack', '--image', `${layout}:${tag}`, bundle)
  const config = JSON.parse(readFileSync(join(bundle, 'config.json'), 'utf8'))
  return { directory: bundle, rootfs: join(bundle, 'rootfs'), config }
}

export type Container = {
  /** PID on this machine. */
  pid(): number
  /** Waits for this output. */
  until(pattern: RegExp): Promise<RegExpExecArray>
  /** Sends a signal, and waits for the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number>
  /** Waits for the end. */
  end(): Promise<{ readonly code: number; readonly output: string }>
}

type ContainerOptions = {
  readonly crun: Crun
  readonly bundle: Bundle
  /** Directory of this machine for /data. */
  readonly data: string
  /** Instead of the command of the image. */
  readonly command?: readonly string[]
  readonly env?: readonly string[]
  /** Changes of the configuration for a test. */
  readonly change?: (config: RuntimeConfig) => void
}

let count = 0

/** With a read-only root, without capabilities, and in the network of this machine. */
export function startContainer({ crun, bundle, data, command, env = [], change }: ContainerOptions): Container {
  const config = structuredClone(bundle.config)
  const entrypoint = config.process.args.slice(0, 1)
  config.process.terminal = false
  config.process.capabilities = {}
  config.process.noNewPrivileges = true
  if (command) config.process.args = [...entrypoint, ...command]
  const isSet = (one: string) => env.some(other => other.startsWith(`${one.split('=')[0]}=`))
  config.process.env = [...config.process.env.filter(one => !isSet(one)), ...env]
  config.root = { path: bundle.rootfs, readonly: true }
  const isShared = ({ destination }: { destination: string }) => /^\/(sys|data|dev\/mqueue)/.test(destination)
  config.mounts = config.mounts.filter(one => !isShared(one))
  config.mounts.push({ destination: '/data', type: 'bind', source: data, options: ['bind', 'rw'] })
  config.linux.namespaces = config.linux.namespaces.filter(({ type }) => type !== 'network')
  delete config.linux.resources
  change?.(config)
  const work = mkdtempSync(join(tmpdir(), 'platform-container-'))
  writeFileSync(join(work, 'config.json'), JSON.stringify(config))
  const pidFile = join(work, 'pid')
  const flags = ['--root', join(work, 'state'), '--cgroup-manager=disabled', 'run', '--pid-file', pidFile]
  // crun rejects a machine with the first version of cgroups. In a mount namespace of its own, there is the second.
  const script = 'mount -t cgroup2 none /sys/fs/cgroup && exec "$@"'
  const own = ['--mount', '--propagation', 'private', 'sh', '-c', script, 'sh', crun.file]
  const child = spawn('unshare', [...own, ...flags, '--bundle', work, `platform-${process.pid}-${++count}`], {
    env: crun.env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const pid = () => Number(existsSync(pidFile) ? readFileSync(pidFile, 'utf8') : 0)
  return follow(child, pid, () => rmSync(work, { recursive: true, force: true }))
}

function follow(child: ChildProcess, pid: () => number, remove: () => void): Container {
  let output = ''
  let changed = () => {}
  let isOver = false
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', chunk => {
      output += chunk
      changed()
    })
  // Ends a container that a failed test left behind.
  const leave = () => {
    if (pid()) process.kill(pid(), 'SIGKILL')
  }
  process.once('exit', leave)
  const ended = once(child, 'close').then(([code]) => {
    process.off('exit', leave)
    remove()
    isOver = true
    changed()
    return Number(code)
  })
  return {
    pid,
    until: async pattern => {
      for (;;) {
        const found = pattern.exec(output)
        if (found) return found
        assert.ok(!isOver, `the container ended:\n${output}`)
        await new Promise<void>(resolve => {
          changed = resolve
        })
      }
    },
    stop: async (signal = 'SIGTERM') => {
      child.kill(signal)
      return ended
    },
    end: async () => ({ code: await ended, output }),
  }
}
