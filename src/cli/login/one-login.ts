// Lets only one program at a time sign in to a context. The others wait, and use its key, so that one browser tab opens.

import type { Io } from '../../host/command.ts'
import { loginFile } from '../paths.ts'
import { type Context, readContexts, readKey } from './contexts.ts'

export type LoginTarget = {
  readonly name: string
  readonly server: string
  /** Only a key of this type is used. */
  readonly keyType: string
  /** The context before the wait. */
  readonly before: Context | undefined
}

/** `work` gets the key that another program stored during the wait, if there is one. */
export async function oneLogin<T>(
  io: Io,
  { name, server, keyType, before }: LoginTarget,
  work: (stored: string | undefined) => Promise<T>,
): Promise<T> {
  const waiting = `platform: waiting for another sign-in to context "${name}"\n`
  return io.files.locked(
    loginFile(io.env, name),
    async () => {
      const now = (await readContexts(io)).contexts[name]
      // A sign-in during the wait has another key name, whatever the clocks say.
      const isNew = now?.server === server && now.keyType === keyType && now.keyName !== before?.keyName
      return work(isNew ? await readKey(io, name, now) : undefined)
    },
    waiting,
  )
}
