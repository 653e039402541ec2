// Makes a directory for its owner alone, and those above it. data-directory.ts, files.ts and lock.ts call it.

import { existsSync, mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/** Step by step: asked to make all at once below /proc, Node never comes back. */
export function makeDirectory(path: string): void {
  if (!existsSync(path)) {
    makeDirectory(dirname(path))
    try {
      mkdirSync(path, { mode: 0o700 })
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException
      // Another may have been quicker.
      if (code === 'EEXIST' && statSync(path, { throwIfNoEntry: false })?.isDirectory()) return
      const why = code === 'EEXIST' ? 'it is a link that leads nowhere' : message
      throw new Error(`the directory ${path} cannot be made: ${why}`)
    }
  } else if (!statSync(path).isDirectory()) throw new Error(`${path} is a file`)
}
