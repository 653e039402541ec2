// One program at a time on a file: a lock beside it, as kubectl keeps one beside a kubeconfig. files.ts calls it. No lock of the system, as
// storage/data-lock.ts takes one: kubectl would not see it, and on a home that is shared by a network it may be nobody else's.

import type { BigIntStats } from 'node:fs'
import { type FileHandle, open, readFile, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { unwritable } from './fs-errors.ts'
import { holderText, isGone, mostHolderBytes } from './lock-owner.ts'
import { makeDirectory } from './make-directory.ts'

export type LockOptions = {
  /** Says what is waited for, where that takes long. */
  readonly tell: (text: string) => void
  /** Milliseconds of looking on after which a lock that nobody touched was left by a program that was killed, where nothing else tells that it is gone. */
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
  const handle = await open(file, 'wx', 0o600).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EEXIST') return undefined
    throw unwritable(file, error)
  })
  // Where that cannot be written it is a lock all the same.
  await handle?.writeFile(holderText()).catch(() => {})
  return handle
}

type Seen = Pick<BigIntStats, 'ino' | 'dev' | 'mtimeNs'> & { readonly holder: string }

async function look(file: string): Promise<Seen | undefined> {
  const found = await stat(file, { bigint: true }).catch(() => undefined)
  if (!found) return undefined
  const { ino, dev, mtimeNs, size } = found
  const isOurs = found.isFile() && size <= mostHolderBytes
  return { ino, dev, mtimeNs, holder: isOurs ? await readFile(file, 'utf8').catch(() => '') : '' }
}

/** The next one may have its number, and on some disks its time as well. */
const isSame = (one: Seen, other: Seen | undefined) =>
  one.ino === other?.ino && one.dev === other.dev && one.mtimeNs === other.mtimeNs && one.holder === other.holder

/** Milliseconds between two looks count no more than so: whoever stood still themselves saw nobody else do it. */
const mostBetweenLooks = 100

type LeftBehind = (file: string) => Promise<Seen | undefined>

/**
 * Answers a file whose holder is gone, or that nobody touched for so long before our own eyes. What time it was touched at says
 * nothing: clocks jump.
 */
function openWatch(after: number): LeftBehind {
  const seen = new Map<string, { readonly found: Seen; readonly at: number; readonly still: number }>()
  return async file => {
    const [at, found, before] = [performance.now(), await look(file), seen.get(file)]
    if (!found || isGone(found.holder)) return found
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
