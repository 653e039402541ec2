// `platform restore FILE --data DIR`: a data directory from a backup. Nothing that is there already is touched.

import { createReadStream, existsSync, linkSync, readdirSync, rmSync } from 'node:fs'
import { access, constants } from 'node:fs/promises'
import { join } from 'node:path'
import { defineCommand, UsageError } from '../cli/command.ts'
import { readBackup } from '../storage/backup.ts'
import { verifyFile } from '../storage/verify.ts'
import { openDirectory, writePublic, writeSecret } from './data-directory.ts'
import { carried, dataFlags, dataPlace } from './data-flags.ts'
import { unreadable } from './file-problem.ts'

/** More commits than anyone makes between a backup and the loss of what it was made of. */
const skip = 1_000_000_000

export const restore = defineCommand({
  words: ['restore'],
  what: 'Make a data directory from a backup.',
  examples: [
    {
      what: 'With the key ring put into the new directory first',
      command: 'platform restore platform.backup --data restored',
    },
    {
      what: 'With the key ring elsewhere',
      command: 'platform restore - --data restored --master-key ring.key < platform.backup',
    },
  ],
  flags: dataFlags,
  positionals: [{ name: 'FILE', what: 'the backup, - for standard input' }],
  run: async ({ flags, words: [file = ''] }, io) => {
    if (file !== '-')
      await access(file, constants.R_OK).catch(error => {
        throw unreadable(file, error)
      })
    const { directory, ring, settings } = await dataPlace(flags, io.env)
    const there = existsSync(directory) ? readdirSync(directory).filter(name => name !== 'master.key') : []
    if (there.length)
      throw new UsageError([
        `${directory} is not empty (${there.slice(0, 3).join(', ')}${there.length > 3 ? ', …' : ''}); name a new directory with --data, or an empty one`,
      ])
    if (!settings.masterKey && !existsSync(join(directory, 'master.key')))
      throw new UsageError([
        `the key ring is not in the backup: put it into ${directory} as master.key, or name it with --master-key`,
      ])
    const { keys } = ring()
    openDirectory(directory)
    const made = join(directory, 'platform.db.restoring')
    try {
      const source = file === '-' ? process.stdin : createReadStream(file)
      const { files, objects, revision } = await readBackup({ file: made, source, keys, skip })
      const { damages } = verifyFile(made)
      if (damages.length) throw new Error(`what was written does not read back: ${damages[0]}`)
      for (const name of carried)
        if (files[name])
          (name.endsWith('.key') ? writeSecret : writePublic)(
            join(directory, name),
            Buffer.from(files[name]).toString(),
          )
      // Not over a store that somebody began there meanwhile.
      linkSync(made, join(directory, 'platform.db'))
      rmSync(made)
      io.err(
        `platform: ${objects} objects of revision ${revision} are in ${directory}; the next write is ${revision + skip + 1}\n`,
      )
      io.err(`platform: access keys work as before; the administrator's own is not in a backup: put it into ${directory} as admin.key,
platform: and the next platform serve writes admin.kubeconfig; if it is lost, platform admin reset --data ${directory} makes a new one
`)
      return 0
    } catch (error) {
      for (const name of ['platform.db.restoring', 'platform.db.restoring-journal', ...carried])
        rmSync(join(directory, name), { force: true })
      throw new Error(`${file === '-' ? 'the backup' : file}: ${(error as Error).message}`, { cause: error })
    }
  },
})
