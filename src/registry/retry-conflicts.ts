// Retries a write that lost a race for its object. Writers that lost take turns, so that each of them succeeds.

import type { Kind } from '../api/kind.ts'
import type { Ref } from '../api/object.ts'
import type { Context } from './context.ts'
import { isConflict, translate } from './store-errors.ts'

/** Each conflict means that another write succeeded. Because losers take turns, only new writes cause more conflicts. */
const maxAttempts = 100

/** Runs `attempt` again as long as it throws a conflict of the store. Throws API errors. */
export async function retryConflicts<T>(
  { turns }: Pick<Context, 'turns'>,
  kind: Kind,
  ref: Ref,
  attempt: () => Promise<T>,
): Promise<T> {
  let leave: (() => void) | undefined
  try {
    for (let left = maxAttempts - 1; ; left--)
      try {
        return await attempt()
      } catch (error) {
        if (!isConflict(error) || left === 0) throw translate(error, kind, ref.name)
        leave ??= await takeTurn(turns, `${kind.id}/${ref.namespace}/${ref.name}`)
      }
  } finally {
    leave?.()
  }
}

async function takeTurn(turns: Context['turns'], key: string): Promise<() => void> {
  const earlier = turns.get(key)
  const { promise, resolve } = Promise.withResolvers<void>()
  turns.set(key, promise)
  await earlier
  return () => {
    resolve()
    if (turns.get(key) === promise) turns.delete(key)
  }
}
