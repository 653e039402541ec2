// The contexts file: the servers the user is signed in to, and the current one. Keys are stored elsewhere.

import { didYouMean } from '../../api/did-you-mean.ts'
import { ApiError } from '../../api/errors.ts'
import { isObject } from '../../api/object.ts'
import { type Io, UsageError, unwritableCode } from '../../host/command.ts'
import { quoted } from '../../host/sanitize.ts'
import { contextsFile, keyFile } from '../paths.ts'
import { dropCopies } from '../secrets/offline-cache.ts'

export type Context = {
  readonly server: string
  /** The CA trusted at sign-in, as PEM; absent: the CAs of this machine. */
  readonly ca?: string
  readonly namespace?: string
  readonly user?: string
  /** Name of the access key, so that logout can revoke it. */
  readonly keyName?: string
  /** Its type, if the key may read itself. Logout revokes keys of type Login. */
  readonly keyType?: string
  readonly keyIn: 'keychain' | 'file'
}
export type Contexts = { readonly current?: string; readonly contexts: { readonly [name: string]: Context } }

const maxBytes = 1024 * 1024

/** Throws on a malformed file, so that no command overwrites the only record of the contexts. */
export async function readContexts(io: Io): Promise<Contexts> {
  const file = contextsFile(io.env)
  const bytes = await io.files.read(file)
  if (!bytes?.length) return { contexts: {} }
  const invalid = (why: string) => new Error(`${file} is invalid: ${why}; fix it, or remove it and sign in again`)
  if (bytes.length > maxBytes) throw invalid(`it has more than ${maxBytes} bytes`)
  const value = parsed(new TextDecoder().decode(bytes), invalid)
  if (!isObject(value) || !isObject(value['contexts'])) throw invalid('it must be an object with "contexts"')
  const contexts: { [name: string]: Context } = Object.create(null)
  for (const [name, one] of Object.entries(value['contexts'])) {
    if (!isObject(one) || typeof one['server'] !== 'string') throw invalid(`the context "${name}" has no server`)
    contexts[name] = one as unknown as Context
  }
  const current = value['current']
  return { contexts, ...(typeof current === 'string' ? { current } : {}) }
}

function parsed(text: string, invalid: (why: string) => Error): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw invalid('it is not JSON')
  }
}

/** Returns the requested context, else the current one. The error lists the known contexts. */
export function contextNamed({ current, contexts }: Contexts, requested: string | undefined): string {
  const names = Object.keys(contexts)
  const name = requested ?? current
  if (name !== undefined && contexts[name]) return name
  if (name !== undefined)
    throw new UsageError([
      `unknown context ${quoted(name)}${didYouMean(name, names) || `; known contexts: ${names.join(', ') || 'none'}`}`,
    ])
  const why = names.length
    ? `there is no current context: platform context use NAME; known contexts: ${names.join(', ')}`
    : 'not signed in: platform login URL'
  throw new ApiError(401, 'Unauthorized', why)
}

/** Holds the file lock while contexts and keys change, so that concurrent sign-ins do not overwrite each other. */
export async function changeContexts(
  io: Io,
  change: (before: Contexts) => Contexts | Promise<Contexts>,
): Promise<void> {
  const file = contextsFile(io.env)
  const work = async () => {
    const next = await change(await readContexts(io))
    await io.files.write(file, `${JSON.stringify(next, undefined, 2)}\n`)
  }
  await io.files.locked(file, work).catch(withDirectoryHint(file, 'XDG_CONFIG_HOME'))
}

const withDirectoryHint = (file: string, variable: string) => (error: Error & { code?: string; file?: string }) => {
  if (error.code !== unwritableCode || !error.file?.startsWith(file)) throw error
  throw new Error(`${error.message}; set ${variable} to use another directory`, { cause: error })
}

export async function readKey(io: Io, name: string, { keyIn }: Context): Promise<string | undefined> {
  if (keyIn === 'keychain') return (await io.keychain())?.get(name)
  const bytes = await io.files.read(keyFile(io.env, name))
  return bytes && new TextDecoder().decode(bytes).trim()
}

/** Stores the key in the keychain, or in a file with mode 0600 if there is no usable keychain. */
export async function storeKey(io: Io, name: string, key: string): Promise<Context['keyIn']> {
  const keychain = await io.keychain()
  const isStored = await keychain?.set(name, key).then(
    () => true,
    () => false,
  )
  if (isStored) {
    await io.files.remove(keyFile(io.env, name))
    return 'keychain'
  }
  const file = keyFile(io.env, name)
  await io.files.write(file, `${key}\n`).catch(withDirectoryHint(file, 'XDG_DATA_HOME'))
  return 'file'
}

/** Deletes cached secrets that were read with a key that the context no longer uses. */
export async function forgetCopies(io: Io, name: string, context: Context, next?: string): Promise<void> {
  const key = await readKey(io, name, context).catch(() => undefined)
  if (key !== undefined && key !== next) await dropCopies(io, { server: context.server, key })
}

export async function forgetContext(io: Io, name: string): Promise<void> {
  await changeContexts(io, async ({ current, contexts }) => {
    const { [name]: context, ...rest } = contexts
    if (context) await forgetCopies(io, name, context)
    if (context?.keyIn === 'keychain') await (await io.keychain())?.remove(name)
    await io.files.remove(keyFile(io.env, name))
    return { contexts: rest, ...(current !== undefined && current !== name ? { current } : {}) }
  })
}
