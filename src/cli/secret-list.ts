// `platform list secrets`: which there are and which nobody reads, found out without reading them (D35).

import type { Kind } from '../api/kind.ts'
import type { Resource } from '../api/object.ts'
import { listAll } from '../client/follow.ts'
import { cellsIn } from '../client/rows.ts'
import { lastReadColumn } from '../kinds/last-read.ts'
import { SharedSecret } from '../kinds/shared-secret.ts'
import { defineCommand, type Io } from './command.ts'
import { readDuration } from './duration.ts'
import { contextFlag, projectFlag } from './flags.ts'
import { getFlags, selectionOf, show } from './get.ts'
import { type PrintOptions, printObjects } from './print.ts'
import { secretKind } from './secret.ts'
import { openSession } from './session.ts'

export const listSecrets = defineCommand({
  words: ['list', 'secrets'],
  what: 'List the secrets you may see; with -o json or yaml their values, too, which counts as reading.',
  examples: [
    { what: 'In the namespace of the context', command: 'platform list secrets' },
    { what: 'Those that nobody has read for long', command: 'platform list secrets -A --unused 90d' },
  ],
  flags: {
    ...getFlags,
    ...contextFlag,
    ...projectFlag,
    unused: { type: 'text', value: 'TIME', what: 'Only those that nobody has read for so long, such as 90d.' },
  },
  run: async ({ flags }, io) => {
    const kind = secretKind(flags)
    if (flags.unused === undefined)
      return show(io, flags, kind === SharedSecret ? 'sharedsecrets' : 'projectsecrets', [])
    const since = io.now() - readDuration('--unused', flags.unused) * 1000
    const session = await openSession(io, flags)
    try {
      const selection = selectionOf(session, kind, flags)
      const all = await Array.fromAsync(listAll(session.rows, kind, selection))
      const unused = all.filter(row => readAt(row) < since)
      printUnused(io, kind, unused, { ...flags, ...selection, withNamespace: flags['all-namespaces'] })
      return 0
    } finally {
      session.close()
    }
  },
})

/** What nobody has read yet is as old as it is. */
function readAt(row: Resource): number {
  const last = lastReadOf(row) ?? row.metadata.creationTimestamp
  return last === undefined ? 0 : Date.parse(last)
}

function lastReadOf(row: Resource): string | undefined {
  const cell = cellsIn(row)?.[lastReadColumn.name]
  return typeof cell === 'string' && cell !== 'never' ? cell : undefined
}

/** For programs too it is metadata and the time alone: whoever looks for what is not read must not read it. */
function printUnused(io: Io, kind: Kind, rows: readonly Resource[], options: PrintOptions): void {
  const isWhole = options.output === 'json' || options.output === 'yaml'
  const objects = isWhole
    ? rows.map(row => {
        const lastRead = lastReadOf(row)
        const { apiVersion, kind: name } = kind
        return { apiVersion, kind: name, metadata: row.metadata, ...(lastRead ? { status: { lastRead } } : {}) }
      })
    : rows
  printObjects(io, kind, objects, { ...options, isList: true })
}
