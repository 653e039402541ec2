// Starts the measured programs as separate processes, so that the measurement does not affect them.

import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'

export type Running = { readonly url: string; readonly pid: number; stop(): Promise<void> }

const root = new URL('..', import.meta.url).pathname

async function start(args: readonly string[], ready: RegExp): Promise<{ child: ChildProcess; match: RegExpExecArray }> {
  const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
    text += chunk
    const match = ready.exec(text)
    if (match) {
      child.stdout?.resume()
      return { child, match }
    }
  }
  throw new Error(`${args.join(' ')} ended before it was ready:\n${text}`)
}

const stopper = (child: ChildProcess) => () =>
  new Promise<void>(resolve => {
    // The process may have ended already, because Ctrl-C ends all of them.
    if (child.exitCode !== null || child.signalCode !== null) return resolve()
    child.on('exit', () => resolve())
    child.kill('SIGTERM')
  })

export async function startBare(bytes: number): Promise<Running> {
  const { child, match } = await start(['bench/baseline-server.ts', String(bytes)], /ready (\d+)/)
  return { url: `https://127.0.0.1:${match[1]}`, pid: child.pid as number, stop: stopper(child) }
}

export type Server = Running & { readonly directory: string; readonly key: string; readonly http: string }

export async function startServer(
  directory = mkdtempSync(join(tmpdir(), 'platform-bench-')),
  extra: readonly string[] = [],
  nodeFlags: readonly string[] = [],
): Promise<Server> {
  const flags = [
    '--https',
    '127.0.0.1:0',
    '--http',
    '127.0.0.1:0',
    '--log-level',
    'warn',
    '--limits-reads',
    '5000',
    '--limits-writes',
    '5000',
    ...extra,
  ]
  const { child, match } = await start(
    [...nodeFlags, 'bin/platform.js', 'serve', '--data', directory, ...flags],
    /is ready: (\S+) (\S+)/,
  )
  const key = readFileSync(join(directory, 'admin.key'), 'utf8').trim()
  return {
    url: match[1] as string,
    http: match[2] as string,
    pid: child.pid as number,
    directory,
    key,
    stop: stopper(child),
  }
}

export const remove = (directory: string) => rmSync(directory, { recursive: true, force: true })

/** Resident bytes of a process. */
export const residentOf = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024

/** CPU milliseconds of a process and its threads, in steps of 10 ms. More reliable than a rate on a busy machine. */
export function cpuOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}

export async function inParallel(total: number, work: (index: number) => Promise<void>): Promise<void> {
  let next = 0
  const worker = async () => {
    for (let index = next++; index < total; index = next++) await work(index)
  }
  await Promise.all(Array.from({ length: 16 }, worker))
}

export async function until(isSo: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + 300_000
  while (!(await isSo())) {
    if (Date.now() > end) throw new Error('it did not come true in five minutes')
    await pause(50)
  }
}

/** Rounded. */
export const quantile = (sorted: readonly number[], part: number): number =>
  Math.round(sorted[Math.floor(sorted.length * part)] as number)
