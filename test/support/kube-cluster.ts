// A real Kubernetes API server and its etcd, if KUBE_APISERVER and ETCD name binaries: started in order, killed, and restarted.
// Restarts use the same data.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Access } from '../../src/transport/cluster-config.ts'
import { openTransport } from '../../src/transport/transport.ts'
import { type KubeWishes, prepareKube } from './kube-arguments.ts'

export type KubeBinaries = { readonly apiserver: string; readonly etcd: string }

const { KUBE_APISERVER: apiserver, ETCD: etcd, KUBE_WITHIN: within = '60000' } = process.env
/** undefined: the suites run against this project's own server. */
export const kubeBinaries: KubeBinaries | undefined = apiserver && etcd ? { apiserver, etcd } : undefined

/** Namespaces of the suites, which real servers must have. */
export const kubeNamespaces = ['default', 'team', 'team-default', 'other', 'c', 'b-x-c']
const mostSaid = 40

export type KubeCluster = {
  readonly access: Access
  readonly kubeconfig: string
  /** The running processes, etcd first. */
  pids(): readonly number[]
  /** Restarts at the same address and on the same data. Rejects with the output if one exits or is not ready in time. */
  start(): Promise<void>
  /** Kills both with SIGKILL. */
  kill(): Promise<void>
  /** Stops both and removes their data. */
  close(): Promise<void>
}

/** Ends with the test process, and does not keep it alive. */
export async function startKube(binaries: KubeBinaries, wishes?: KubeWishes): Promise<KubeCluster> {
  const directory = mkdtempSync(join(tmpdir(), 'platform-kube-'))
  const { access, kubeconfig, etcdArgs, apiserverArgs, store } = await prepareKube(directory, wishes)
  let running: Running[] = []
  const kill = async () => {
    const ending = running.splice(0)
    await Promise.all(ending.map(one => one.kill()))
  }
  const leave = () => {
    for (const { child } of running) child.kill('SIGKILL')
    rmSync(directory, { recursive: true, force: true })
  }
  const start = async () => {
    const run = async (file: string, args: readonly string[], isReady: () => Promise<boolean>) => {
      const one = runProgram(file, args)
      running = [...running, one]
      await ready(one, isReady)
    }
    try {
      await run(binaries.etcd, etcdArgs, async () => (await fetch(`${store}/health`)).ok)
      await run(binaries.apiserver, apiserverArgs, () => isOk(access, 'GET', '/readyz'))
      for (const name of kubeNamespaces) await makeNamespace(access, name)
    } catch (error) {
      const said = running.map(one => one.said()).join('\n')
      await kill()
      throw new Error(`${(error as Error).message}; what they said last:\n${said}`)
    }
  }
  const close = async () => {
    await kill()
    process.off('exit', leave)
    rmSync(directory, { recursive: true, force: true })
  }
  process.once('exit', leave)
  await start().catch(async error => {
    await close()
    throw error
  })
  return { access, kubeconfig, pids: () => running.map(({ child }) => child.pid ?? 0), start, kill, close }
}

type Running = {
  readonly child: ChildProcess
  readonly ended: () => string | undefined
  said(): string
  kill(): Promise<void>
}

function runProgram(file: string, args: readonly string[]): Running {
  const said: string[] = []
  let ended: string | undefined
  const child = spawn(file, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  child.stderr.on('data', (chunk: Buffer) => {
    said.push(...chunk.toString().split('\n').filter(Boolean))
    said.splice(0, said.length - mostSaid)
  })
  child.on('error', error => {
    ended ??= `${file} could not be started: ${error.message}`
  })
  child.on('exit', (code, signal) => {
    ended ??= `${file} ended with ${code ?? signal}`
  })
  child.unref()
  ;(child.stderr as Socket).unref()
  return {
    child,
    ended: () => ended,
    said: () => said.join('\n'),
    async kill() {
      if (ended !== undefined) return
      child.ref()
      child.kill('SIGKILL')
      await once(child, 'exit')
    },
  }
}

async function ready({ ended }: Running, isReady: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + Number(within)
  while (!(await isReady().catch(() => false))) {
    const why = ended()
    if (why !== undefined) throw new Error(`${why} before it was ready`)
    if (Date.now() > end) throw new Error(`not ready within ${within} ms`)
    await pause(50)
  }
}

async function isOk(access: Access, method: string, path: string, body?: object): Promise<boolean> {
  return (await ask(access, method, path, body)) === 200
}

async function ask(access: Access, method: string, path: string, body?: object): Promise<number> {
  const transport = openTransport(access, { env: {}, now: Date.now })
  const headers = { 'Content-Type': 'application/json' }
  try {
    const answer = await transport.fetch(`${access.server}${path}`, {
      ...{ method, headers },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    return answer.status
  } finally {
    transport.close()
  }
}

async function makeNamespace(access: Access, name: string): Promise<void> {
  const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }
  const status = await ask(access, 'POST', '/api/v1/namespaces', body)
  if (status !== 201 && status !== 409) throw new Error(`the namespace ${name} could not be made: ${status}`)
}
