// A program that takes a lock whenever it is told to, and says whether it was alone with it. lock.test.ts starts two of them.

import { mkdir, rmdir, stat } from 'node:fs/promises'
import { openFiles } from '../../src/bin/files.ts'

const files = openFiles(process.env, () => {})

/** Whether nobody else was inside. */
async function take(path: string): Promise<boolean> {
  return files.locked(path, async () => {
    const inside = `${path}.inside`
    const isFirst = await mkdir(inside).then(
      () => true,
      () => false,
    )
    // Long enough for the other one to come in, if it can.
    for (let look = 0; look < 20; look++) await stat(path).catch(() => undefined)
    if (isFirst) await rmdir(inside)
    return isFirst
  })
}

process.on('message', (path: string) => {
  void take(path).then(alone => process.send?.(alone))
})
process.send?.('ready')
