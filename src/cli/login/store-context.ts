// Stores a sign-in as a context, after confirmation if it replaces another one.

import { ApiError } from '../../api/errors.ts'
import { type Io, UsageError } from '../../host/command.ts'
import { type Context, changeContexts, forgetCopies, storeKey } from './contexts.ts'

const contextIs = (name: string, what: string) => `the context "${name}" is ${what}`
export const replacing = (name: string, what: string) =>
  `${contextIs(name, what)}; choose another name with --context, or replace it with --yes`

export async function confirmReplace(io: Io, name: string, what: string): Promise<void> {
  if (!io.ask) throw new UsageError([replacing(name, what)])
  const answer = await io.ask(`platform: ${contextIs(name, what)}. Replace it? [y/N] `)
  if (!/^y(es)?$/i.test(answer.trim())) throw new Error('cancelled; nothing was changed')
}

type NewContext = {
  /** The context before the confirmation. */
  readonly before: Context | undefined
  readonly isSure: boolean
  readonly context: { [field in 'server' | 'ca' | 'namespace' | 'user' | 'keyName' | 'keyType']?: string | undefined }
  readonly key: string
}

/** Throws if another sign-in changed the context during the prompts. */
export async function storeContext(
  io: Io,
  name: string,
  { before, isSure, context, key }: NewContext,
): Promise<Context['keyIn']> {
  let keyIn: Context['keyIn'] = 'file'
  await changeContexts(io, async ({ contexts }) => {
    const now = contexts[name]
    const isOurs = (one: Context | undefined) => one?.server === context.server && one?.user === context.user
    if (now && !isSure && !isOurs(now) && (now.server !== before?.server || now.user !== before.user))
      throw new ApiError(
        409,
        'Conflict',
        `another sign-in created context "${name}" in the meantime, for ${now.user ?? 'an unknown user'} at ${now.server}; choose another name with --context, or replace it with --yes`,
      )
    if (now) await forgetCopies(io, name, now, key)
    keyIn = await storeKey(io, name, key)
    const namespace = context.namespace ?? (now?.server === context.server ? now?.namespace : undefined)
    const next = Object.fromEntries(Object.entries({ ...context, namespace, keyIn }).filter(([, value]) => value))
    return { current: name, contexts: { ...contexts, [name]: next as unknown as Context } }
  })
  return keyIn
}
