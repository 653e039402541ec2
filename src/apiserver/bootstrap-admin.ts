// Creates the administrator's first key on an empty store, and later ones for `platform admin reset` (D1).

import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { ApiError } from '../api/errors.ts'
import type { Resources } from '../api/resources.ts'
import type { Authenticate } from '../auth/authn/authenticate.ts'
import { writeSecret } from '../host/secret-file.ts'
import { makeKey } from '../kinds/key-format.ts'
import { OwnedAccessKey } from '../kinds/owned-access-key.ts'

/**
 * Stores the key before anything else in an empty store. A store that is not empty already had its key, which stays
 * deleted if somebody deleted it. Writes admin.key first, so that a crash in between does not lose the key. `isShared`: another
 * replica may do the same.
 */
export async function createAdminKey(internalClient: Resources, directory: string, isShared = false): Promise<void> {
  const file = join(directory, 'admin.key')
  writeSecret(join(directory, unreadMark), '')
  const key = existsSync(file) ? readFileSync(file, 'utf8').trim() : makeKey(size => randomBytes(size))
  if (!existsSync(file)) writeSecret(file, `${key}\n`)
  await storeKey(internalClient, 'admin', key).catch((error: unknown) => {
    if (!isShared || !(error instanceof ApiError) || error.reason !== 'AlreadyExists') throw error
    // Another replica was first.
    rmSync(file)
    markAdminKeyRead(directory)
  })
}

/** Exists from the beginning of the first start until the server has printed the path of the administrator's key. */
const unreadMark = 'first-start'

/** A first start may have failed before it printed the path, because a port was taken. */
export const isAdminKeyUnread = (directory: string): boolean => existsSync(join(directory, unreadMark))

export const markAdminKeyRead = (directory: string): void => rmSync(join(directory, unreadMark), { force: true })

/** The administrator's key in the directory, if it is readable and valid. */
export function keptKey(directory: string, authenticate: Authenticate): string | undefined {
  const file = join(directory, 'admin.key')
  if (!existsSync(file)) return undefined
  try {
    const key = readFileSync(file, 'utf8').trim()
    return authenticate(`Bearer ${key}`, true) && key
  } catch {
    return undefined
  }
}

/** Creates another key for the administrator. Earlier keys stay valid. */
export async function makeAdminKey(internalClient: Resources, directory: string): Promise<string> {
  const key = makeKey(size => randomBytes(size))
  await storeKey(internalClient, undefined, key)
  writeSecret(join(directory, 'admin.key'), `${key}\n`)
  return key
}

async function storeKey(internalClient: Resources, name: string | undefined, key: string): Promise<void> {
  const metadata = name ? { name } : { generateName: 'admin-' }
  const spec = { displayName: 'Administrator', user: 'admin', key }
  await internalClient.create(OwnedAccessKey, '', { metadata, spec }, { fieldManager: 'platform' })
}
