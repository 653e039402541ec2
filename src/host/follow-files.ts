// Follows files: calls back when one of them has changed and is no longer being written.

import { statSync } from 'node:fs'

export type FollowOptions = {
  /** Called for every check, because a configuration file may name other files. */
  readonly files: () => readonly string[]
  readonly changed: () => void
  readonly every?: number
}

/** Returns a function that stops it. */
export function followFiles({ files, changed, every = 1000 }: FollowOptions): () => void {
  let used = stampsOf(files())
  let last = used
  const timer = setInterval(() => {
    const stamp = stampsOf(files())
    // A file that is still being written is read after it stops changing.
    const isSettled = stamp === last
    last = stamp
    if (!isSettled || stamp === used) return
    used = stamp
    changed()
    // The new configuration may name other files.
    used = last = stampsOf(files())
  }, every).unref()
  return () => clearInterval(timer)
}

const stampsOf = (files: readonly string[]): string => files.map(file => `${file} ${stampOf(file)}`).join('\n')

/** The stamp of a file that does not exist, or whose name the system rejects. */
export const missing = 'is missing'

/** By time, size and inode, which also detects the swapped links of mounted secrets. */
export function stampOf(file: string): string {
  try {
    const { mtimeMs, size, ino } = statSync(file)
    return `${mtimeMs}/${size}/${ino}`
  } catch {
    return missing
  }
}
