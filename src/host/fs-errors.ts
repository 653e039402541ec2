// What is wrong with a file that somebody named, in words. Commands and settings that read files say it so.

import { UsageError, unwritableCode } from './command.ts'

const reasons: { readonly [code: string]: string } = {
  ENOENT: 'there is no such file',
  EACCES: 'it may not be read',
  EPERM: 'it may not be read',
  EISDIR: 'it is a directory',
  ENOTDIR: 'a part of its path is no directory',
}

const reasonOf = (error: unknown) => reasons[(error as NodeJS.ErrnoException).code ?? '']

/** Whether it could not be read at all, or what was read is not right. */
export function fileProblem(file: string, error: unknown): string {
  const reason = reasonOf(error)
  return reason === undefined ? `${file}: ${(error as Error).message}` : `cannot read ${file}: ${reason}`
}

const writeReasons: { readonly [code: string]: string } = {
  ENOENT: 'its directory does not exist',
  EACCES: 'permission is denied',
  EPERM: 'permission is denied',
  EROFS: 'the disk is read-only',
  EISDIR: 'it is a directory',
  ENOTDIR: 'a part of its path is no directory',
  ENOSPC: 'no space is left there',
  EDQUOT: 'no space is left there for you',
}

/** The same of a file that is to be written. */
export const writeProblem = (file: string, error: unknown): string =>
  `cannot write ${file}: ${writeReasons[(error as NodeJS.ErrnoException).code ?? ''] ?? (error as Error).message}`

/** `code` and `file` are for callers that know another place for the file. */
export const unwritable = (file: string, error: unknown): Error =>
  Object.assign(new Error(writeProblem(file, error), { cause: error }), { code: unwritableCode, file })

/** A file that cannot be read was wrongly named (exit code 2); any other failure stays what it is. */
export const unreadable = (file: string, error: unknown): Error =>
  reasonOf(error) === undefined
    ? new Error(`cannot read ${file}: ${(error as Error).message}`, { cause: error })
    : new UsageError([fileProblem(file, error)])
