// `platform verify DIR`: looks at every record, seal and index of a data directory, and names what is wrong.

import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { defineCommand, UsageError } from '../cli/command.ts'
import { kinds } from '../kinds/index.ts'
import { brokenSeals } from '../registry/check-seals.ts'
import { readStored } from '../storage/index.ts'
import type { RingKey } from '../storage/key-ring.ts'
import { openSealer } from '../storage/sealed.ts'
import { verifyFile } from '../storage/verify.ts'
import { type DataPlace, dataFlags, dataPlace } from './data-flags.ts'

const { data: _, ...flags } = dataFlags

export const verify = defineCommand({
  words: ['verify'],
  what: 'Check every record, seal and index of a data directory; 1: something is damaged.',
  examples: [{ what: 'Before a backup is trusted, or after a disk was not', command: 'platform verify data' }],
  flags,
  positionals: [{ name: 'DIR', what: 'the data directory' }],
  run: async ({ flags: asked, words: [given = ''] }, io) => {
    const place = dataPlace(asked, io.env, given)
    const file = join(place.directory, 'platform.db')
    if (!existsSync(file)) throw new UsageError([`${place.directory} has no platform.db: it is no data directory`])
    const keys = ringOf(place)
    const sealer = openSealer({ keys, random: size => randomBytes(size) })
    const { damages, records, revision, otherFormat } = verifyFile(file)
    if (otherFormat !== undefined && !damages.length)
      throw new UsageError([`${file} was not verified: it has ${otherFormat}`])
    // What cannot be read as it was written need not be opened.
    const seals = damages.length ? [] : brokenSeals(readStored(place.directory), kinds, sealer)
    for (const damage of [...damages, ...seals]) io.out(`${damage}\n`)
    const count = damages.length + seals.length
    if (damages.length) io.err('platform: seals are looked at once everything else is whole\n')
    io.err(
      count
        ? `platform: ${count} damages in ${records} records; platform restore makes a new directory from a backup\n`
        : `platform: ${records} records up to revision ${revision}, with their seals and indexes, are as they were written\n`,
    )
    return count ? 1 : 0
  },
})

/** Without it seals cannot be looked at: that is no damage, and nothing was verified. */
function ringOf({ ring }: DataPlace): readonly RingKey[] {
  try {
    return ring().keys
  } catch (error) {
    throw new UsageError([(error as Error).message])
  }
}
