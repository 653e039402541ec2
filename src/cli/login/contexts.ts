// The contexts file: which servers one is signed in to, and which is the current one. No key is in it. session.ts and the commands read it.

import { didYouMean } from '../../api/did-you-mean.ts'
import { ApiError } from '../../api/errors.ts'
import { isObject } from '../../api/object.ts'
import { type Io, UsageError, unwritableCode } from '../../host/command.ts'
import { quoted } from '../../host/sanitize.ts'
import { contextsFile, keyFile } from '../paths.ts'
import { dropCopies } from '../secrets/offline-cache.ts'

export type Context = {
  readonly server: string
  /** The CA that was trusted at sign-in, PEM; absent: those the machine trusts. */
  readonly ca?: string
  readonly namespace?: string
  readonly user?: string
  /** Name of the access key, to revoke it at the end. */
  readonly keyName?: string
  /** Its type, where that could be read: a key of type Login ends with its session. */
  readonly keyType?: string
  readonly keyIn: 'keychain' | 'file'
}
export type Contexts = { readonly current?: string; readonly contexts: { readonly [name: string]: Context } }

const mostBytes = 1024 * 1024

/** A file that cannot be read is never written over: it is the only place that knows the contexts. */
export async function readContexts(io: Io): Promise<Contexts> {
  const file = contextsFile(io.env)
  const bytes = await io.files.read(file)
  if (!bytes?.length) return { contexts: {} }
  const broken = (why: string) => new Error(`${file} is broken: ${why}; mend it, or move it away and sign in again`)
  if (bytes.length > mostBytes) throw broken(`it has more than ${mostBytes} bytes`)
  const value = parsed(new TextDecoder().decode(bytes), broken)
  if (!isObject(value) || !isObject(value['contexts'])) throw broken('it must be an object with "contexts"')
  const contexts: { [name: string]: Context } = Object.create(null)
  for (const [name, one] of Object.entries(value['contexts'])) {
    if (!isObject(one) || typeof one['server'] !== 'string') throw broken(`the context "${name}" has no server`)
    contexts[name] = one as unknown as Context
  }
  const current = value['current']
  return { contexts, ...(typeof current === 'string' ? { current } : {}) }
}

function parsed(text: string, broken: (why: string) => Error): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw broken('it is not JSON')
  }
}

/** The one that is asked for, else the current one. Throws what says which there are. */
export function contextNamed({ current, contexts }: Contexts, asked: string | undefined): string {
  const names = Object.keys(contexts)
  const name = asked ?? current
  if (name !== undefined && contexts[name]) return name
  if (name !== undefined)
    throw new UsageError([
      `there is no context ${quoted(name)}${didYouMean(name, names) || `; there are: ${names.join(', ') || 'none'}`}`,
    ])
  const why = names.length
    ? `no context is the current one: platform context use NAME; there are: ${names.join(', ')}`
    : 'not signed in: platform login URL'
  throw new ApiError(401, 'Unauthorized', why)
}

/** One at a time, with the keys that belong to it: two sign-ins at once both count, and no context gets another's key. */
export async function changeContexts(
  io: Io,
  change: (before: Contexts) => Contexts | Promise<Contexts>,
): Promise<void> {
  const file = contextsFile(io.env)
  const work = async () => {
    const next = await change(await readContexts(io))
    await io.files.write(file, `${JSON.stringify(next, undefined, 2)}\n`)
  }
  await io.files.locked(file, work).catch(orElsewhere(file, 'XDG_CONFIG_HOME'))
}

const orElsewhere = (file: string, variable: string) => (error: Error & { code?: string; file?: string }) => {
  if (error.code !== unwritableCode || !error.file?.startsWith(file)) throw error
  throw new Error(`${error.message}; ${variable} names another directory for it`, { cause: error })
}

export async function readKey(io: Io, name: string, { keyIn }: Context): Promise<string | undefined> {
  if (keyIn === 'keychain') return (await io.keychain())?.get(name)
  const bytes = await io.files.read(keyFile(io.env, name))
  return bytes && new TextDecoder().decode(bytes).trim()
}

/** In the keychain where there is one that takes it, else in a file for its owner alone. */
export async function keepKey(io: Io, name: string, key: string): Promise<Context['keyIn']> {
  const keychain = await io.keychain()
  const kept = await keychain?.set(name, key).then(
    () => true,
    () => false,
  )
  if (kept) {
    await io.files.remove(keyFile(io.env, name))
    return 'keychain'
  }
  const file = keyFile(io.env, name)
  await io.files.write(file, `${key}\n`).catch(orElsewhere(file, 'XDG_DATA_HOME'))
  return 'file'
}

/** What was read with the key that a context has is nobody's once it has another, or none. */
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
