// A program that takes locks on demand, and reports whether it held each alone. file-lock.test.ts starts two of them.

import { mkdir, rmdir, stat } from 'node:fs/promises'
import { locked } from '../../src/host/file-lock.ts'

const options = { notify: () => {}, staleAfter: 1000, touchEvery: 20 }

/** Whether no other process held the lock. */
async function take(path: string): Promise<boolean> {
  const work = async () => {
    const inside = `${path}.inside`
    const isFirst = await mkdir(inside).then(
      () => true,
      () => false,
    )
    // Enough time for the other process to take the lock, if that is possible.
    for (let look = 0; look < 20; look++) await stat(path).catch(() => undefined)
    if (isFirst) await rmdir(inside)
    return isFirst
  }
  return locked(path, work, options)
}

process.on('message', (paths: string[]) => {
  void Promise.all(paths.map(take)).then(alone => process.send?.(alone))
})
process.send?.('ready')
