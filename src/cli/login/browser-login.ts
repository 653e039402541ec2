// Sign-in with the browser: opens a page of the server, and exchanges the one-time code that returns on a loopback port.

import { hash } from 'node:crypto'
import { shortDuration } from '../../api/duration.ts'
import type { Io } from '../../host/command.ts'
import { aborted, interruptible } from '../../host/interrupt.ts'
import { listenForCallback } from '../../host/loopback-callback.ts'
import { machineName } from '../../host/machine-name.ts'
import { openBrowser } from '../../host/open-browser.ts'
import { failedSignIn, keyIn, type SignInApi } from './sign-in-api.ts'

export type BrowserLogin = {
  readonly provider?: string | undefined
  readonly hint?: string | undefined
  readonly opensBrowser: boolean
  /** Seconds to wait for the user. */
  readonly timeout: number
}

/** Returns the key of the new session. */
export function loginWithBrowser(io: Io, api: SignInApi, options: BrowserLogin): Promise<string> {
  return interruptible(async signal => {
    const [state, verifier] = [secretOf(io), secretOf(io)]
    const listener = await listenForCallback(state)
    try {
      const query = new URLSearchParams({
        port: String(listener.port),
        state,
        challenge: hash('sha256', verifier, 'base64url'),
        machine: machineName(),
        ...(options.provider === undefined ? {} : { provider: options.provider }),
        ...(options.hint === undefined ? {} : { hint: options.hint }),
      })
      await show(io, `${api.server}/auth/cli?${query}`, options.opensBrowser)
      const late = AbortSignal.timeout(options.timeout * 1000)
      const { code, answer } = await Promise.race([
        listener.received,
        aborted(signal),
        aborted(late).catch(() => {
          throw tooLate(api.server, options.timeout)
        }),
      ])
      if (code === undefined) {
        await answer(false)
        throw failedSignIn('the sign-in was denied in the browser')
      }
      const result = await api.post('/auth/cli/token', { code, verifier }).catch(async error => {
        await answer(false)
        throw error
      })
      await answer(result.ok)
      if (!result.ok) throw failedSignIn(`${api.server} rejected the sign-in: ${result.description}`)
      return keyIn(api.server, result.body, 'key')
    } finally {
      listener.close()
    }
  })
}

const secretOf = ({ random }: Io) => Buffer.from(random(32)).toString('base64url')

async function show(io: Io, url: string, opensBrowser: boolean): Promise<void> {
  if (opensBrowser && (await openBrowser(url, io.env)))
    io.err(`Opening ${url}\nIf no browser opens, visit that address.\n`)
  else io.err(`Visit ${url}\n`)
}

const tooLate = (server: string, timeout: number) =>
  failedSignIn(
    `nobody confirmed the sign-in within ${shortDuration(timeout)}; if this machine has no browser: platform login ${server} --device`,
  )
