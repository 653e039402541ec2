// The request handler of a server in this process, without sockets, limits or an audit file. direct-server.ts uses it.

import { randomUUID } from 'node:crypto'
import type { ApiServer } from '../../src/apiserver/api-server.ts'
import { openRoutes } from '../../src/http/non-resource-routes.ts'
import { requestHandler, type ServerOptions } from '../../src/http/server.ts'
import type { SignInPages } from '../../src/http/sign-in/routes.ts'
import { kinds } from '../../src/kinds/index.ts'
import { openAudit } from '../../src/serving/audit.ts'
import type { Level } from '../../src/serving/audit-policy.ts'
import { openInflightLimits } from '../../src/serving/inflight-limits.ts'
import { openMetrics } from '../../src/serving/metrics.ts'
import type { UnknownKeyLimiter } from '../../src/serving/unknown-key-limiter.ts'

const noSink = {
  write: () => true,
  failure: undefined,
  flush: async () => {},
  settled: async () => true,
  close: async () => {},
}

type HandlerOptions = {
  readonly apiServer: ApiServer
  readonly guard: UnknownKeyLimiter
  readonly now: () => number
  readonly ending: AbortSignal
  readonly auditLevel: Level
  readonly observe: ServerOptions['observe']
  readonly signIn?: { readonly pages: SignInPages; readonly cookie: () => string } | undefined
}

export function openHandler({ apiServer, guard, now, ending, auditLevel, observe, signIn }: HandlerOptions) {
  const audit = openAudit({
    policy: { rules: [{ level: auditLevel }] },
    sink: noSink,
    hash: () => '',
    now,
    sourcesOf: guard.sourcesOf,
    counted: () => {},
  })
  return requestHandler({
    kinds,
    access: { ...apiServer, guard, audit, ...(signIn ? { cookie: { name: signIn.cookie, publicUrl: '' } } : {}) },
    signIn: signIn?.pages,
    resourcesFor: apiServer.registry.as,
    confirm: apiServer.registry.confirm,
    reachVersion: apiServer.registry.reachVersion,
    indexed: apiServer.registry.indexed,
    noteRead: apiServer.noteRead,
    lastActivity: apiServer.lastActivity,
    ...openRoutes({
      kinds,
      checks: { livez: [], readyz: [] },
      metrics: openMetrics(),
      now,
      version: 'test',
      issuer: apiServer.issuer,
    }),
    limits: openInflightLimits({ max: { read: 400, write: 400, watch: 400 }, share: 1, rate: 0, burst: 0, now }),
    fairness: () => undefined,
    refuseUnaudited: false,
    loopbackOnly: true,
    now,
    uuid: randomUUID,
    ending,
    observe,
  })
}
