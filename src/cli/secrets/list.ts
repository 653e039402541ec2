// `platform list secrets`: lists secrets and finds unused ones, without reading their values (D35).

import { ApiError } from '../../api/errors.ts'
import type { Kind } from '../../api/kind.ts'
import type { Resource } from '../../api/object.ts'
import { listAll } from '../../client/list-watch.ts'
import { cellsIn } from '../../client/table-rows.ts'
import { defineCommand, type Io, UsageError } from '../../host/command.ts'
import { readDuration } from '../../host/duration.ts'
import { lastReadColumn } from '../../kinds/last-read.ts'
import { ProjectSecret } from '../../kinds/project-secret.ts'
import { SharedSecret } from '../../kinds/shared-secret.ts'
import { contextFlag, projectFlag } from '../flags.ts'
import { type GetFlags, getFlags, selectionOf, show, sourceOf } from '../get.ts'
import { watchObjects } from '../get-watch.ts'
import { type PrintOptions, printJson, printObjects } from '../print.ts'
import { warnScopeMayHide } from '../scope-denied.ts'
import { openSession, type Session } from '../session.ts'
import { secretKind } from './secret.ts'

export const listSecrets = defineCommand({
  words: ['list', 'secrets'],
  what: 'List global secrets; -A includes project secrets. -o json and yaml include the values, which counts as reading them.',
  examples: [
    { what: 'In the namespace of the context', command: 'platform list secrets' },
    { what: 'Secrets that nobody has read for 90 days', command: 'platform list secrets -A --unused 90d' },
  ],
  flags: {
    ...getFlags,
    ...contextFlag,
    ...projectFlag,
    unused: { type: 'text', value: 'TIME', what: 'Only secrets that nobody has read for this time, such as 90d.' },
  },
  run: async ({ flags }, io) => {
    const { unused, 'all-namespaces': isEverywhere, watch, project } = flags
    const kind = secretKind(flags)
    const kinds = isEverywhere && project === undefined ? ([SharedSecret, ProjectSecret] as const) : ([kind] as const)
    if (watch && unused !== undefined) throw new UsageError(['--unused cannot be combined with -w'])
    if (flags.output === 'value' || (kinds.length === 1 && unused === undefined)) {
      const code = await show(io, flags, [kind.plural])
      const [, ofProject] = /^p-(.+)$/.exec(project === undefined ? (flags.namespace ?? '') : '') ?? []
      if (ofProject) io.err(`To list the secrets of the project: platform list secrets --project ${ofProject}\n`)
      return code
    }
    const before = unused === undefined ? undefined : io.now() - readDuration('--unused', unused) * 1000
    const session = await openSession(io, flags)
    try {
      if (watch) {
        const options = { ...flags, withNamespace: true }
        const selection = selectionOf(session, kind, flags)
        return await watchObjects(io, sourceOf(session, kind, flags), { kinds, names: [], options, selection })
      }
      // A key may be allowed to list only one of the two kinds.
      const found = await Promise.all(
        kinds.map(one =>
          foundOf(session, one, flags, before).catch(error => {
            if (one === kind || !(error instanceof ApiError) || error.code !== 403) throw error
            io.err(`platform: ${one.plural} skipped: ${error.message}\n`)
            return { kind: one, objects: [] }
          }),
        ),
      )
      const { namespace } = selectionOf(session, kind, flags)
      const filterText = unused === undefined ? '' : ` that nobody has read for ${unused}`
      printFound(io, found, { ...flags, namespace, withNamespace: isEverywhere, filterText })
      if (!found.some(({ objects }) => objects.length)) await warnScopeMayHide(io, session)
      return 0
    } finally {
      session.close()
    }
  },
})

type Found = { readonly kind: Kind; readonly objects: readonly Resource[] }

/** `before` selects secrets not read since then. Uses rows even for JSON, because looking for unused secrets must not read them. */
async function foundOf(session: Session, kind: Kind, flags: GetFlags, before: number | undefined): Promise<Found> {
  const isWhole = flags.output === 'json' || flags.output === 'yaml'
  const from = isWhole && before === undefined ? session.resources : session.rows
  const all = await Array.fromAsync(listAll(from, kind, selectionOf(session, kind, flags)))
  if (before === undefined) return { kind, objects: all }
  const objects = all.filter(row => readAt(row) <= before)
  return { kind, objects: isWhole ? objects.map(row => timesOf(kind, row)) : objects }
}

function timesOf({ apiVersion, kind }: Kind, row: Resource): Resource {
  const lastRead = lastReadOf(row)
  return { apiVersion, kind, metadata: row.metadata, ...(lastRead ? { status: { lastRead } } : {}) }
}

/** Prints one table per kind, because the columns differ, but a single List as JSON or YAML. */
function printFound(io: Io, found: readonly Found[], options: PrintOptions): void {
  const filled = found.filter(({ objects }) => objects.length)
  if (options.output === 'json' || options.output === 'yaml')
    printJson(io, { apiVersion: 'v1', kind: 'List', items: found.flatMap(one => one.objects) }, options.output)
  else if (!filled.length && found.length > 1)
    io.err(
      `No ${found.map(({ kind }) => kind.plural).join(' or ')} found in any namespace${options.filterText ?? ''}.\n`,
    )
  else
    for (const [at, { kind, objects }] of (filled.length ? filled : found).entries()) {
      if (at > 0 && options.output !== 'name' && !options['no-headers']) io.out('\n')
      printObjects(io, kind, objects, { ...options, isList: true })
    }
}

/** A secret that was never read counts from its creation. */
function readAt(row: Resource): number {
  const last = lastReadOf(row) ?? row.metadata.creationTimestamp
  return last === undefined ? 0 : Date.parse(last)
}

function lastReadOf(row: Resource): string | undefined {
  const cell = cellsIn(row)?.[lastReadColumn.name]
  return typeof cell === 'string' && cell !== 'never' ? cell : undefined
}
