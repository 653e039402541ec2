// Sign-in with the browser of another device: the device flow of RFC 8628.

import { setTimeout } from 'node:timers/promises'
import { ApiError } from '../../api/errors.ts'
import type { JsonObject } from '../../api/object.ts'
import type { Io } from '../../host/command.ts'
import { interruptible } from '../../host/interrupt.ts'
import { machineName } from '../../host/machine-name.ts'
import { isRetryable } from '../session.ts'
import { failedSignIn, invalidResponse, keyIn, type SignInApi } from './sign-in-api.ts'

type Sleep = (milliseconds: number) => Promise<void>

/** Returns the key of the new session. */
export function loginWithDevice(io: Io, api: SignInApi): Promise<string> {
  return interruptible(async signal => {
    const started = await api.post('/auth/device/code', { machine: machineName() })
    if (!started.ok) throw failedSignIn(`${api.server} rejected the sign-in: ${started.description}`)
    const { verification_uri: uri, user_code: code } = started.body
    if (typeof uri !== 'string' || typeof code !== 'string') throw invalidResponse(api.server)
    io.err(`Visit ${uri} and enter the code ${code}\n`)
    io.err('Only enter this code if you started this sign-in yourself.\n')
    const sleep: Sleep = time =>
      setTimeout(time, undefined, { signal }).catch(() => {
        throw signal.reason
      })
    return pollDevice(api, started.body, { now: io.now, sleep })
  })
}

const defaultInterval = 5
const slowDownBy = 5
const longestInterval = 60

/** Waits until somebody approves the code. Throws if it is denied or expires. */
export async function pollDevice(
  api: Pick<SignInApi, 'post' | 'server'>,
  started: JsonObject,
  { now, sleep }: { readonly now: () => number; readonly sleep: Sleep },
): Promise<string> {
  const { device_code: code = '', expires_in: lifetime, interval: wanted } = started
  const end = now() + Number(lifetime) * 1000
  let interval = Math.max(1, Number(wanted ?? defaultInterval) || defaultInterval)
  for (;;) {
    await sleep(interval * 1000)
    // Also if the server sends no valid lifetime.
    if (!(now() < end)) throw expired(api.server)
    const answer = await api.post('/auth/device/token', { device_code: code }).catch(unreachable)
    if (answer?.ok) return keyIn(api.server, answer.body, 'key')
    // An unreachable server is polled less often, as RFC 8628 requires.
    if (!answer) interval = Math.min(interval * 2, longestInterval)
    else if (answer.error === 'slow_down') interval += slowDownBy
    else if (answer.error === 'expired_token') throw expired(api.server)
    else if (answer.error === 'access_denied') throw failedSignIn('the sign-in was denied in the browser')
    else if (answer.error !== 'authorization_pending')
      throw failedSignIn(`${api.server} rejected the sign-in: ${answer.description}`)
  }
}

function unreachable(error: unknown): undefined {
  const isTemporary = error instanceof ApiError && [429, 502, 503, 504].includes(error.code)
  // An untrusted certificate has the same code as an unreachable server.
  if (!isTemporary || !isRetryable(error)) throw error
}

const expired = (server: string) =>
  failedSignIn(`the code has expired; for a new one: platform login ${server} --device`)
