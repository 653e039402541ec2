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
  let used = stampOf(files())
  let last = used
  const timer = setInterval(() => {
    const stamp = stampOf(files())
    // A file that is still being written is read after it stops changing.
    const isSettled = stamp === last
    last = stamp
    if (!isSettled || stamp === used) return
    used = stamp
    changed()
    // The new configuration may name other files.
    used = last = stampOf(files())
  }, every).unref()
  return () => clearInterval(timer)
}

/** By time, size and inode, which also sees the swapped links of mounted secrets. */
const stampOf = (files: readonly string[]): string => files.map(file => `${file} ${stateOf(file)}`).join('\n')

function stateOf(file: string): string {
  try {
    const { mtimeMs, size, ino } = statSync(file)
    return `${mtimeMs}/${size}/${ino}`
  } catch (error) {
    // Missing, or a name that the system rejects.
    return String((error as { readonly code?: unknown }).code)
  }
}
