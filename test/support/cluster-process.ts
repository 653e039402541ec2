// Clusters for the syncer as separate processes, which tests can kill and restart; and the syncer as a process.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Resources } from '../../src/api/resources.ts'
import { reachWith } from './cluster.ts'
import { type KubeBinaries, kubeBinaries, startKube } from './kube-cluster.ts'
import { kubeconfigOf } from './kubeconfig.ts'

const serverProgram = fileURLToPath(new URL('./cluster-server.ts', import.meta.url))
const within = 60_000

export type ClusterProcess = {
  readonly server: string
  readonly kubeconfig: string
  readonly resources: Resources
  /** Kills it with SIGKILL. */
  kill(): Promise<void>
  /** Starts it again on the same directory and port. */
  start(): Promise<void>
  /** Stops it and removes its directory. */
  close(): Promise<void>
}

/** A real one, if KUBE_APISERVER and ETCD name binaries. */
export const startCluster = (): Promise<ClusterProcess> =>
  kubeBinaries ? startKubeCluster(kubeBinaries) : startOwnCluster()

async function startKubeCluster(binaries: KubeBinaries): Promise<ClusterProcess> {
  const { access, kubeconfig, kill, start, close: end } = await startKube(binaries)
  const { resources, close } = reachWith(access)
  return {
    server: access.server,
    kubeconfig,
    resources,
    kill,
    start,
    async close() {
      close()
      await end()
    },
  }
}

export async function startOwnCluster(): Promise<ClusterProcess> {
  const directory = mkdtempSync(join(tmpdir(), 'platform-cluster-'))
  let child: ChildProcess | undefined
  let server = ''
  const start = async () => {
    const port = server ? new URL(server).port : '0'
    const started = await startProgram([serverProgram, directory, port], /^cluster: (\S+)$/m)
    child = started.child
    server = started.found
  }
  const leave = () => {
    child?.kill('SIGKILL')
    rmSync(directory, { recursive: true, force: true })
  }
  process.once('exit', leave)
  await start()
  const kubeconfig = join(directory, 'kubeconfig')
  writeFileSync(kubeconfig, kubeconfigOf(server))
  const { resources, close } = reachWith({ server, namespace: 'default', insecure: false })
  return {
    server,
    kubeconfig,
    resources,
    kill: () => killProgram(child),
    start,
    async close() {
      close()
      await killProgram(child)
      process.off('exit', leave)
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

export async function killProgram(child: ChildProcess | undefined, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
  if (!child || child.exitCode !== null || child.signalCode !== null) return
  child.kill(signal)
  await once(child, 'exit')
}

export type Started = { readonly child: ChildProcess; readonly found: string; printed(): string }

/** Resolves once it has printed the expected text. */
export function startProgram(args: readonly string[], look: RegExp): Promise<Started> {
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { PATH: process.env['PATH'] } })
  let printed = ''
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill('SIGKILL')
      reject(new Error(`${args[0]} was not ready in time; it printed:\n${printed}`))
    }, within)
    child.on('exit', code => {
      clearTimeout(timer)
      reject(new Error(`${args[0]} ended with ${code}; it printed:\n${printed}`))
    })
    const take = (chunk: Buffer) => {
      if (printed.length < 1_000_000) printed += chunk
      const found = look.exec(printed)
      if (!found) return
      clearTimeout(timer)
      resolve({ child, found: found[1] ?? '', printed: () => printed })
    }
    child.stdout.on('data', take)
    child.stderr.on('data', take)
  })
}
