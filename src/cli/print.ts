// Prints results: tables for people, JSON and YAML for programs, names and values for scripts.

import { writeYaml } from '../api/encode.ts'
import type { Kind } from '../api/kind.ts'
import type { Json, Resource } from '../api/object.ts'
import { cellsIn } from '../client/table-rows.ts'
import type { Io } from '../host/command.ts'
import { plain } from '../host/sanitize.ts'

export type PrintOptions = {
  readonly output?: string | undefined
  readonly 'no-headers'?: boolean
  /** Shows the namespace as a column. */
  readonly withNamespace?: boolean
  /** The namespace that was searched, for the message that nothing was found; empty: all namespaces. */
  readonly namespace?: string | undefined
  /** The filter in words, for the same message. */
  readonly filterText?: string
}

export function printJson(io: Io, value: unknown, output: string | undefined): void {
  io.out(output === 'yaml' ? writeYaml(value as Json) : `${JSON.stringify(value, undefined, 2)}\n`)
}

/** Makes columns as wide as their widest cell. Replaces control characters, which could move the cursor. */
export function printTable(
  io: Io,
  header: readonly string[],
  rows: readonly (readonly string[])[],
  bare = false,
): void {
  const lines = [...(bare ? [] : [header]), ...rows]
  const widths = widthsOf(lines)
  for (const line of lines) printRow(io, line, widths)
}

const widthOf = (cell: string) => [...plain(cell)].length

export function widthsOf(rows: readonly (readonly string[])[]): number[] {
  const columns = Math.max(0, ...rows.map(row => row.length))
  return Array.from({ length: columns }, (_, at) =>
    rows.reduce((most, row) => Math.max(most, widthOf(row[at] ?? '')), 0),
  )
}

/** A cell wider than its column shifts the rest of the row; three spaces still separate them. */
export function printRow(io: Io, row: readonly string[], widths: readonly number[]): void {
  const padded = row.map((cell, at) => plain(cell) + ' '.repeat(Math.max(0, (widths[at] ?? 0) - widthOf(cell))))
  io.out(`${padded.join('   ').trimEnd()}\n`)
}

export const nameOf = (kind: Kind, object: Resource) => `${kind.singular}/${object.metadata.name ?? ''}`

/** Prints JSON and YAML as the object or as a List. Tables are the same for both. */
export function printObjects(
  io: Io,
  kind: Kind,
  objects: readonly Resource[],
  options: PrintOptions & { readonly isList: boolean },
): void {
  const { output = 'table' } = options
  if (output === 'name') for (const one of objects) io.out(`${nameOf(kind, one)}\n`)
  else if (output === 'json' || output === 'yaml')
    printJson(io, options.isList ? { apiVersion: 'v1', kind: 'List', items: objects } : objects[0], output)
  else if (objects.length === 0) io.err(`${nothingFound(kind, options)}\n`)
  else
    printTable(
      io,
      headerOf(kind, options),
      objects.map(one => cellsOf(kind, one, options, io.now())),
      options['no-headers'],
    )
}

function nothingFound({ plural, namespaced }: Kind, options: PrintOptions): string {
  const { namespace, withNamespace, filterText = '' } = options
  if (!namespaced) return `No ${plural} found.`
  return withNamespace || !namespace
    ? `No ${plural} found in any namespace${filterText}.`
    : `No ${plural} found in namespace ${namespace}${filterText}.`
}

const shownColumns = (kind: Kind, { output }: PrintOptions) =>
  kind.columns.filter(({ priority = 0 }) => priority === 0 || output === 'wide')

export const headerOf = (kind: Kind, options: PrintOptions): string[] => [
  ...(options.withNamespace ? ['NAMESPACE'] : []),
  'NAME',
  ...shownColumns(kind, options).map(({ name }) => name.toUpperCase()),
  'AGE',
]

export function cellsOf(kind: Kind, object: Resource, options: PrintOptions, now: number): string[] {
  const { namespace = '', name = '', creationTimestamp } = object.metadata
  const cells = cellsIn(object)
  const values = shownColumns(kind, options).map(({ name: column, type, value }) => {
    const one = cells ? cells[column] : value(object)
    if (cells) return String(one ?? '')
    return type === 'date' && typeof one === 'string' ? ago(one, now) : String(one ?? '')
  })
  return [...(options.withNamespace ? [namespace] : []), name, ...values, ago(creationTimestamp, now)]
}

const units = [
  ['d', 86_400],
  ['h', 3600],
  ['m', 60],
  ['s', 1],
] as const

/** Formats an age such as 3d, 5h, 12m or 40s, in the largest unit with a count of two or more. */
export function span(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds))
  const [unit, size] = units.find(([, one]) => whole >= one * 2) ?? ['s', 1]
  return `${Math.floor(whole / size)}${unit}`
}

export const ago = (time: string | undefined, now: number) =>
  time === undefined ? '<unknown>' : span((now - Date.parse(time)) / 1000)

const colours = { red: 31, yellow: 33, green: 32, bold: 1 } as const

export const paint = (io: Io, colour: keyof typeof colours, text: string) =>
  io.hasColour ? `\x1b[${colours[colour]}m${text}\x1b[0m` : text
