// Lists the files of an audit log, the current one first, and recognizes rotated ones by their names.

import { readdirSync, statSync } from 'node:fs'
import { basename, dirname, extname, join } from 'node:path'

/** Milliseconds since 1970 at which a file was rotated, from its name; NaN: it is not a rotated file of this log. */
export function rotatedAt(file: string, name: string): number {
  const extension = extname(file)
  const head = `${basename(file, extension)}-`
  const isOurs = name.startsWith(head) && name.endsWith(extension)
  const text = isOurs ? name.slice(head.length, name.length - extension.length) : ''
  return /^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}$/.test(text)
    ? Date.parse(`${text.slice(0, 13)}:${text.slice(14, 16)}:${text.slice(17)}Z`)
    : Number.NaN
}

export type LogFile = {
  readonly path: string
  /** Stays the same when the file is renamed. */
  readonly id: string
  readonly size: number
  /** Milliseconds: the file has no later events. */
  readonly until: number
}

/** Newest first. A file that disappears while it is listed is left out. */
export function logFilesOf(file: string): LogFile[] {
  const rotated = readdirSync(dirname(file))
    .map(name => ({ path: join(dirname(file), name), until: rotatedAt(file, name) }))
    .filter(({ until }) => !Number.isNaN(until))
    .sort((one, other) => other.until - one.until)
  return [{ path: file, until: Number.POSITIVE_INFINITY }, ...rotated].flatMap(one => {
    const found = statSync(one.path, { throwIfNoEntry: false })
    return found?.isFile() ? [{ ...one, id: `${found.dev}:${found.ino}`, size: found.size }] : []
  })
}
