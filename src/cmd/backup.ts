// `platform backup FILE`: writes a consistent, encrypted backup while servers run. The key ring is not included.

import { randomBytes } from 'node:crypto'
import { existsSync, statSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { etcdOf } from '../apiserver/etcd-settings.ts'
import { defineCommand, UsageError } from '../host/command.ts'
import { unwritable } from '../host/fs-errors.ts'
import { writeBackup } from '../storage/backup.ts'
import { type Records, type Summary, summarized } from '../storage/records.ts'
import { readDatabase } from '../storage/sqlite/copy.ts'
import { type DataDirectory, filesIn, resolveData, storageFlags } from './data-flags.ts'

export const backup = defineCommand({
  words: ['backup'],
  what: 'Back up a data directory, or an installation in etcd. Works while servers run.',
  examples: [
    { what: 'To a file', command: 'platform backup platform.backup --data data' },
    {
      what: 'From etcd',
      command: 'platform backup platform.backup --data data --storage etcd --etcd-endpoints https://10.0.0.1:2379',
    },
    { what: 'To another machine', command: 'platform backup - --data data | ssh elsewhere "cat > platform.backup"' },
  ],
  flags: {
    ...storageFlags,
    replace: { type: 'switch', what: 'Replace an existing file after the new backup is complete.' },
  },
  positionals: [{ name: 'FILE', what: 'the file to write, or - for standard output' }],
  run: async ({ flags, words: [file = ''] }, io) => {
    if (file === '-' && io.isTerminal) throw new UsageError(['a backup is binary: write it to a file or a pipe'])
    if (statSync(file, { throwIfNoEntry: false })?.isDirectory())
      throw new UsageError([`cannot write ${file}: it is a directory; name a file`])
    if (existsSync(file) && !flags.replace)
      throw new UsageError([`${file} already exists: choose another file, or use --replace`])
    const data = await resolveData(flags, io.env)
    const etcd = etcdOf(data.settings)
    if (!etcd) requireDatabase(data)
    const ring = data.ring()
    const [key] = ring.keys
    if (!key) throw new Error(`${ring.from} contains no key`)
    let summary: Summary | undefined
    const write = async (records: Records) => {
      const whole = summarized(records, found => {
        summary = found
      })
      const parts = writeBackup(whole, key, size => randomBytes(size))
      if (file === '-') for await (const part of parts) await toStdout(part)
      else await toFile(file, parts)
    }
    if (etcd) {
      // Loaded only if it is used, because it has many modules.
      const { openRecords, withEtcd } = await import('./etcd-copy.ts')
      await withEtcd(etcd, async client => write((await openRecords({ client, etcd, ring, now: io.now }))()))
    } else await write(readDatabase({ file: databaseIn(data), files: filesIn(data.directory), now: io.now }))
    io.err(
      `platform: ${summary?.objects} objects at revision ${summary?.revision}; ${ring.from} decrypts it: store that file separately\n`,
    )
    return 0
  },
})

const databaseIn = ({ directory }: DataDirectory) => join(directory, 'platform.db')

function requireDatabase(data: DataDirectory): void {
  if (!existsSync(databaseIn(data)))
    throw new UsageError([`${data.directory} has no platform.db: set --data to the directory of a server`])
}

/** Waits for the write, to respect backpressure. */
const toStdout = (part: Buffer) =>
  new Promise<void>((resolve, reject) => process.stdout.write(part, error => (error ? reject(error) : resolve())))

/** Writes atomically with mode 0600. */
async function toFile(file: string, parts: AsyncIterable<Buffer>): Promise<void> {
  const temporary = `${file}.${process.pid}.tmp`
  const handle = await open(temporary, 'wx', 0o600).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw unwritable(file, error)
    throw new UsageError([`cannot write ${file}: the directory does not exist`])
  })
  try {
    for await (const part of parts) await handle.writeFile(part)
    await handle.sync()
    await handle.close()
    await rename(temporary, file)
  } catch (error) {
    await handle.close().catch(() => {})
    await rm(temporary, { force: true })
    throw (error as NodeJS.ErrnoException).syscall ? unwritable(file, error) : error
  }
}
