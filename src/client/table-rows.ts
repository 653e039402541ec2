// Reads objects as table rows: metadata and columns only, which does not count as reading a secret (D35).

import type { Json, Resource } from '../api/object.ts'
import { documentOf, type Resources, type WatchEvent } from '../api/resources.ts'
import { type ConnectOptions, connect } from './connect.ts'

type Cells = { readonly [column: string]: Json }
type Table = {
  readonly kind: 'Table'
  readonly metadata?: Resource['metadata']
  readonly columnDefinitions?: readonly { readonly name: string }[] | null
  readonly rows?: readonly { readonly cells: readonly Json[]; readonly object?: Resource | null }[] | null
}

/** Column values by name; undefined if the object is not a row. */
export const cellsIn = (object: Resource): Cells | undefined => (object as { readonly cells?: Cells }).cells

/** Returns rows instead of objects: kind, apiVersion, metadata and cells. Read-only. */
export function rowsFrom(options: ConnectOptions): Pick<Resources, 'get' | 'list' | 'watch'> {
  const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io'
  const { get, list, watch } = connect({ ...options, accept, itemsIn: rowsIn })
  return {
    async get(kind, ref, more) {
      const [row] = rowsIn((await get(kind, ref, more)).object)
      if (!row) throw new TypeError('the response of the server has no row for the object')
      return documentOf({ ...row, kind: kind.kind, apiVersion: kind.apiVersion })
    },
    list,
    async watch(kind, more) {
      const events = await watch(kind, more)
      let columns: Table['columnDefinitions']
      const rowOf = (event: WatchEvent): WatchEvent => {
        const table = event.document.object as unknown as Table
        if (table.kind !== 'Table') return event
        columns = table.columnDefinitions ?? columns
        const [row] = rowsIn({ ...table, columnDefinitions: columns ?? null })
        const metadata = table.metadata ?? {}
        return {
          type: event.type,
          document: documentOf(row ?? { kind: '', apiVersion: '', metadata }),
          line: event.line,
        }
      }
      return { ...events, next: async () => (await events.next())?.map(rowOf) }
    },
  }
}

function rowsIn(answer: unknown): Resource[] {
  const { columnDefinitions, rows } = answer as Table
  return (rows ?? []).map(({ cells, object }) => {
    const named = (columnDefinitions ?? []).map(({ name }, at) => [name, cells[at] ?? null])
    return { ...(object ?? { kind: '', apiVersion: '', metadata: {} }), cells: Object.fromEntries(named) } as Resource
  })
}
