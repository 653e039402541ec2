// Locks a file with a lock file next to it, as kubectl does for a kubeconfig. It is not an operating system lock,
// because kubectl would not see that, and network file systems do not always share it.

import type { BigIntStats } from 'node:fs'
import { type FileHandle, open, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { unwritable } from './fs-errors.ts'
import { makeDirectory } from './make-directory.ts'

export type LockOptions = {
  /** Called once if acquiring the lock takes long. */
  readonly notify: (text: string) => void
  /** Milliseconds without a touch after which a lock is stale, because its program was killed. */
  readonly staleAfter?: number
  readonly notifyAfter?: number
  readonly touchEvery?: number
}

/** Touches the lock until the work is done, which may take long: a keychain may prompt the user. */
export async function locked<T>(path: string, work: () => Promise<T>, options: LockOptions): Promise<T> {
  const { touchEvery = 2000 } = options
  const lock = `${path}.lock`
  try {
    makeDirectory(dirname(path))
  } catch (error) {
    throw unwritable(path, error)
  }
  const handle = await acquire(lock, options)
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

async function acquire(lock: string, options: LockOptions): Promise<FileHandle> {
  const { notify, staleAfter = 10_000, notifyAfter = 1000 } = options
  const began = performance.now()
  const findStale = staleDetector(staleAfter)
  let isNotified = false
  for (;;) {
    const handle = await createExclusive(lock)
    if (handle) return handle
    if (await removeStale(lock, findStale)) continue
    if (!isNotified && performance.now() - began >= notifyAfter) {
      isNotified = true
      const expiry = `a stale lock expires after ${Math.ceil(staleAfter / 1000)} s`
      notify(`platform: waiting for another program to release ${lock}; ${expiry}\n`)
    }
    await setTimeout(20)
  }
}

/** Returns undefined if the file exists. */
async function createExclusive(file: string): Promise<FileHandle | undefined> {
  return open(file, 'wx', 0o600).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EEXIST') return undefined
    throw unwritable(file, error)
  })
}

type LockStat = Pick<BigIntStats, 'ino' | 'dev' | 'mtimeNs'>

const statFile = (file: string): Promise<LockStat | undefined> => stat(file, { bigint: true }).catch(() => undefined)

const isSame = (one: LockStat, other: LockStat | undefined) =>
  one.ino === other?.ino && one.dev === other.dev && one.mtimeNs === other.mtimeNs

/** Caps the time between two checks, because a suspended process observes nothing. */
const maxCheckInterval = 100

type FindStale = (file: string) => Promise<LockStat | undefined>

/** Finds a file that nobody touched while this process observed it for `after` ms. Ignores the wall clock, which may jump. */
function staleDetector(after: number): FindStale {
  const seen = new Map<string, { readonly found: LockStat; readonly at: number; readonly still: number }>()
  return async file => {
    const [at, found, before] = [performance.now(), await statFile(file), seen.get(file)]
    if (!found) return undefined
    const isStill = before !== undefined && isSame(found, before.found)
    const still = isStill ? before.still + Math.min(at - before.at, maxCheckInterval) : 0
    seen.set(file, { found, at, still })
    return still >= after ? found : undefined
  }
}

/**
 * Several programs may find the same stale lock, and a slow one must not remove the next lock. The remover first creates a guard file
 * named after this lock (inode and mtime), then checks again. If the remover is killed, its guard file becomes stale and is removed too.
 */
async function removeStale(file: string, findStale: FindStale): Promise<boolean> {
  const found = await findStale(file)
  if (!found) return false
  const guard = `${file}.${found.ino}-${found.mtimeNs}`
  const handle = await createExclusive(guard)
  if (!handle) return removeStale(guard, findStale)
  try {
    if (isSame(found, await statFile(file))) await rm(file, { force: true })
    return true
  } finally {
    await rm(guard, { force: true })
    await handle.close()
  }
}

/** Another program may have taken over the lock. Comparing inodes is safe while our handle is open: the inode is not reused. */
async function release(lock: string, handle: FileHandle): Promise<void> {
  try {
    const [own, current] = [await handle.stat({ bigint: true }), await statFile(lock)]
    if (current?.ino === own.ino && current.dev === own.dev) await rm(lock, { force: true })
  } finally {
    await handle.close()
  }
}
