// Sign-in of machines: their tokens, the exchange for keys, and the end of both when auth.yaml changes.

import { hash } from 'node:crypto'
import type { Logger } from 'pino'
import { isMachine } from '../api/caller.ts'
import { type ExchangeToken, openExchange } from '../auth/jwt/exchange.ts'
import type { MachineTokens } from '../auth/jwt/machine-tokens.ts'
import { openRemovedIssuers, type RemovedIssuers } from '../auth/jwt/removed-issuers.ts'
import type { LoginStates } from '../auth/sessions/login-states.ts'
import type { ApiServer, SignInParts } from './api-server.ts'
import type { SignIn } from './sign-in.ts'

export type Machines = {
  /** undefined: no auth.yaml is configured. */
  readonly tokens: MachineTokens | undefined
  readonly exchange: ExchangeToken | undefined
  /** Ends what removed entries allowed, now and after every reload. */
  follow(write: ApiServer['write']): Promise<void>
  stop(): void
}

export type MachinesOptions = {
  readonly signIn: Pick<SignIn, 'openTokens' | 'onReload'> | undefined
  readonly states: LoginStates
  readonly log: Logger
  readonly now: () => number
  readonly maxKeyTTL: number
}

export function openMachines(options: MachinesOptions, parts: SignInParts): Machines {
  const { signIn, states, log, now, maxKeyTTL } = options
  const { teams, keyIndex, internalClient: resources } = parts
  const tokens = signIn?.openTokens({ teams, changed: () => parts.changed(isMachine) })
  let removed: RemovedIssuers | undefined
  return {
    tokens,
    exchange: tokens && openExchange({ tokens, states, resources, now, maxKeyTTL }),
    async follow(write) {
      const opened = openRemovedIssuers({
        issuers: () => tokens?.issuers().map(({ config }) => config) ?? [],
        isAccepted: record => tokens?.isAccepted(record) ?? false,
        keyIndex,
        states,
        resources,
        write,
        digest: text => hash('sha256', text, 'hex'),
        now,
        failed: error => log.warn({ err: error }, 'ending the access of removed issuers failed, retrying'),
      })
      removed = opened
      signIn?.onReload(() => void opened.update())
      await opened.update()
    },
    stop() {
      removed?.stop()
      tokens?.stop()
    },
  }
}
