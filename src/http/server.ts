// The pipeline, in reading order: what is asked, who asks, may they, what they sent, what came of it, the one way out.

import type { Caller } from '../api/caller.ts'
import {
  type ApiError,
  forbidden,
  forbiddenPath,
  methodNotAllowed,
  misdirected,
  timedOut,
  tooManyRequests,
  unknownPath,
} from '../api/errors.ts'
import type { Kind, Question } from '../api/kind.ts'
import { belowPrefix } from '../api/paths.ts'
import type { Filter, Resources } from '../api/resources.ts'
import type { Authenticate } from '../auth/authenticate.ts'
import { missingKey } from '../auth/authenticate.ts'
import type { Authorizer } from '../auth/authorize.ts'
import { type Exchange, openExchange, type Request, type Response } from '../serving/exchange.ts'
import type { Limits } from '../serving/limits.ts'
import { isLoopback } from '../serving/listener.ts'
import { type Answer, respond, statusOf } from '../serving/respond.ts'
import { negotiate, plain, type View } from './negotiate.ts'
import { timeoutOf } from './options.ts'
import { type KindFinder, kindFinder, type RequestInfo, type ResourceInfo, requestInfo } from './request-info.ts'
import { includeOf } from './table.ts'
import { perform, type Result } from './verbs.ts'
import { streamWatch } from './watch-stream.ts'
import { writeError, writeResult } from './write-result.ts'

/** A page that is no object: discovery, OpenAPI, health, metrics. undefined: not found. */
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
  readonly authenticate: Authenticate
  readonly authorizer: Authorizer
  readonly resourcesFor: (caller: Caller) => Resources
  /** Pages below the prefix, and at the root. */
  readonly pages: Page
  readonly rootPages: Page
  readonly limits: Limits
  /** Whether a Host that is no loopback name is refused: another site's page may be behind it (D1). */
  readonly loopbackOnly: boolean
  readonly now: () => number
  readonly uuid: () => string
  /** Aborted when the server shuts down: watches end. */
  readonly ending: AbortSignal
  /** Told of every answer: for metrics and logs. */
  readonly observe: (observation: Observation) => void
}

export type Handler = (request: Request, response: Response) => Promise<void>

export function requestHandler(options: ServerOptions): Handler {
  const find = kindFinder(options.kinds)
  return async (request, response) => {
    const started = performance.now()
    const exchange = openExchange(request, response, options.uuid)
    const seen: Seen = { info: undefined, caller: undefined }
    let error: unknown
    try {
      await handle(options, find, exchange, seen)
    } catch (thrown) {
      error = thrown
      await refuse(exchange, thrown).catch(() => response.destroy())
    }
    const seconds = (performance.now() - started) / 1000
    options.observe({ exchange, ...seen, code: response.statusCode, seconds, error })
  }
}

type Seen = { info: RequestInfo | undefined; caller: Caller | undefined }

async function handle(options: ServerOptions, find: KindFinder, exchange: Exchange, seen: Seen): Promise<void> {
  if (options.loopbackOnly && !isLoopback(exchange.request.headers.host))
    throw misdirected('this address answers to localhost, 127.0.0.1 and [::1] only')
  const path = belowPrefix(exchange.path)
  const asked = path === undefined ? undefined : requestInfo(exchange, path, find)
  seen.caller = options.authenticate(authorizationOf(exchange))
  const question = asked?.question ?? { verb: exchange.method.toLowerCase(), path: exchange.path }
  const only = authorize(options.authorizer, exchange, seen.caller, question)
  if (path === undefined || !asked) return servePage(options.rootPages, exchange.path, exchange)
  const info = asked.info()
  seen.info = info
  if (info.type === 'path') return servePage(options.pages, info.path, exchange)
  const caller = seen.caller as Caller
  const view = negotiate(exchange.request.headers.accept, shapeOf(info))
  const leave = options.limits.enter(
    info.verb === 'get' || info.verb === 'list' ? 'read' : info.verb === 'watch' ? 'watch' : 'write',
  )
  if (!leave) throw tooManyRequests()
  try {
    await serve(options, exchange, info, { resources: options.resourcesFor(caller), view, only })
  } finally {
    leave()
  }
}

type Service = { readonly resources: Resources; readonly view: View; readonly only: Filter | undefined }

async function serve(
  options: ServerOptions,
  exchange: Exchange,
  info: ResourceInfo,
  { resources, view, only }: Service,
): Promise<void> {
  const timeout = timeoutOf(exchange.query)
  const working = perform[info.verb](resources, info, exchange, only)
  const result = isQuick(info, exchange) ? await working : await within(timeout, working)
  if (result.type === 'watch')
    return streamWatch(exchange, result.watch, {
      kind: info.kind,
      view,
      include: includeOf(exchange.query),
      bookmarks: result.bookmarks,
      timeout: (result.timeoutSeconds ?? 1800 + Math.random() * 1800) * 1000,
      now: options.now,
      ending: options.ending,
    })
  await respond(exchange, writeResult(result, info.kind, view, exchange, options.now()))
}

/** Reads are answered from memory, unless they wait for a version, and watches have a time of their own: no timer needed. */
const isQuick = ({ verb }: ResourceInfo, { query }: Exchange) =>
  verb === 'watch' || ((verb === 'get' || verb === 'list') && !query.has('resourceVersion'))

function shapeOf({ verb }: ResourceInfo): 'object' | 'list' | 'watch' {
  return verb === 'watch' ? 'watch' : verb === 'list' || verb === 'deletecollection' ? 'list' : 'object'
}

async function servePage(page: Page, path: string, exchange: Exchange): Promise<void> {
  if (exchange.method !== 'GET')
    throw methodNotAllowed(exchange.method.toLowerCase(), { group: '', plural: path, kind: path })
  const answer = await page(path, exchange)
  if (!answer) throw unknownPath()
  await respond(exchange, answer)
}

function authorizationOf({ request }: Exchange): string | undefined {
  return request.headers.authorization
}

/** Throws unless allowed; the filter where only some objects are. */
function authorize(
  authorizer: Authorizer,
  { request }: Exchange,
  caller: Caller | undefined,
  question: Question,
): Filter | undefined {
  const verdict = authorizer.authorize(caller, question)
  if (verdict.answer === 'no') throw caller ? refusal(caller, question, verdict.reason) : missingKey()
  // Never ignored: acting as oneself where somebody else was meant would be a privilege bug.
  if (isImpersonating(request))
    throw forbiddenPath(`User "${caller?.username ?? ''}" cannot impersonate: impersonation is not available`)
  return verdict.answer === 'only' ? verdict.filter : undefined
}

function isImpersonating({ headers }: Request): boolean {
  for (const name in headers) if (name.startsWith('impersonate-')) return true
  return false
}

function refusal({ username }: Caller, question: Question, reason: string): ApiError {
  const because = reason ? `: ${reason}` : ''
  if ('path' in question)
    return forbiddenPath(`User "${username}" cannot ${question.verb} path "${question.path}"${because}`)
  const { group, resource, subresource, namespace, name = '' } = question.target
  const what = subresource ? `${resource}/${subresource}` : resource
  const where = namespace ? `in the namespace "${namespace}"` : 'at the cluster scope'
  const why = `User "${username}" cannot ${question.verb} resource "${what}" in API group "${group}" ${where}${because}`
  return forbidden({ group, plural: resource, kind: resource }, name, why)
}

async function within(milliseconds: number, working: Promise<Result>): Promise<Result> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(timedOut()), milliseconds)
  })
  try {
    return await Promise.race([working, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Errors leave here, in JSON or in the YAML that was asked for. */
async function refuse(exchange: Exchange, error: unknown): Promise<void> {
  const status = statusOf(error, () => {})
  if (exchange.response.headersSent) return void exchange.response.destroy()
  // A body that nobody will read must not keep the connection waiting for it.
  if (status.code === 413 && 'httpVersionMajor' in exchange.request && exchange.request.httpVersionMajor === 1)
    exchange.response.setHeader('Connection', 'close')
  await respond(exchange, writeError(status, errorFormat(exchange), exchange))
}

function errorFormat(exchange: Exchange): View['format'] {
  try {
    return negotiate(exchange.request.headers.accept, 'object').format
  } catch {
    return plain.format
  }
}
