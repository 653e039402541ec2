// What is said when a connection that is followed is lost: once for each reason until it is back. `-w` and `run --watch` go on then.

import { ApiError } from '../api/errors.ts'
import type { FollowOptions } from '../client/list-watch.ts'
import type { Io } from '../host/command.ts'
import { isUntrusted } from './login/trust.ts'

/** For `follow`. Throws where whoever answers is not the server that is trusted: waiting does not mend that. */
export function lostTo(io: Io, what: 'seen' | 'followed'): Pick<FollowOptions, 'lost' | 'back'> {
  const told = new Set<string>()
  return {
    lost(error) {
      if (error instanceof ApiError && isUntrusted(error)) throw error
      const { message } = error as Error
      if (!told.has(message))
        io.err(`platform: warning: changes are not ${what} at the moment: ${message}; tried again\n`)
      told.add(message)
    },
    back: () => told.clear(),
  }
}
