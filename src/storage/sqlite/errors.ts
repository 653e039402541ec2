// Translates SQLite's result codes: the reason, what to do about an unusable file, and whether a failed COMMIT certainly had no effect.

import { dirname } from 'node:path'

const FULL = 13
const READONLY = 8
const IOERR = 10
const IOERR_WRITE = IOERR | (3 << 8)

const words: { readonly [code: number]: string } = {
  5: 'another process has locked the database',
  6: 'another process has locked the database',
  7: 'out of memory',
  [READONLY]: 'the disk is read-only',
  [IOERR]: 'cannot read or write the disk',
  11: 'the database file is damaged',
  [FULL]: 'the disk is full',
  14: 'the database file cannot be opened',
  15: 'another process has locked the database',
  26: 'the database file is damaged',
}

/** The extended result code; 0 for an error that is not SQLite's. */
export function codeOf(error: unknown): number {
  const code = error instanceof Error && 'errcode' in error ? error.errcode : 0
  return typeof code === 'number' ? code : 0
}

export function describeError(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  const known = words[codeOf(error) & 0xff]
  return known === undefined ? message : `${known} (${message})`
}

const advices: { readonly [code: number]: string } = {
  5: 'retry when that process has ended',
  6: 'retry when that process has ended',
  7: 'retry with more memory',
  [READONLY]: 'use a copy of the whole directory that is writable',
  14: 'the file and its -wal and -shm files must be readable, and the directory writable',
  15: 'retry when that process has ended',
}

/** Why a file is inaccessible although its content may be intact, and what to do. undefined: another failure. */
export function unavailableReason(error: unknown): string | undefined {
  const advice = advices[codeOf(error) & 0xff]
  return advice && `${describeError(error)}: ${advice}`
}

/** The file is damaged, as text. */
export class DamagedError extends Error {}

/** An error as a message to another thread: the copy of an Error has neither its class nor its code. */
export type ErrorMessage = { readonly text: string; readonly code: number; readonly isDamage: boolean }

export const toMessage = (error: unknown): ErrorMessage => ({
  text: error instanceof Error ? error.message : String(error),
  code: codeOf(error),
  isDamage: error instanceof DamagedError,
})

export function fromMessage({ text, code, isDamage }: ErrorMessage): Error {
  const error = isDamage ? new DamagedError(text) : new Error(text)
  return code === 0 ? error : Object.assign(error, { errcode: code })
}

const ERROR = 1

export const isNotDatabase = (error: unknown): boolean => (codeOf(error) & 0xff) === 26

export const isDamaged = (error: unknown): boolean =>
  error instanceof DamagedError || isNotDatabase(error) || (codeOf(error) & 0xff) === 11

/** An error from opening a database, with the file, the problem and what to do. Other errors are returned unchanged. */
export function unusableError(file: string, error: unknown): unknown {
  const code = codeOf(error) & 0xff
  if (!isDamaged(error) && code === 0) return error
  if (!isDamaged(error) && code !== ERROR)
    return new Error(`cannot use ${file}: ${describeError(error)}`, { cause: error })
  const what = isDamaged(error) ? 'is damaged' : 'is not a database of this platform'
  return new Error(
    `${file} ${what}: ${(error as Error).message}. platform verify ${dirname(file)} lists all damage; platform restore creates a new directory from a backup`,
    { cause: error },
  )
}

/**
 * A COMMIT that could not write all of its pages had no effect, because the commit mark is on the last page. After a failed fsync or
 * an unexpected error, the pages may or may not be on disk. Only reading the file shows which.
 */
export function hadNoEffect(error: unknown): boolean {
  const code = codeOf(error)
  return (code & 0xff) === FULL || (code & 0xff) === READONLY || code === IOERR_WRITE
}
