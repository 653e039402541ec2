// A virtualised grid: only the rows in view are in the document. Keys: j and k or the arrows move, Enter opens.

import { useNavigate, useRouter } from '@tanstack/react-router'
import { useVirtualizer } from '@tanstack/react-virtual'
import {
  type CSSProperties,
  type KeyboardEvent,
  type MouseEvent,
  memo,
  type ReactNode,
  useCallback,
  useEffect,
  useMemo,
  useRef,
  useState,
  useSyncExternalStore,
} from 'react'
import style from './grid.module.css'

export type GridColumn<T> = {
  readonly name: string
  readonly label: string
  /** Pixels. A grid that is wider than the page scrolls. */
  readonly minWidth?: number
  /** The share of the space that is left. */
  readonly grow?: number
  /** Left out if there is not enough space for all columns. */
  readonly isExtra?: boolean
  readonly cell: (row: T) => ReactNode
}

type GridProps<T> = {
  readonly label: string
  readonly rows: readonly T[]
  /** Rows are drawn again only if their object, the columns or `pathOf` change. */
  readonly columns: readonly GridColumn<T>[]
  readonly idOf: (row: T) => string
  readonly pathOf: (row: T) => string
  readonly sort: { readonly column: string; readonly isDescending: boolean }
  readonly onSort: (column: string) => void
}

const rowHeight = 38
const narrowHeight = 56
/** Pixels that a header needs: its letters, its padding and the arrow of the order. */
const labelWidth = (label: string) => label.length * 7.5 + 44
const widthOf = ({ minWidth = 0, label }: Pick<GridColumn<never>, 'minWidth' | 'label'>) =>
  Math.max(minWidth, labelWidth(label))
/** Pixels beside the grid: the navigation and the margins. */
const besideGrid = 270

/** The columns that fit into the window. */
function useColumns<T>(columns: readonly GridColumn<T>[]): readonly GridColumn<T>[] {
  const needed = columns.reduce((sum, column) => sum + widthOf(column), besideGrid)
  const areAll = useMatches(`(width >= ${needed}px)`)
  return useMemo(() => (areAll ? columns : columns.filter(({ isExtra }) => !isExtra)), [areAll, columns])
}

export function Grid<T>({ label, rows, columns: all, idOf, pathOf, sort, onSort }: GridProps<T>) {
  const columns = useColumns(all)
  const frame = useRef<HTMLDivElement>(null)
  const navigate = useNavigate()
  const open = useCallback((path: string) => void navigate({ to: path }), [navigate])
  // The row stays active when others come or go above it.
  const [last, setLast] = useState({ index: 0, id: '' })
  const shown = useRef(rows)
  shown.current = rows
  const setActive = useCallback(
    (index: number) => {
      const row = shown.current[index]
      setLast({ index, id: row === undefined ? '' : idOf(row) })
    },
    [idOf],
  )
  const found = last.id === '' ? -1 : rows.findIndex(row => idOf(row) === last.id)
  const end = Math.max(0, rows.length - 1)
  const active = found === -1 ? Math.min(last.index, end) : found
  const size = useMatches('(width < 700px)') ? narrowHeight : rowHeight
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => frame.current,
    estimateSize: () => size,
    overscan: 6,
  })
  // biome-ignore lint/correctness/useExhaustiveDependencies: the known heights of rows change with their size
  useEffect(() => virtual.measure(), [size])
  const move = (to: number) => {
    const next = Math.max(0, Math.min(end, to))
    setActive(next)
    virtual.scrollToIndex(next)
  }
  const onKey = (event: KeyboardEvent) => {
    const steps: { readonly [key: string]: number } = {
      j: 1,
      ArrowDown: 1,
      k: -1,
      ArrowUp: -1,
      PageDown: 15,
      PageUp: -15,
    }
    const step = steps[event.key]
    if (event.metaKey || event.ctrlKey || event.altKey) return
    if (step !== undefined) move(active + step)
    else if (event.key === 'Home') move(0)
    else if (event.key === 'End') move(end)
    else if (event.key === 'Enter' && event.target === frame.current) {
      const row = rows[active]
      if (row) open(pathOf(row))
    } else return
    event.preventDefault()
  }
  const tracks = columns.map(column => `minmax(${widthOf(column)}px, ${column.grow ?? 1}fr)`).join(' ')
  const minWidth = columns.reduce((sum, column) => sum + widthOf(column), 0)
  const sizes = { '--columns': tracks, '--min-width': `${minWidth}px` } as CSSProperties
  const shownId = rows[active] ? `row-${active}` : undefined

  return (
    <div
      ref={frame}
      className={style.frame}
      role="grid"
      aria-label={label}
      aria-rowcount={rows.length + 1}
      aria-colcount={columns.length}
      aria-activedescendant={shownId}
      tabIndex={0}
      onKeyDown={onKey}
    >
      <div className={style.grid} role="presentation" style={sizes}>
        <div className={style.header} role="row" aria-rowindex={1} tabIndex={-1}>
          {columns.map(({ name, label }) => (
            <div
              key={name}
              role="columnheader"
              tabIndex={-1}
              aria-sort={sort.column === name ? (sort.isDescending ? 'descending' : 'ascending') : 'none'}
            >
              <button type="button" onClick={() => onSort(name)}>
                {label}
                {sort.column === name ? (sort.isDescending ? ' ↓' : ' ↑') : ''}
              </button>
            </div>
          ))}
        </div>
        <div className={style.body} role="presentation" style={{ height: virtual.getTotalSize() }}>
          {virtual.getVirtualItems().map(({ index, start }) => {
            const row = rows[index]
            if (row === undefined) return null
            return (
              <GridRow
                key={idOf(row)}
                row={row}
                index={index}
                start={start}
                isActive={index === active}
                columns={columns}
                pathOf={pathOf}
                onOpen={open}
                onFocus={setActive}
              />
            )
          })}
        </div>
      </div>
    </div>
  )
}

/** Whether the window matches a media query. */
function useMatches(query: string): boolean {
  const list = useMemo(() => matchMedia(query), [query])
  const follow = useCallback(
    (changed: () => void) => {
      list.addEventListener('change', changed)
      return () => list.removeEventListener('change', changed)
    },
    [list],
  )
  return useSyncExternalStore(follow, () => list.matches)
}

type GridRowProps<T> = Pick<GridProps<T>, 'columns' | 'pathOf'> & {
  readonly row: T
  readonly index: number
  readonly start: number
  readonly isActive: boolean
  readonly onOpen: (path: string) => void
  readonly onFocus: (index: number) => void
}

const GridRow = memo(function GridRow<T>(props: GridRowProps<T>) {
  const { row, index, start, isActive, columns, pathOf, onOpen, onFocus } = props
  const { basepath } = useRouter()
  const path = pathOf(row)
  // The router's Link computes its target at every render, which is most of the cost of a row.
  const onClick = (event: MouseEvent) => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    event.preventDefault()
    onOpen(path)
  }
  return (
    <div
      id={`row-${index}`}
      className={style.row}
      role="row"
      aria-rowindex={index + 2}
      tabIndex={-1}
      data-active={isActive || undefined}
      style={{ transform: `translateY(${start}px)` }}
    >
      {columns.map(({ name, cell }, at) => (
        <div key={name} className={style.cell} role="gridcell" tabIndex={-1}>
          {at === 0 ? (
            <a href={`${basepath}${path}`} tabIndex={-1} onClick={onClick} onFocus={() => onFocus(index)}>
              {cell(row)}
            </a>
          ) : (
            cell(row)
          )}
        </div>
      ))}
    </div>
  )
}) as <T>(props: GridRowProps<T>) => ReactNode
