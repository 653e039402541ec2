// The request pipeline of the gateway: route, authentication, revocation, scope, target, forwarding.

import type { Duplex } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { ApiError, forbiddenPath, tooManyRequests, unavailable } from '../api/errors.ts'
import { allows } from '../auth/authz/scope.ts'
import { isStream, type Target, verbsOf } from '../auth/authz/scope-rules.ts'
import { isMachineKeyId } from '../auth/tokens/token.ts'
import { abortResponse } from '../serving/abort-response.ts'
import type { Audit } from '../serving/audit.ts'
import { rejectedCredential } from '../serving/audit-event.ts'
import { type Exchange, openExchange, type Request, type Response } from '../serving/exchange.ts'
import type { InflightLimits, Traffic } from '../serving/inflight-limits.ts'
import { errorHeaders, respond, statusOf } from '../serving/respond.ts'
import type { Tracing } from '../serving/tracing/tracing.ts'
import { checkGuess, type UnknownKeyLimiter } from '../serving/unknown-key-limiter.ts'
import type { Credentials } from './auth/authenticator.ts'
import { noLongerValid, type Principal, RejectedToken } from './auth/principal.ts'
import type { Revocations } from './auth/revocations.ts'
import { UnknownAccessKey } from './auth/token-review-cache.ts'
import type { ActiveRequests } from './proxy/active-requests.ts'
import { type Found, loopDetected, type Timeouts } from './proxy/backend.ts'
import { centralRouteHeader, checkInbound, type Prefixes } from './proxy/headers.ts'
import { confine } from './proxy/namespace-guard.ts'
import { forward } from './proxy/proxy.ts'
import { describeTarget, questionOf, type Route, routeOf } from './proxy/routes.ts'
import { closeAfterResponse, protocolOf, upgrade } from './proxy/upgrade.ts'
import type { Forwarding } from './proxy/upstream-request.ts'
import { sendWatchError, type WatchErrorEvent } from './proxy/watch-error-event.ts'
import { outcomeOf } from './request-span.ts'

// Not imported: an ES import of node:http evaluates all its exports, including WebSocket, which loads fetch. That takes 50 ms.
const { ServerResponse } = process.getBuiltinModule('node:http')

export type GatewayObservation = {
  readonly exchange: Exchange
  readonly route: Route | undefined
  readonly principal: Principal | undefined
  readonly code: number
  readonly seconds: number
  readonly error: unknown
}

/** The configuration that can change at runtime. */
export type Setup = {
  readonly find: (place: Route['target']) => Found | undefined
  readonly prefixes: Prefixes
  readonly timeouts: Timeouts
}

export type GatewayOptions = {
  readonly setup: () => Setup
  readonly credentials: Credentials
  readonly revocations: Pick<Revocations, 'revokedReason'>
  /** Why the gateway cannot verify anybody now; undefined: it can. */
  readonly staleFeedReason: () => string | undefined
  readonly streams: ActiveRequests
  readonly limits: InflightLimits
  readonly guard: UnknownKeyLimiter
  readonly audit: Pick<Audit, 'begin' | 'started' | 'complete'>
  /** Called when a key, or a token of it, was used. */
  readonly used: (keyUid: string) => void
  /** The uid of the connected cluster with this name; undefined: it is not known here. */
  readonly clusterUid: (cluster: string) => string | undefined
  readonly uuid: () => string
  readonly observe: (observation: GatewayObservation) => void
  /** Absent: tracing is off. */
  readonly tracing?: Tracing | undefined
}

export interface Gateway {
  handle(request: Request, response: Response): void
  upgrade(request: Request, socket: Duplex, head: Buffer): void
}

type RequestState = { route: Route | undefined; principal: Principal | undefined; code: number | undefined }
type Forward = (forwarding: Forwarding) => Promise<number | undefined>

export function openGateway(options: GatewayOptions): Gateway {
  const run = async (exchange: Exchange, forwardRequest: Forward) => {
    const started = performance.now()
    const state: RequestState = { route: undefined, principal: undefined, code: undefined }
    exchange.span = options.tracing?.server(exchange)
    let error: unknown
    try {
      await serve(options, exchange, state, forwardRequest)
    } catch (thrown) {
      error = thrown
      refuse(exchange, thrown)
    }
    const code = state.code ?? exchange.response.statusCode
    if (exchange.auditContext) options.audit.complete(exchange.auditContext, code, error)
    const seconds = (performance.now() - started) / 1000
    const observation = { exchange, route: state.route, principal: state.principal, code, seconds, error }
    exchange.span?.end(outcomeOf(observation))
    options.observe(observation)
  }
  return {
    handle(request, response) {
      void run(openExchange(request, response, options.uuid), async forwarding => {
        await forward(forwarding)
        return undefined
      })
    },
    upgrade(request, socket, head) {
      socket.on('error', () => socket.destroy())
      const response = new ServerResponse(request)
      response.shouldKeepAlive = false
      response.assignSocket(socket as never)
      response.on('finish', () => closeAfterResponse(socket))
      const exchange = openExchange(request, response, options.uuid)
      socket.on('close', () => response.emit('close'))
      // Also if the client does not read the response, which then never completes.
      void run(exchange, forwarding => upgrade({ ...forwarding, socket, head })).finally(() =>
        closeAfterResponse(socket),
      )
    },
  }
}

async function serve(
  options: GatewayOptions,
  exchange: Exchange,
  state: RequestState,
  forwardRequest: Forward,
): Promise<void> {
  const route = routeOf(exchange)
  state.route = route
  const checking = exchange.span?.child('authenticate')
  const principal = await authenticate(options, exchange, route)
  checking?.end()
  state.principal = principal
  checkInbound(exchange.request)
  if (exchange.request.headers.upgrade !== undefined && exchange.request.httpVersionMajor === 1)
    protocolOf(exchange.request)
  checkScope(exchange, route, principal)
  checkCluster(options, route, principal)
  const { find, prefixes, timeouts } = options.setup()
  const found = find(route.target)
  if (!found)
    throw new ApiError(404, 'NotFound', `${describeTarget(route.target)} is not configured on this gateway`, {
      details: {},
    })
  const { backend, namespace, ended } = found
  if (backend.identify && exchange.request.headers[centralRouteHeader] !== undefined) throw loopDetected(backend)
  if (namespace !== undefined) confine(route, namespace)
  // Only access keys have an activity. A token of an external issuer is not stored (D67).
  const used = isMachineKeyId(principal.keyUid) ? () => {} : () => options.used(principal.keyUid)
  used()
  const traffic = trafficOf(route, exchange)
  const release = options.limits.enter(principal.caller.username, traffic)
  if (!release) throw tooManyRequests()
  const watchError: WatchErrorEvent = {}
  const sent = exchange.span?.child('forward', 'client')
  const stillUsed = traffic === 'watch' ? setInterval(used, reportEvery).unref() : undefined
  const unregister = options.streams.enter({
    principal,
    isLong: traffic === 'watch',
    cut: why => cut(exchange, why, watchError),
    renew: () => options.credentials.principalOf(exchange.request),
  })
  const end = () => cut(exchange, unavailable(`${describeTarget(route.target)} has changed; retry`), watchError)
  ended?.addEventListener('abort', end)
  try {
    const started = (code: number) => {
      if (exchange.auditContext) options.audit.started(exchange.auditContext, code)
    }
    const forwarding = {
      exchange,
      route,
      principal,
      backend,
      prefixes,
      timeouts,
      started,
      watchError,
      traceparent: sent?.traceparent,
    }
    state.code = await forwardRequest(forwarding)
    sent?.end({ attributes: { 'http.response.status_code': state.code ?? exchange.response.statusCode } })
  } finally {
    clearInterval(stillUsed)
    ended?.removeEventListener('abort', end)
    sent?.end({ isError: true })
    unregister()
    release()
  }
}

/** An open stream counts as use, so that the server asks the identity provider of its user again (D67). */
const reportEvery = 60_000

/** Authenticates a token or key. Unknown access keys are counted per address. After too many, the gateway reviews no further ones. */
async function authenticate(options: GatewayOptions, exchange: Exchange, route: Route): Promise<Principal> {
  const { credentials, revocations, guard, audit } = options
  const { request } = exchange
  const question = questionOf(route)
  try {
    const staleReason = options.staleFeedReason()
    if (staleReason !== undefined) throw unavailable(staleReason)
    const found = credentials.principalOf(request, () => checkGuess(guard, guard.addressOf(request)))
    let principal = found instanceof Promise ? await found : found
    let revoked = revocations.revokedReason(principal)
    // A revocation arrived after the review of the key, so the key is reviewed again.
    for (let tries = 0; revoked !== undefined && principal.jti === undefined && tries < 2; tries++) {
      await setImmediate()
      principal = await credentials.principalOf(request)
      revoked = revocations.revokedReason(principal)
    }
    exchange.auditContext = audit.begin(exchange, question, revoked === undefined ? principal.caller : undefined)
    exchange.auditContext.noted = {
      ...credentialNotes(route, principal),
      ...(revoked === undefined ? {} : rejectedCredential(principal.caller)),
    }
    if (revoked !== undefined) throw noLongerValid(principal, revoked)
    return principal
  } catch (error) {
    exchange.auditContext ??= audit.begin(exchange, question, undefined)
    if (error instanceof RejectedToken)
      exchange.auditContext.noted = {
        ...credentialNotes(route, error.holder),
        ...rejectedCredential(error.holder.caller),
      }
    if (error instanceof UnknownAccessKey) {
      const address = guard.addressOf(request)
      checkGuess(guard, address)
      guard.failed(address)
    }
    throw error
  }
}

const credentialNotes = ({ target }: Route, { keyUid, jti }: Pick<Principal, 'keyUid' | 'jti'>) => ({
  'platform.sh/place': describeTarget(target),
  'platform.sh/access-key-uid': keyUid,
  ...(jti === undefined ? {} : { 'platform.sh/token': jti }),
})

/** The scope is checked before the existence of the target (D33). */
function checkScope({ auditContext }: Exchange, { target, act }: Route, { caller, jti }: Principal): void {
  const because = allows(caller.scope, { ...(target as Target), act })
  if (auditContext) {
    auditContext.allowed = because !== undefined
    auditContext.reason = because ?? 'outside the scope'
  }
  if (because === undefined)
    throw forbiddenPath(
      `User "${caller.username}" cannot ${describeAct(act)} in ${describeTarget(target)}: the scope of the ${jti === undefined ? 'access key' : 'token'} is ${JSON.stringify(caller.scope).slice(0, 512)}`,
    )
}

/** A stream needs two verbs, so the message names both. */
const describeAct = (act: Route['act']): string =>
  isStream(act) ? `open a stream, which needs ${verbsOf(act).join(' and ')},` : act.verb

/** A token for a cluster that was deleted is not for the one that has its name now (D68). */
function checkCluster({ clusterUid }: GatewayOptions, { target }: Route, { clusterUid: meant }: Principal): void {
  if (meant === undefined || target.target !== 'Cluster') return
  const uid = clusterUid(target.cluster)
  if (uid !== undefined && uid !== meant)
    throw forbiddenPath(`the token is for another cluster that had the name ${target.cluster}; create a new token`)
}

function trafficOf({ isLong }: Route, { method, request }: Exchange): Traffic {
  if (isLong || request.headers.upgrade !== undefined) return 'watch'
  return method === 'GET' ? 'read' : 'write'
}

/** Ends both sides: the end of the response aborts the upstream request. A client without a response gets the reason. */
function cut(exchange: Exchange, why: ApiError, watchError: WatchErrorEvent): void {
  const { response, request } = exchange
  // An upgraded connection no longer belongs to the response.
  if (!response.headersSent && response.socket) return void refuse(exchange, why)
  // Complete already: the connection may belong to the next request by now.
  if (response.headersSent && response.writableEnded) return
  if (sendWatchError(watchError, exchange, why)) return
  abortResponse(response)
  if (request.httpVersionMajor === 1) request.socket.destroy()
}

function refuse(exchange: Exchange, error: unknown): void {
  const { request, response } = exchange
  // Aborts a partial response. A complete one is not affected by this error: its connection may belong to the next request by now.
  if (response.headersSent) return void (response.writableEnded || abortResponse(response))
  const status = statusOf(error)
  const body = new TextEncoder().encode(`${JSON.stringify(status)}\n`)
  // An unread body must not keep the connection open.
  if (request.httpVersionMajor === 1 && !request.complete) response.setHeader('Connection', 'close')
  void respond(exchange, { code: status.code, type: 'application/json', body, headers: errorHeaders(status) })
}
