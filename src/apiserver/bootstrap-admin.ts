// The administrator's first key: made once, on an empty store, and again only by `platform admin reset` (D1).

import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Resources } from '../api/resources.ts'
import type { Authenticate } from '../auth/authn/authenticate.ts'
import { writeSecret } from '../host/secret-file.ts'
import { makeKey } from '../kinds/key-format.ts'
import { OwnedAccessKey } from '../kinds/owned-access-key.ts'

/**
 * For an empty store, as the first thing that is stored: then a store that is not empty had its key, and one that was
 * deleted stays deleted. Written to admin.key before, so that a crash in between leaves one way in.
 */
export async function createAdminKey(inside: Resources, directory: string): Promise<void> {
  const file = join(directory, 'admin.key')
  writeSecret(join(directory, untold), '')
  const key = existsSync(file) ? readFileSync(file, 'utf8').trim() : makeKey(size => randomBytes(size))
  if (!existsSync(file)) writeSecret(file, `${key}\n`)
  await storeKey(inside, 'admin', key)
}

/** This file exists from the beginning of the first start until the server printed the administrator's key file. */
const untold = 'first-start'

/** A first start may have ended before it could tell, because a port was taken. */
export const isAdminKeyUnread = (directory: string): boolean => existsSync(join(directory, untold))

export const wasTold = (directory: string): void => rmSync(join(directory, untold), { force: true })

/** The administrator's key in the directory, if it can be read and still works. */
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

/** A further key for the administrator; the earlier ones stay as they are. */
export async function makeAdminKey(inside: Resources, directory: string): Promise<string> {
  const key = makeKey(size => randomBytes(size))
  await storeKey(inside, undefined, key)
  writeSecret(join(directory, 'admin.key'), `${key}\n`)
  return key
}

async function storeKey(inside: Resources, name: string | undefined, key: string): Promise<void> {
  const metadata = name ? { name } : { generateName: 'admin-' }
  const spec = { displayName: 'Administrator', user: 'admin', key }
  await inside.create(OwnedAccessKey, '', { metadata, spec }, { fieldManager: 'platform' })
}
