// Turns file system errors into messages.

import { UsageError, unwritableCode } from './command.ts'

const reasons: { readonly [code: string]: string } = {
  ENOENT: 'there is no such file',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EISDIR: 'it is a directory',
  ENOTDIR: 'a component of its path is not a directory',
}

const reasonOf = (error: unknown) => reasons[(error as NodeJS.ErrnoException).code ?? '']

/** For files that cannot be read, or whose content is invalid. */
export function fileProblem(file: string, error: unknown): string {
  const reason = reasonOf(error)
  return reason === undefined ? `${file}: ${(error as Error).message}` : `cannot read ${file}: ${reason}`
}

const writeReasons: { readonly [code: string]: string } = {
  ENOENT: 'its directory does not exist',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the disk is read-only',
  EISDIR: 'it is a directory',
  ENOTDIR: 'a component of its path is not a directory',
  ENOSPC: 'no space left on device',
  EDQUOT: 'disk quota exceeded',
}

/** For files that cannot be written. */
export const writeProblem = (file: string, error: unknown): string =>
  `cannot write ${file}: ${writeReasons[(error as NodeJS.ErrnoException).code ?? ''] ?? (error as Error).message}`

/** `code` and `file` let callers suggest another directory. */
export const unwritable = (file: string, error: unknown): Error =>
  Object.assign(new Error(writeProblem(file, error), { cause: error }), { code: unwritableCode, file })

/** An unreadable file is a usage error (exit code 2), because the user named it. Other errors are not. */
export const unreadable = (file: string, error: unknown): Error =>
  reasonOf(error) === undefined
    ? new Error(`cannot read ${file}: ${(error as Error).message}`, { cause: error })
    : new UsageError([fileProblem(file, error)])
