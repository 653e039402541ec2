// A lock file beside a file, as kubectl keeps one beside a kubeconfig: one program at a time changes the file. It is not a lock of the
// operating system, because kubectl would not see that, and network file systems do not always share it.

import type { BigIntStats } from 'node:fs'
import { type FileHandle, open, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { unwritable } from './fs-errors.ts'
import { makeDirectory } from './make-directory.ts'

export type LockOptions = {
  /** Says what is waited for, where that takes long. */
  readonly tell: (text: string) => void
  /** Milliseconds without a touch after which a lock counts as left behind by a killed program. */
  readonly staleAfter?: number
  readonly tellAfter?: number
  readonly touchEvery?: number
}

/** The lock is touched for as long as the work takes, which may be waiting for a person before a keychain. */
export async function locked<T>(path: string, work: () => Promise<T>, options: LockOptions): Promise<T> {
  const { touchEvery = 2000 } = options
  const lock = `${path}.lock`
  try {
    makeDirectory(dirname(path))
  } catch (error) {
    throw unwritable(path, error)
  }
  const handle = await take(path, lock, options)
  const touching = setInterval(() => {
    const now = new Date()
    void handle.utimes(now, now).catch(() => {})
  }, touchEvery).unref()
  try {
    return await work()
  } finally {
    clearInterval(touching)
    await release(lock, handle)
  }
}

async function take(path: string, lock: string, options: LockOptions): Promise<FileHandle> {
  const { tell, staleAfter = 10_000, tellAfter = 1000 } = options
  const began = performance.now()
  const leftBehind = openWatch(staleAfter)
  let isTold = false
  for (;;) {
    const handle = await makeAlone(lock)
    if (handle) return handle
    if (await removeStale(lock, leftBehind)) continue
    if (!isTold && performance.now() - began >= tellAfter) {
      isTold = true
      const patience = `one that was killed is not waited for longer than ${Math.ceil(staleAfter / 1000)} s`
      tell(`platform: waiting for another program that changes ${path} and holds ${lock}; ${patience}\n`)
    }
    await setTimeout(20)
  }
}

/** undefined: somebody else has it. */
async function makeAlone(file: string): Promise<FileHandle | undefined> {
  return open(file, 'wx', 0o600).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EEXIST') return undefined
    throw unwritable(file, error)
  })
}

type Seen = Pick<BigIntStats, 'ino' | 'dev' | 'mtimeNs'>

const look = (file: string): Promise<Seen | undefined> => stat(file, { bigint: true }).catch(() => undefined)

const isSame = (one: Seen, other: Seen | undefined) =>
  one.ino === other?.ino && one.dev === other.dev && one.mtimeNs === other.mtimeNs

/** A longer gap between two looks counts as this: a process that was stopped itself saw nothing meanwhile. */
const mostBetweenLooks = 100

type LeftBehind = (file: string) => Promise<Seen | undefined>

/** Returns a file that nobody touched while this process watched it for that long. It ignores the clock, which may jump. */
function openWatch(after: number): LeftBehind {
  const seen = new Map<string, { readonly found: Seen; readonly at: number; readonly still: number }>()
  return async file => {
    const [at, found, before] = [performance.now(), await look(file), seen.get(file)]
    if (!found) return undefined
    const isStill = before !== undefined && isSame(found, before.found)
    const still = isStill ? before.still + Math.min(at - before.at, mostBetweenLooks) : 0
    seen.set(file, { found, at, still })
    return still >= after ? found : undefined
  }
}

/**
 * Many may find the same lock left behind, and a slow one must not remove the next one's: who wants to remove it first makes a file
 * that is named after this very lock, alone, and then looks again. Where that one was killed, too, its file is removed likewise.
 */
async function removeStale(file: string, leftBehind: LeftBehind): Promise<boolean> {
  const found = await leftBehind(file)
  if (!found) return false
  const right = `${file}.${found.ino}-${found.mtimeNs}`
  const handle = await makeAlone(right)
  if (!handle) return removeStale(right, leftBehind)
  try {
    if (isSame(found, await look(file))) await rm(file, { force: true })
    return true
  } finally {
    await rm(right, { force: true })
    await handle.close()
  }
}

/** One that was taken from a program that stood still for long is another's now. While it is open, no other file has its number. */
async function release(lock: string, handle: FileHandle): Promise<void> {
  try {
    const [own, there] = [await handle.stat({ bigint: true }), await look(lock)]
    if (there?.ino === own.ino && there.dev === own.dev) await rm(lock, { force: true })
  } finally {
    await handle.close()
  }
}
