// The list of any kind: columns as kubectl shows them, live, filtered and sorted.

import { useNavigate, useSearch } from '@tanstack/react-router'
import { type ReactNode, useCallback, useDeferredValue, useEffect, useMemo, useRef, useState } from 'react'
import type { Column, Kind } from '../../api/kind.ts'
import type { Json } from '../../api/object.ts'
import { listCommand } from '../data/commands.ts'
import { listPath, manyOf, objectPath, oneOf } from '../data/places.ts'
import { type Row, type Rows, useRows } from '../data/rows.ts'
import { text } from '../text/common.ts'
import { ActionButton, Button } from '../ui/button.tsx'
import { count, duration } from '../ui/format.ts'
import { Grid, type GridColumn } from '../ui/grid.tsx'
import { Ago, Command, ErrorState, Loading, Note, Page, Pill, State } from '../ui/parts.tsx'
import { filterRows, parseFilter, sortRows } from './filter.ts'
import style from './list.module.css'

type Search = { readonly q?: string; readonly sort?: string; readonly ns?: string }

export function ListPage({ kind }: { kind: Kind }) {
  const navigate = useNavigate()
  const search = useSearch({ strict: false }) as Search
  const { q = '', sort: sorting = '', ns } = search
  const set = (next: Search) => void navigate({ to: '.', search: { ...search, ...next }, replace: true })
  const [typed, setTyped] = useTyped(q, next => set({ q: next || undefined } as Search))
  const { words } = useMemo(() => parseFilter(typed), [typed])
  const { labelSelector } = useMemo(() => parseFilter(q), [q])
  const selection = { ...(ns ? { namespace: ns } : {}), ...(labelSelector ? { labelSelector } : {}) }
  const list = useRows(kind, selection)
  // Beyond the rows that were read, the order is that of the server: by namespace and name.
  const isSorted = sorting !== '' && list.beyond === 0
  const isDescending = isSorted && sorting.startsWith('-')
  const column = isSorted ? sorting.replace(/^-/, '') : kind.namespaced ? 'Namespace' : 'Name'
  const wanted = useDeferredValue(words)
  const shown = useMemo(() => {
    const matching = filterRows(list.rows, wanted)
    return isSorted ? sortRows(matching, column, isDescending) : matching
  }, [list.rows, wanted, isSorted, column, isDescending])
  const columns = useMemo(() => columnsOf(kind), [kind])
  const pathOf = useCallback((row: Row) => objectPath(kind, row), [kind])
  const onSort = (name: string) => set({ sort: name === column && !isDescending ? `-${name}` : name })

  return (
    <Page
      title={manyOf(kind)}
      sub={kind.description}
      actions={
        kind.verbs.includes('create') && (
          <ActionButton
            look="primary"
            action={{ verb: 'create', kind, ...(kind.namespaced ? { namespace: ns ?? 'default' } : {}) }}
            onPress={() => void navigate({ to: `${listPath(kind)}/new` })}
          >
            {text.create(oneOf(kind))}
          </ActionButton>
        )
      }
    >
      <div className={style.toolbar}>
        <input
          type="search"
          data-shortcut="search"
          aria-label={text.filter}
          placeholder={text.filter}
          title={text.filterHelp}
          value={typed}
          onChange={event => setTyped(event.currentTarget.value)}
        />
        <Counter list={list} shown={shown.length} />
      </div>
      {list.beyond !== 0 && <Note>{text.beyond(count(list.rows.length), allOf(list))}</Note>}
      <Body list={list} shown={shown} kind={kind} onClear={() => setTyped('')}>
        <Grid
          label={manyOf(kind)}
          rows={shown}
          columns={columns}
          idOf={idOf}
          pathOf={pathOf}
          sort={{ column, isDescending }}
          onSort={onSort}
        />
      </Body>
      <div className={style.foot}>
        <span>
          <kbd>j</kbd> <kbd>k</kbd> {text.listKeys.move} · <kbd>↵</kbd> {text.listKeys.open} · <kbd>/</kbd>{' '}
          {text.listKeys.filter}
        </span>
        <span>{text.sortedBy(labelOf(column).toLowerCase())}</span>
      </div>
      <Command>{listCommand(kind, { namespace: ns, labelSelector })}</Command>
    </Page>
  )
}

const idOf = ({ id }: Row) => id

/** Milliseconds after the last key press. The address changes, and the server selects by labels, not at every key. */
const pauseOfTyping = 250

/** The text of the filter. It follows the address, and the address follows it after a pause. */
function useTyped(address: string, write: (text: string) => void): [string, (text: string) => void] {
  const [text, setText] = useState(address)
  const written = useRef(new Set<string>())
  useEffect(() => {
    if (!written.current.delete(address)) setText(address)
  }, [address])
  // biome-ignore lint/correctness/useExhaustiveDependencies: `write` is new at every render
  useEffect(() => {
    if (text === address) return
    const timer = setTimeout(() => {
      written.current.add(text)
      write(text)
    }, pauseOfTyping)
    return () => clearTimeout(timer)
  }, [text, address])
  return [text, setText]
}

type BodyProps = {
  readonly list: Rows
  readonly shown: readonly Row[]
  readonly kind: Kind
  readonly onClear: () => void
  readonly children: ReactNode
}

function Body({ list, shown, kind, onClear, children }: BodyProps) {
  if (list.state === 'failed') return <ErrorState error={list.error} />
  if (shown.length > 0) return children
  if (list.state === 'loading') return <Loading />
  if (list.rows.length === 0)
    return (
      <State title={text.empty(manyOf(kind))}>
        <p>{text.emptyAdvice}</p>
      </State>
    )
  return (
    <State title={text.noMatch}>
      <Button onPress={onClear}>{text.clearFilter}</Button>
    </State>
  )
}

function Counter({ list, shown }: { list: Rows; shown: number }) {
  const isAll = list.beyond === 0 && shown === list.rows.length
  const state = list.state === 'live' ? text.live : list.state === 'polled' ? text.polled : text.staleShort
  if (list.state === 'loading' || list.state === 'failed') return <span className={style.count} />
  return (
    <span className={style.count} role="status">
      <i className={style.dot} data-state={list.state} />
      {state} · {isAll ? count(shown) : text.of(count(shown), allOf(list))}
    </span>
  )
}

const allOf = ({ rows, beyond }: Rows) =>
  beyond === undefined ? text.moreThan(count(rows.length)) : count(rows.length + beyond)

const labelOf = (column: string) => column.replaceAll('-', ' ')

function columnsOf(kind: Kind): readonly GridColumn<Row>[] {
  const namespace: GridColumn<Row> = { name: 'Namespace', label: text.columns.namespace, cell: row => row.namespace }
  return [
    {
      name: 'Name',
      label: text.columns.name,
      minWidth: 180,
      grow: 1.6,
      cell: row => (row.isDeleting ? text.deletedSoon(row.name) : row.name),
    },
    ...(kind.namespaced ? [namespace] : []),
    ...kind.columns.map(column => ({
      name: column.name,
      label: labelOf(column.name),
      isExtra: (column.priority ?? 0) > 0,
      ...(column.type === 'string' ? { minWidth: 100 } : { grow: 0.6 }),
      cell: (row: Row) => <Cell column={column} value={row.cells[column.name] ?? null} />,
    })),
    {
      name: 'Age',
      label: text.columns.age,
      minWidth: 110,
      grow: 0.6,
      cell: row => <Ago at={row.created} />,
    },
  ]
}

function Cell({ column: { name, type, unit }, value }: { column: Column; value: Json }) {
  if (value === null || value === '' || value === '<none>' || value === '<unknown>') return <span aria-hidden>–</span>
  if (type === 'boolean' || typeof value === 'boolean')
    return value === true || value === 'true' ? (
      <Pill tone="warn">{labelOf(name).toLowerCase()}</Pill>
    ) : (
      <span aria-hidden>–</span>
    )
  if (unit === 'seconds') return <>{duration(Number(value))}</>
  if (typeof value === 'string' && isTime.test(value)) return <Ago at={value} />
  return <>{String(value)}</>
}

const isTime = /^\d{4}-\d{2}-\d{2}T[\d:.]+Z$/
