// The files of the server's own CA, ca.crt and ca.key: created on the first start, and read on later starts.

import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { writeSecret } from '../host/secret-file.ts'
import { makeAuthority, type Pair } from './certificate.ts'
import { pairProblems } from './tls.ts'

/** Readable by everybody, within the umask. */
const writePublic = (file: string, text: string) => writeFileSync(file, text, { flush: true })

export const authorityFiles = (directory: string) => [join(directory, 'ca.crt'), join(directory, 'ca.key')] as const

export function writeAuthority(directory: string, made: Pair): void {
  const [certificate, key] = authorityFiles(directory)
  writeSecret(key, made.key)
  writePublic(certificate, made.certificate)
}

/** Creates the CA if a file is missing: a start may be interrupted between the two files. */
export function authorityIn(directory: string, now: number): Pair & { readonly isNew: boolean } {
  const [certificate, key] = authorityFiles(directory)
  const isNew = !existsSync(certificate) || !existsSync(key)
  if (isNew) {
    writeAuthority(directory, makeAuthority(now))
  }
  const pair = { certificate: readFileSync(certificate, 'utf8'), key: readFileSync(key, 'utf8') }
  const problems = pairProblems(pair, { certificate, key })
  if (problems.length) throw new Error(problems.join('; '))
  return { ...pair, isNew }
}
