// The request pipeline, in reading order: parse, authenticate, authorize, read the body, run the verb, respond.

import type { Caller } from '../api/caller.ts'
import { badRequest, methodNotAllowed, misdirected, tooManyRequests, unavailable, unknownPath } from '../api/errors.ts'
import type { Kind, Question, Verb } from '../api/kind.ts'
import type { Document, Resources, WriteCheck } from '../api/resources.ts'
import type { Fairness } from '../serving/event-loop-fairness.ts'
import { type AuditContext, type Exchange, openExchange, type Request, type Response } from '../serving/exchange.ts'
import type { InflightLimits } from '../serving/inflight-limits.ts'
import { isLoopback } from '../serving/listener.ts'
import { type Answer, respond, statusOf } from '../serving/respond.ts'
import type { Tracing } from '../serving/tracing/tracing.ts'
import { type Access, type AuthResult, authorize, prepare, reauthorize, reauthorizeWatch } from './auth-filter.ts'
import { type Confirm, confirmFor } from './confirm.ts'
import type { Console } from './console.ts'
import { refuse } from './error-response.ts'
import { limitResult, metadataLimit, withView } from './metadata-only.ts'
import { noteTokenUser } from './misplaced-token.ts'
import { negotiate, shapeOf, type View } from './negotiate.ts'
import { noteOf } from './note-read.ts'
import { withoutData } from './omit-data.ts'
import { timeoutOf } from './options.ts'
import { redactResponse } from './redact-response.ts'
import {
  type KindFinder,
  kindFinder,
  type ReadRequest,
  type RequestInfo,
  type ResourceInfo,
  requestReader,
} from './request-info.ts'
import { outcomeOf } from './request-span.ts'
import { isSignInPath, type SignInPages } from './sign-in/routes.ts'
import { mayBegin, recordOf } from './strict-audit.ts'
import { includeOf } from './table.ts'
import { type Work, within } from './time-limit.ts'
import { openWatch, perform, type Ready } from './verbs.ts'
import { waitOf } from './wait.ts'
import { streamWatch } from './watch-stream.ts'
import { requireUnchanged, writeCheck } from './write-check.ts'
import { writeResult } from './write-result.ts'

/** A route that is not a resource: discovery, OpenAPI, health, metrics. undefined: not found. */
export type Page = (path: string, exchange: Exchange) => Answer | undefined | Promise<Answer | undefined>

export type Observation = {
  readonly exchange: Exchange
  readonly info: RequestInfo | undefined
  readonly caller: Caller | undefined
  readonly code: number
  readonly seconds: number
  readonly error: unknown
}

export type ServerOptions = {
  readonly kinds: readonly Kind[]
  readonly access: Access
  /** `check`: called with the stored object before a write changes it. */
  readonly resourcesFor: (caller: Caller, check?: WriteCheck) => Resources
  /** Waits for a resourceVersion that the store has not reached. Throws if it is invalid, or does not come soon. */
  readonly reachVersion: (resourceVersion: string) => Promise<void>
  readonly confirm: Confirm
  /** Waits for the index that filtered lists use; undefined: it is complete. */
  readonly indexed: () => Promise<void> | undefined
  /** Pages below the prefix, and at the root. */
  readonly pages: Page
  readonly rootPages: Page
  /** The pages of sign-in below /auth; absent: there are none. */
  readonly signIn?: SignInPages | undefined
  /** Answers other replicas; undefined: not a request of one. */
  readonly peers?: ((exchange: Exchange) => Promise<Answer | undefined> | undefined) | undefined
  /** The web console; absent: it is not served. */
  readonly console?: Console | undefined
  readonly limits: InflightLimits
  /** The queue of requests that wait for their turn on the event loop. */
  readonly fairness: Fairness
  /** Whether writes are refused while the audit log cannot be written. */
  readonly refuseUnaudited: boolean
  /** Whether the listener refuses Host headers other than loopback names: a web page could send them by DNS rebinding (D1). */
  readonly loopbackOnly: boolean
  readonly now: () => number
  readonly uuid: () => string
  /** Aborted when the server shuts down: watches end. */
  readonly ending: AbortSignal
  /** Called for every object that was read with its data, for kinds that keep the time of the last read. */
  readonly noteRead: (kind: Kind, document: Document) => void
  /** Times that are stored beside the objects, for columns (D19, D35). */
  readonly lastActivity: (id: string) => number | undefined
  /** Called for every response, for metrics and logs. */
  readonly observe: (observation: Observation) => void
  /** Absent: tracing is off. */
  readonly tracing?: Tracing | undefined
}

export type Handler = (request: Request, response: Response) => Promise<void>

export function requestHandler(options: ServerOptions): Handler {
  const find = kindFinder(options.kinds)
  const read = requestReader(find)
  return async (request, response) => {
    const started = performance.now()
    const exchange = openExchange(request, response, options.uuid)
    const seen: RequestState = { info: undefined, caller: undefined }
    const { tracing } = options
    const span = tracing?.server(exchange)
    exchange.span = span
    let error: unknown
    try {
      if (span) await tracing?.within(span, () => handle(options, read, find, exchange, seen))
      else await handle(options, read, find, exchange, seen)
    } catch (thrown) {
      error = thrown
      await refuse(exchange, thrown).catch(() => response.destroy())
      await noteTokenUser(options.access, exchange, thrown)
    }
    // Nobody is answered who has gone: what would have been the answer is on record all the same.
    const code = error === undefined || response.headersSent ? response.statusCode : statusOf(error).code
    if (exchange.auditContext) options.access.audit.complete(exchange.auditContext, code, error)
    const seconds = (performance.now() - started) / 1000
    const observation = { exchange, info: seen.info, caller: seen.caller, code, seconds, error }
    span?.end(outcomeOf(observation))
    options.observe(observation)
  }
}

type RequestState = { info: RequestInfo | undefined; caller: Caller | undefined }

async function handle(
  options: ServerOptions,
  read: ReadRequest,
  find: KindFinder,
  exchange: Exchange,
  seen: RequestState,
): Promise<void> {
  if (options.loopbackOnly && !isLoopback(exchange.request.headers.host))
    throw misdirected('this listener accepts only the Host localhost, 127.0.0.1 or [::1]')
  const answering = options.peers?.(exchange)
  const answer = answering && (await answering)
  if (answer) return await respond(exchange, answer)
  const confirming = confirmFor(options.confirm, exchange)
  if (confirming) await confirming
  if (options.signIn && isSignInPath(exchange.path)) {
    const asked = { verb: exchange.method.toLowerCase(), path: exchange.path }
    exchange.auditContext = options.access.audit.begin(exchange, asked, undefined)
    return await respond(exchange, await options.signIn(exchange))
  }
  const file = options.console?.(exchange)
  if (file) return await respond(exchange, await file)
  const parsed = read(exchange)
  const question = parsed
    ? withView(parsed.question, exchange)
    : { verb: exchange.method.toLowerCase(), path: exchange.path }
  const checking = exchange.span?.child('authorize')
  const verifying = prepare(options.access, exchange)
  if (verifying) await verifying
  const authResult = authorize(options.access, exchange, question, find)
  checking?.end()
  seen.caller = authResult.caller
  if (!parsed) return servePage(options.rootPages, exchange.path, exchange)
  const info = parsed.info()
  seen.info = info
  if (info.type === 'path') return servePage(options.pages, info.path, exchange)
  const caller = authResult.caller as Caller
  if (exchange.auditContext) exchange.auditContext.kind = info.kind
  const recorded = recordOf(options, exchange, info)
  if (recorded && !(await mayBegin(options.access.audit, recorded)))
    throw unavailable('the audit log is not writable, so writes are rejected; retry later')
  const view = negotiate(exchange.request.headers.accept, shapeOf(info.verb))
  const leave = options.limits.enter(
    caller.impersonator ?? caller.username,
    info.verb === 'get' || info.verb === 'list' ? 'read' : info.verb === 'watch' ? 'watch' : 'write',
  )
  const turn = options.fairness()
  if (!leave) {
    // They come back together: answered in turn, they do so one after the other.
    if (turn) await waitForTurn(turn, exchange)
    throw tooManyRequests()
  }
  const work: Work = { settled: undefined }
  try {
    if (turn) await waitForTurn(turn, exchange)
    const again = () => reauthorize(options.access, exchange, question, find)
    const current = turn ? again() : authResult
    const waiting = waitOf(options, exchange, info, current)
    // A quick read waits for nothing after this. Everything else waits for a body, a version or the index, and is authorized again.
    const latest = isQuick(info, exchange) && !waiting ? () => current : again
    const service = { view, authResult: current, latest, question, work, recorded, waiting }
    if (info.verb === 'watch') await serveWatch(options, exchange, info, service)
    else await serve(options, exchange, info, service)
  } finally {
    // After a timeout response the work continues. It counts as in flight until it ends.
    if (work.settled) void work.settled.then(leave)
    else leave()
  }
}

/** A client that disconnects while it waits frees its slot at once, so that others are not refused for it. */
async function waitForTurn(turn: Promise<void>, exchange: Exchange): Promise<void> {
  await Promise.race([turn, new Promise<void>(resolve => exchange.onClosed(resolve))])
  if (exchange.closed) throw badRequest('the client disconnected while its request was queued')
}

type Service = {
  readonly view: View
  readonly authResult: AuthResult
  /** Authorizes again with the current permissions; throws if the caller lost them. */
  readonly latest: () => AuthResult
  readonly question: Question
  readonly work: Work
  /** Set where what came of it has to be on record before it is answered. */
  readonly recorded: AuditContext | undefined
  /** Resolves when the request can be authorized for the last time; undefined: at once. */
  readonly waiting: Promise<void> | undefined
}

async function serve(options: ServerOptions, exchange: Exchange, info: ResourceInfo, service: Service): Promise<void> {
  const { view, latest, question, work, recorded, waiting } = service
  const timeout = timeoutOf(exchange.query)
  let { authResult } = service
  // After every wait: a caller who holds the body back, or asks for a version to come, does not keep the rights from before.
  const ready = (): Ready => {
    authResult = latest()
    const { verdict } = authResult
    const selection = verdict.answer === 'only' ? { only: verdict.filter, among: verdict.among } : everything
    const check = isRead(info) ? undefined : writeCheck(options.access, authResult, { ...info, question, latest })
    return { resources: options.resourcesFor(authResult.caller as Caller, check), selection }
  }
  const start = () => perform[info.verb as Exclude<Verb, 'watch'>](ready, info, exchange)
  const working = waiting ? waiting.then(start) : start()
  const result = isQuick(info, exchange) && !waiting ? await working : await within(timeout, working, work)
  if (info.kind.about) requireUnchanged(authResult, latest())
  if (exchange.auditContext) exchange.auditContext.answer = result
  if (recorded && !(await options.access.audit.conclude(recorded, result.type === 'document' ? result.code : 200)))
    throw unavailable('the change is stored, but the audit log cannot be written: check the object before you retry')
  const shown =
    isRead(info) && info.subresource !== 'status'
      ? result
      : redactResponse(result, info, authResult.caller as Caller, options.access.authorizer)
  const note = isRead(info) && shown === result ? noteOf(options, exchange, info, view) : undefined
  if (note && result.type === 'document') note(result.document)
  if (note && result.type === 'list') for (const document of result.list.items) note(document)
  const limited = limitResult(withoutData(shown, exchange, info), authResult.caller, question)
  const sending = respond(exchange, writeResult(limited, info.kind, view, exchange, clockOf(options)))
  if (sending) await sending
}

const everything = {}

const clockOf = ({ now, lastActivity }: ServerOptions) => ({ now: now(), lastActivity })

async function serveWatch(
  options: ServerOptions,
  exchange: Exchange,
  info: ResourceInfo,
  service: Service,
): Promise<void> {
  const { view, latest, question, waiting } = service
  if (waiting) await waiting
  const authResult = waiting ? latest() : service.authResult
  const resources = options.resourcesFor(authResult.caller as Caller)
  const watching = reauthorizeWatch(options.access, exchange, question, authResult)
  try {
    const { watch, bookmarks, timeoutSeconds } = await openWatch(resources, info, exchange, watching.selection)
    watching.onDenied(watch.stop)
    if (exchange.auditContext) options.access.audit.started(exchange.auditContext, 200)
    await streamWatch(exchange, watch, {
      kind: info.kind,
      view,
      include: includeOf(exchange.query),
      limit: object => metadataLimit(watching.caller(), question)?.(object) ?? object,
      note: noteOf(options, exchange, info, view),
      bookmarks,
      isAllowed: watching.isAllowed,
      timeout: Math.min((timeoutSeconds ?? 1800 + Math.random() * 1800) * 1000, longestTimer),
      now: options.now,
      lastActivity: options.lastActivity,
      crowd: () => options.limits.current.watch,
      ending: options.ending,
    })
  } finally {
    watching.close()
  }
}

/** The longest delay of a timer, 24 days. A longer one would fire at once. */
const longestTimer = 2 ** 31 - 1

const isRead = ({ verb }: ResourceInfo) => verb === 'get' || verb === 'list'

/** Reads are answered from memory, unless they wait for a version or search the audit log: no timer needed. */
const isQuick = (info: ResourceInfo, { query }: Exchange) =>
  isRead(info) && !info.kind.about && !query.has('resourceVersion')

async function servePage(page: Page, path: string, exchange: Exchange): Promise<void> {
  if (exchange.method !== 'GET')
    throw methodNotAllowed(exchange.method.toLowerCase(), { group: '', plural: path, kind: path })
  const answer = await page(path, exchange)
  if (!answer) throw unknownPath()
  await respond(exchange, answer)
}
