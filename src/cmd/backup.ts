// `platform backup FILE`: everything that is stored, at one revision, while the server runs. Sealed with the key ring, which is not in it.

import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { defineCommand, UsageError } from '../host/command.ts'
import { unwritable } from '../host/fs-errors.ts'
import { type BackupOptions, type Summary, writeBackup } from '../storage/backup.ts'
import { carried, dataFlags, dataPlace } from './data-flags.ts'

export const backup = defineCommand({
  words: ['backup'],
  what: 'Write a backup of a data directory, while its server runs or not.',
  examples: [
    { what: 'Into a file', command: 'platform backup platform.backup --data data' },
    { what: 'To somewhere else', command: 'platform backup - --data data | ssh elsewhere "cat > platform.backup"' },
  ],
  flags: {
    ...dataFlags,
    replace: { type: 'switch', what: 'Write over the file that is there, once the new one is whole.' },
  },
  positionals: [{ name: 'FILE', what: 'where to write it, - for standard output' }],
  run: async ({ flags, words: [file = ''] }, io) => {
    if (file === '-' && io.isTerminal) throw new UsageError(['a backup is no text: send it into a file or a pipe'])
    if (statSync(file, { throwIfNoEntry: false })?.isDirectory())
      throw new UsageError([`cannot write ${file}: it is a directory; name a file`])
    if (existsSync(file) && !flags.replace)
      throw new UsageError([`${file} is there already: name another file, or say --replace`])
    const { directory, ring } = await dataPlace(flags, io.env)
    const database = join(directory, 'platform.db')
    if (!existsSync(database))
      throw new UsageError([`${directory} has no platform.db; --data names the directory of a server`])
    const { keys, from } = ring()
    const [key] = keys
    if (!key) throw new Error(`${from} holds no key`)
    let summary: Summary | undefined
    const options: BackupOptions = {
      file: database,
      files: Object.fromEntries(
        carried.flatMap(name => {
          const path = join(directory, name)
          return existsSync(path) ? [[name, readFileSync(path)]] : []
        }),
      ),
      key,
      random: size => randomBytes(size),
      now: io.now,
      done: found => {
        summary = found
      },
    }
    if (file === '-') for (const part of writeBackup(options)) await toStdout(part)
    else await toFile(file, options)
    io.err(
      `platform: ${summary?.objects} objects at revision ${summary?.revision}; ${from} opens it: keep that elsewhere\n`,
    )
    return 0
  },
})

/** No faster than it is taken. */
const toStdout = (part: Buffer) =>
  new Promise<void>((resolve, reject) => process.stdout.write(part, error => (error ? reject(error) : resolve())))

/** Whole or not at all, and readable by its owner alone. */
async function toFile(file: string, options: BackupOptions): Promise<void> {
  const temporary = `${file}.${process.pid}.tmp`
  const handle = await open(temporary, 'wx', 0o600).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw unwritable(file, error)
    throw new UsageError([`cannot write ${file}: there is no such directory`])
  })
  try {
    for (const part of writeBackup(options)) await handle.writeFile(part)
    await handle.sync()
    await handle.close()
    await rename(temporary, file)
  } catch (error) {
    await handle.close().catch(() => {})
    await rm(temporary, { force: true })
    throw (error as NodeJS.ErrnoException).syscall ? unwritable(file, error) : error
  }
}
