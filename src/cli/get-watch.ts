// `platform get -w`: what there is and every change, a line each. get.ts calls it.

import type { Kind } from '../api/kind.ts'
import type { Resources, Selection } from '../api/resources.ts'
import { follow } from '../client/follow.ts'
import type { Io } from './command.ts'
import { lostTo } from './lost.ts'
import { cellsOf, headerOf, nameOf, type PrintOptions, printJson, printRow, widthsOf } from './print.ts'

export type Source = Pick<Resources, 'get' | 'list' | 'watch'>

type Watched = {
  readonly kind: Kind
  readonly names: readonly string[]
  readonly options: PrintOptions
  readonly selection: Selection
}

/** The longest of what can happen: the first rows have all been added. */
const longestEvent = 'MODIFIED'

/** A line a change, with what happened; JSON is a line an object, for programs. Columns are as wide as the first rows want them. */
export async function watchObjects(io: Io, from: Source, watched: Watched): Promise<number> {
  const { kind, names, options, selection } = watched
  const { output } = options
  const header = ['EVENT', ...headerOf(kind, options)]
  const isWanted = (name = '') => !names.length || names.includes(name)
  const rowOf = (type: string, object: Parameters<typeof cellsOf>[1]) => [
    type,
    ...cellsOf(kind, object, options, io.now()),
  ]
  let widths: readonly number[] | undefined
  const list: Source['list'] = async (...asked) => {
    const page = await from.list(...asked)
    const first = page.items.filter(({ object }) => isWanted(object.metadata.name))
    widths ??= widthsOf([header, [longestEvent], ...first.map(({ object }) => rowOf('', object))])
    return page
  }
  let isFirst = !options['no-headers']
  const lost = lostTo(io, 'seen')
  for await (const { type, object } of follow({ list, watch: from.watch }, kind, { ...selection, ...lost })) {
    if (!isWanted(object.metadata.name)) continue
    if (output === 'json') io.out(`${JSON.stringify({ type, object })}\n`)
    else if (output === 'yaml') {
      io.out('---\n')
      printJson(io, object, 'yaml')
    } else if (output === 'name') io.out(`${nameOf(kind, object)}${type === 'DELETED' ? ' deleted' : ''}\n`)
    else {
      if (isFirst) printRow(io, header, widths ?? [])
      printRow(io, rowOf(type, object), widths ?? [])
    }
    isFirst = false
  }
  return 0
}
