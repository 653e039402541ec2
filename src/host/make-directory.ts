// Creates a directory and its parents with mode 0700.

import { existsSync, mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/** Creates one level at a time: Node's recursive mkdir never returns below /proc. */
export function makeDirectory(path: string): void {
  if (!existsSync(path)) {
    makeDirectory(dirname(path))
    try {
      mkdirSync(path, { mode: 0o700 })
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException
      // Another process may have created it in the meantime.
      if (code === 'EEXIST' && statSync(path, { throwIfNoEntry: false })?.isDirectory()) return
      const why = code === 'EEXIST' ? 'it is a dangling symbolic link' : message
      throw new Error(`cannot create directory ${path}: ${why}`)
    }
  } else if (!statSync(path).isDirectory()) throw new Error(`${path} is not a directory`)
}
