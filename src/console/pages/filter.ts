// The filter of a list: words that match any column, and labels that the server selects by.

import type { Row } from '../data/rows.ts'

export type Filter = { readonly words: readonly string[]; readonly labelSelector: string }

/** `web team=a env!=prod` → the word `web` and a label selector. */
export function parseFilter(typed: string): Filter {
  const parts = typed.trim().split(/\s+/).filter(Boolean)
  const isLabel = (part: string) => /^[\w./-]+(=|==|!=)[\w.-]*$/.test(part)
  return {
    words: parts.filter(part => !isLabel(part)).map(part => part.toLowerCase()),
    labelSelector: parts.filter(isLabel).join(','),
  }
}

/** The searchable text of a row, built once per row. */
const texts = new WeakMap<Row, string>()
function textOf(row: Row): string {
  const known = texts.get(row)
  if (known !== undefined) return known
  const labels = Object.entries(row.labels).map(([key, value]) => `${key}=${value}`)
  // The server writes the age once, and the page shows it in other words.
  const { Age: _, ...cells } = row.cells
  const made = [row.name, row.namespace, ...Object.values(cells), ...labels].join('\n').toLowerCase()
  texts.set(row, made)
  return made
}

export function filterRows(rows: readonly Row[], words: readonly string[]): readonly Row[] {
  if (words.length === 0) return rows
  return rows.filter(row => {
    const text = textOf(row)
    return words.every(word => text.includes(word))
  })
}

const unitSeconds: { readonly [unit: string]: number } = { s: 1, m: 60, h: 3600, d: 86_400, y: 31_536_000 }

/** "2d3h", as kubectl shows times, in seconds; undefined: it is something else. */
function secondsIn(value: string): number | undefined {
  const parts = [...value.matchAll(/(\d+)([smhdy])/g)]
  if (value === '' || parts.map(([part]) => part).join('') !== value) return undefined
  return parts.reduce((sum, [, number, unit = '']) => sum + Number(number) * (unitSeconds[unit] ?? 0), 0)
}

const collator = new Intl.Collator(undefined, { numeric: true })

export function sortRows(rows: readonly Row[], column: string, isDescending: boolean): readonly Row[] {
  const sortValue = (row: Row) =>
    column === 'Name' ? row.name : column === 'Namespace' ? row.namespace : row.cells[column]
  const compare = (one: Row, other: Row): number => {
    // The younger object has the smaller age.
    if (column === 'Age') return collator.compare(other.created, one.created)
    const [a, b] = [sortValue(one), sortValue(other)]
    if (typeof a === 'number' && typeof b === 'number') return a - b
    const [text, otherText] = [String(a ?? ''), String(b ?? '')]
    const [since, otherSince] = [secondsIn(text), secondsIn(otherText)]
    if (since !== undefined && otherSince !== undefined) return since - otherSince
    return collator.compare(text, otherText)
  }
  const sorted = rows.toSorted(compare)
  return isDescending ? sorted.reverse() : sorted
}
