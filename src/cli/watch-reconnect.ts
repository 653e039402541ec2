// Warns about a lost watch connection, once per cause until it reconnects.

import { ApiError } from '../api/errors.ts'
import type { FollowOptions } from '../client/list-watch.ts'
import type { Io } from '../host/command.ts'
import { isUntrusted } from './login/trust.ts'

/** Callbacks for `follow`. Throws on an untrusted server, because retrying cannot fix that. */
export function reconnectWarnings(io: Io): Pick<FollowOptions, 'onDisconnect' | 'onReconnect'> {
  const reported = new Set<string>()
  return {
    onDisconnect(error) {
      if (error instanceof ApiError && isUntrusted(error)) throw error
      const { message } = error as Error
      if (!reported.has(message)) io.err(`platform: warning: cannot watch, retrying: ${message}\n`)
      reported.add(message)
    },
    onReconnect: () => reported.clear(),
  }
}
