// `platform backup FILE`: writes a consistent, encrypted backup while the server runs. The key ring is not included.

import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { defineCommand, UsageError } from '../host/command.ts'
import { unwritable } from '../host/fs-errors.ts'
import { type BackupOptions, type Summary, writeBackup } from '../storage/backup.ts'
import { backupFiles, dataFlags, resolveData } from './data-flags.ts'

export const backup = defineCommand({
  words: ['backup'],
  what: 'Back up a data directory. Works while its server runs.',
  examples: [
    { what: 'To a file', command: 'platform backup platform.backup --data data' },
    { what: 'To another machine', command: 'platform backup - --data data | ssh elsewhere "cat > platform.backup"' },
  ],
  flags: {
    ...dataFlags,
    replace: { type: 'switch', what: 'Replace an existing file after the new backup is complete.' },
  },
  positionals: [{ name: 'FILE', what: 'the file to write, or - for standard output' }],
  run: async ({ flags, words: [file = ''] }, io) => {
    if (file === '-' && io.isTerminal) throw new UsageError(['a backup is binary: write it to a file or a pipe'])
    if (statSync(file, { throwIfNoEntry: false })?.isDirectory())
      throw new UsageError([`cannot write ${file}: it is a directory; name a file`])
    if (existsSync(file) && !flags.replace)
      throw new UsageError([`${file} already exists: choose another file, or use --replace`])
    const { directory, ring } = await resolveData(flags, io.env)
    const database = join(directory, 'platform.db')
    if (!existsSync(database))
      throw new UsageError([`${directory} has no platform.db: set --data to the directory of a server`])
    const { keys, from } = ring()
    const [key] = keys
    if (!key) throw new Error(`${from} contains no key`)
    let summary: Summary | undefined
    const options: BackupOptions = {
      file: database,
      files: Object.fromEntries(
        backupFiles.flatMap(name => {
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
      `platform: ${summary?.objects} objects at revision ${summary?.revision}; ${from} decrypts it: store that file separately\n`,
    )
    return 0
  },
})

/** Waits for the write, to respect backpressure. */
const toStdout = (part: Buffer) =>
  new Promise<void>((resolve, reject) => process.stdout.write(part, error => (error ? reject(error) : resolve())))

/** Writes atomically with mode 0600. */
async function toFile(file: string, options: BackupOptions): Promise<void> {
  const temporary = `${file}.${process.pid}.tmp`
  const handle = await open(temporary, 'wx', 0o600).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw unwritable(file, error)
    throw new UsageError([`cannot write ${file}: the directory does not exist`])
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
