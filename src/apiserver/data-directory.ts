// Manages the files of a data directory: their permissions, and the files of the first start (D1, D28).

import { randomBytes } from 'node:crypto'
import { accessSync, constants, existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileProblem, writeProblem } from '../host/fs-errors.ts'
import { makeDirectory } from '../host/make-directory.ts'
import { writeSecret } from '../host/secret-file.ts'
import { authorityFiles } from '../serving/authority.ts'
import { makeKeyRing, type RingKey, readKeyRing } from '../storage/key-ring.ts'
import { SettingsError } from './settings.ts'

export function openDirectory(directory: string): void {
  try {
    makeDirectory(directory)
  } catch (error) {
    throw new Error(`cannot create the data directory ${directory}: ${(error as Error).message}`)
  }
}

/** Checks that a server can use the directory. SQLite does not report permission errors as such. */
export function checkPermission(directory: string): void {
  for (const path of [directory, join(directory, 'lock.db'), join(directory, 'platform.db')])
    try {
      if (existsSync(path)) accessSync(path, constants.R_OK | constants.W_OK)
    } catch (error) {
      throw new Error(`cannot use the data directory: ${writeProblem(path, error)} (${ownerOf(path)})`)
    }
}

const ownerOf = (path: string) =>
  `it belongs to the user with id ${statSync(path).uid}, and this program runs as ${process.geteuid?.()}`

/** Throws if a part of the CA is missing. Creating a new CA over the rest would invalidate the trust of all clients. */
export function requireCompleteCa(directory: string): void {
  const files = authorityFiles(directory)
  const [missing, other] = files.filter(file => !existsSync(file))
  if (missing === undefined || other !== undefined) return
  const left = files.find(file => file !== missing)
  throw new Error(
    `${missing} is missing: restore it, or remove ${left} too; the server then creates a new CA, which every client must trust again`,
  )
}

/** `mayMake`: the store is still empty, so that a new key cannot make secrets unreadable. */
export type KeyRingOptions = {
  readonly directory: string
  readonly setting: string
  readonly env: { readonly [name: string]: string | undefined }
  readonly mayMake: boolean
  /** Ids of the keys that the stored data needs. Called if there is no ring. */
  readonly needed?: () => Iterable<string>
}

export type KeyRing = { readonly keys: readonly RingKey[]; readonly from: string }

/**
 * `setting`: a file, env:NAME, or empty for master.key in the directory. The server creates that file if it is missing.
 */
export function keyRingIn({ directory, setting, env, mayMake, needed }: KeyRingOptions): KeyRing {
  if (setting.startsWith('env:')) {
    const text = env[setting.slice(4)]
    if (!text) throw new Error(`masterKey: the environment variable ${setting.slice(4)} is not set`)
    return { keys: readKeyRing(text), from: setting }
  }
  const file = setting || join(directory, 'master.key')
  const isMissing = !setting && !existsSync(file)
  if (isMissing && !mayMake) {
    const ids = [...(needed?.() ?? [])].map(id => `"${id}"`).join(' and ')
    throw new Error(
      `${file} is missing, and the store has secrets that only this key ring decrypts; restore it${ids && `, with the key ${ids}`}, copy it from another replica, or set --master-key`,
    )
  }
  if (isMissing)
    writeSecret(
      file,
      makeKeyRing(size => randomBytes(size)),
    )
  try {
    return { keys: readKeyRing(readFileSync(file, 'utf8')), from: file }
  } catch (error) {
    const isDenied = (error as NodeJS.ErrnoException).code === 'EACCES'
    const owner = isDenied && statSync(file, { throwIfNoEntry: false }) ? ` (${ownerOf(file)})` : ''
    const problem = `masterKey: ${fileProblem(file, error)}${owner}`
    throw setting ? new SettingsError([problem]) : new Error(problem)
  }
}

export function kubeconfig({
  server,
  ca,
  key,
}: {
  readonly server: string
  /** undefined: clients use the CAs of their machine. */
  readonly ca: string | undefined
  readonly key: string
}): string {
  const trust = ca === undefined ? '' : `\n    certificate-authority-data: ${Buffer.from(ca).toString('base64')}`
  return `apiVersion: v1
kind: Config
clusters:
- name: platform
  cluster:
    server: ${server}/kubernetes/management${trust}
users:
- name: admin
  user:
    token: ${key}
contexts:
- name: platform
  context:
    cluster: platform
    user: admin
current-context: platform
`
}

/** An address to connect to, for listeners on all addresses. */
export const reachable = (url: string) => url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:')

/** Updates the administrator's kubeconfig if the address of the server has changed. */
export function followAddress(directory: string, listeners: readonly { readonly url: string }[]): void {
  const file = join(directory, 'admin.kubeconfig')
  const secure = listeners.find(listener => listener.url.startsWith('https:'))
  if (!secure || !existsSync(file)) return
  const text = readFileSync(file, 'utf8')
  const moved = text.replace(/^(\s+server: ).*$/m, `$1${reachable(secure.url)}/kubernetes/management`)
  if (moved !== text) writeSecret(file, moved)
}
