// `platform get -w`: prints objects and every change to them, one line each.

import { ApiError } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import type { Resource } from '../api/object.ts'
import type { Resources, Selection } from '../api/resources.ts'
import { follow } from '../client/list-watch.ts'
import type { Io } from '../host/command.ts'
import { cellsOf, headerOf, nameOf, type PrintOptions, printJson, printRow, widthsOf } from './print.ts'
import { reconnectWarnings } from './watch-reconnect.ts'

export type Source = Pick<Resources, 'get' | 'list' | 'watch'>

type Watched = {
  /** Watched together, in one table. Only the first is required: a forbidden one after it is skipped with a note. */
  readonly kinds: readonly [Kind, ...Kind[]]
  readonly names: readonly string[]
  readonly options: PrintOptions
  readonly selection: Selection
}

/** Reserves the width of the longest event, because the first rows are all ADDED. */
const longestEvent = 'MODIFIED'

/** Prints one line per change. The first rows set the column widths. JSON output has one event per line. */
export async function watchObjects(io: Io, from: Source, watched: Watched): Promise<number> {
  const { kinds, names, options, selection } = watched
  const table = openTable(io, kinds, options)
  const isWanted = ({ metadata }: Resource) => !names.length || names.includes(metadata.name ?? '')
  const warnings = reconnectWarnings(io)
  const stop = new AbortController()
  const watchOne = async (kind: Kind) => {
    const first = table.expect()
    const list: Source['list'] = async (...args) => {
      const page = await from.list(...args)
      await first(page.items.flatMap(({ object }) => (isWanted(object) ? [table.rowOf(kind, '', object)] : [])))
      return page
    }
    const all = { ...selection, ...warnings, signal: stop.signal }
    try {
      for await (const { type, object } of follow({ list, watch: from.watch }, kind, all))
        if (isWanted(object)) printChange(io, { kind, type, object }, options, table)
    } catch (error) {
      if (kind === kinds[0] || !(error instanceof ApiError) || error.code !== 403) throw error
      io.err(`platform: ${kind.plural} skipped: ${error.message}\n`)
      await first([])
    }
  }
  await Promise.all(kinds.map(watchOne)).finally(() => stop.abort())
  return 0
}

type WatchEvent = { readonly kind: Kind; readonly type: string; readonly object: Resource }

function printChange(io: Io, { kind, type, object }: WatchEvent, { output }: PrintOptions, table: Table): void {
  if (output === 'json') io.out(`${JSON.stringify({ type, object })}\n`)
  else if (output === 'yaml') {
    io.out('---\n')
    printJson(io, object, 'yaml')
  } else if (output === 'name') io.out(`${nameOf(kind, object)}${type === 'DELETED' ? ' deleted' : ''}\n`)
  else table.print(table.rowOf(kind, type, object))
}

type Row = readonly string[]
type Table = ReturnType<typeof openTable>

/** Has the columns of all kinds. A cell stays empty if the kind has no such column. */
function openTable(io: Io, kinds: readonly Kind[], options: PrintOptions) {
  const headers = kinds.map(kind => headerOf(kind, options)).toSorted((one, other) => other.length - one.length)
  const header = ['EVENT', ...new Set(headers.flat())]
  const firstRows: Row[] = [header, [longestEvent]]
  const complete = Promise.withResolvers<readonly number[]>()
  let expected = 0
  let widths: readonly number[] = []
  let isHeaded = options['no-headers'] === true
  return {
    /** Call once per kind. The returned function takes its first rows and resolves when every kind has passed them. */
    expect() {
      expected++
      let isGiven = false
      return async (rows: readonly Row[]) => {
        if (!isGiven) {
          isGiven = true
          firstRows.push(...rows)
          if (--expected === 0) complete.resolve(widthsOf(firstRows))
        }
        widths = await complete.promise
      }
    },
    rowOf(kind: Kind, type: string, object: Resource): Row {
      const own = headerOf(kind, options)
      const cells = cellsOf(kind, object, options, io.now())
      return [type, ...header.slice(1).map(name => cells[own.indexOf(name)] ?? '')]
    },
    print(row: Row) {
      if (!isHeaded) printRow(io, header, widths)
      isHeaded = true
      printRow(io, row, widths)
    },
  }
}
