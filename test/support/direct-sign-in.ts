// Sign-in of people and machines for a server without sockets, wired as in src/apiserver/run.ts.

import pino from 'pino'
import type { ApiServer, OpenedSignIn, SignInParts } from '../../src/apiserver/api-server.ts'
import { type Machines, openMachines } from '../../src/apiserver/machines.ts'
import { cookieNameOf, openPages, openPeople, type People } from '../../src/apiserver/people.ts'
import type { Settings } from '../../src/apiserver/settings.ts'
import { openSignIn, readAuthConfig } from '../../src/apiserver/sign-in.ts'
import { openMetrics } from '../../src/serving/metrics.ts'
import type { UnknownKeyLimiter } from '../../src/serving/unknown-key-limiter.ts'

export type DirectSignIn = ReturnType<typeof openDirectSignIn>

/** `file`: the path of auth.yaml. */
export function openDirectSignIn(file: string, now: () => number) {
  const metrics = openMetrics()
  const log = pino({ enabled: false })
  const signIn = openSignIn({ file, metrics, log, env: {}, now })
  const { providers } = signIn
  let people: People | undefined
  let machines: Machines | undefined
  return {
    issuerOf: (provider: string) => providers.get(provider)?.config.url,
    /** For `signIn` of the API server. */
    open(parts: SignInParts): OpenedSignIn {
      people = openPeople({ providers, metrics, log, now }, parts)
      machines = openMachines({ signIn, states: people.states, log, now, maxKeyTTL: 0 }, parts)
      const { states, checks } = people
      const { tokens, stop } = machines
      return {
        machineTokens: tokens,
        sessions: checks,
        mayGetGroup: signIn.mayGetGroup,
        ready: states.ready,
        stop() {
          stop()
          states.stop()
        },
      }
    },
    /** Uses the issuers of another auth.yaml at once. */
    useIssuersOf: (other: string) => machines?.tokens?.use(readAuthConfig(other, {}).issuers),
    /** The pages below /auth, and the name of the session cookie. */
    async start(apiServer: ApiServer, limits: { readonly guard: UnknownKeyLimiter; readonly settings: Settings }) {
      if (!people || !machines) throw new Error('the API server was not built with open()')
      await machines.follow(apiServer.write)
      const cookie = cookieNameOf(apiServer)
      const { sealer } = apiServer
      const certificate = () => undefined
      const parts = { people, exchangeToken: machines.exchange, apiServer, sealer, providers, certificate }
      return { cookie, pages: openPages({ ...parts, ...limits, metrics, log, now }, cookie) }
    },
    stop: signIn.stop,
  }
}
