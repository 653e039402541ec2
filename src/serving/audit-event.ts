// Builds an audit.k8s.io/v1 Event from the facts about a request.

import type { Caller } from '../api/caller.ts'
import { ApiError } from '../api/errors.ts'
import { isObject, type Json, type JsonObject, timestamp } from '../api/object.ts'
import type { Target } from '../api/permissions.ts'
import type { Document } from '../api/resources.ts'
import { causesIn, isWithheld, requestObjectOf, responseObjectOf, sentMetadata } from './audit-bodies.ts'
import type { Level, Requester, Stage } from './audit-policy.ts'
import { type Hash, scrub } from './audit-redact.ts'
import { cleanUri } from './audit-uri.ts'
import type { AuditContext, Exchange } from './exchange.ts'

const anonymous: Caller = { username: 'system:anonymous', groups: ['system:unauthenticated'] }
/** Credentials: every write to these resources is recorded. */
const issuing = new Set(['ownedaccesskeys', 'directclusterendpointtokens'])
const reading = new Set(['get', 'list', 'watch'])
const longestUri = 4096
const longestText = 1024
const longestName = 253

/** undefined if the request had an invalid key, as in Kubernetes. */
export function requesterOf({ request }: Exchange, caller: Caller | undefined): Requester {
  return caller ?? (request.headers.authorization === undefined ? anonymous : undefined)
}

/**
 * Annotations for a credential that is known and no longer valid. `user` of the event stays empty, because nobody was
 * authenticated.
 */
export const rejectedCredential = ({
  key,
  username,
}: {
  readonly key?: string | undefined
  readonly username: string
}): { readonly [name: string]: string } => ({
  ...(key === undefined ? {} : { 'platform.sh/rejected-key': key }),
  'platform.sh/rejected-user': username,
})

/** Whether the request creates, changes or deletes a key or a token. */
export function isAboutKeys({ question }: Pick<AuditContext, 'question'>): boolean {
  return 'target' in question && issuing.has(question.target.resource) && !reading.has(question.verb)
}

const isIssuing = (context: AuditContext, code: number) => code < 300 && isAboutKeys(context)

export type EventInput = {
  readonly stage: Stage
  readonly level: Level
  readonly at: number
  readonly code: number | undefined
  readonly error: unknown
}
type EventTools = { readonly hash: Hash; readonly sources: readonly string[] }

export function eventOf(
  context: AuditContext,
  { stage, level, at, code, error }: EventInput,
  { hash, sources }: EventTools,
): object {
  const { exchange, question, impersonated, received } = context
  const { request, auditId } = exchange
  const clean = (text: string, maxLength = longestText) => cut(scrub(text, hash), maxLength)
  const userAgent = request.headers['user-agent']
  const isOver = stage === 'ResponseComplete' || stage === 'Panic'
  return {
    kind: 'Event',
    apiVersion: 'audit.k8s.io/v1',
    level,
    auditID: auditId,
    stage,
    requestURI: cut(cleanUri(request.url ?? '/', hash), longestUri),
    verb: question.verb,
    user: userOf(requesterOf(exchange, context.caller) as Caller | undefined),
    impersonatedUser: impersonated && userOf(impersonated),
    sourceIPs: sources.length ? sources : undefined,
    userAgent: userAgent === undefined ? undefined : clean(userAgent),
    objectRef: 'target' in question ? refOf(context, question.target, isOver, clean) : undefined,
    responseStatus: code === undefined ? undefined : statusOf(context, code, error, clean),
    ...(isOver ? objectsOf(context, level, hash) : {}),
    requestReceivedTimestamp: microTime(received),
    stageTimestamp: microTime(at),
    annotations: annotationsOf(context, code, { hash, clean }),
  }
}

const cut = (text: string, maxLength: number) =>
  text.length > maxLength ? `${text.slice(0, maxLength)}...TRUNCATED` : text

export const userOf = (caller: Caller | undefined) =>
  caller ? { username: caller.username, uid: caller.uid, groups: caller.groups, extra: caller.extra } : {}

type Clean = (text: string) => string

/** The name and uid of a created object are known only from the response. */
function refOf(context: AuditContext, target: Target, isOver: boolean, clean: Clean) {
  const { group, resource, subresource, namespace, name } = target
  const sent = isOver ? sentMetadata(context) : {}
  const made = isOver && !reading.has(context.question.verb) ? context.answer?.document : undefined
  const text = (value: Json | undefined) =>
    typeof value === 'string' && value ? cut(clean(value), longestName) : undefined
  return {
    resource: text(resource),
    namespace: text(namespace),
    name: text(name ?? (made?.ref.name || sent.name)),
    uid: made?.uid ?? text(sent.uid) ?? (isOver ? uidOf(context) : undefined),
    apiGroup: text(group),
    apiVersion: context.kind?.version,
    resourceVersion: text(sent.resourceVersion),
    subresource: text(subresource),
  }
}

/** The uid of an object that was deleted or read. */
function uidOf({ question, answer }: AuditContext): string | undefined {
  if (answer?.status) return answer.status.details?.uid
  return question.verb === 'get' ? answer?.document?.uid : undefined
}

function statusOf(context: AuditContext, code: number, error: unknown, clean: Clean) {
  if (error === undefined) return { metadata: {}, code }
  const failure = { metadata: {}, status: 'Failure', code }
  // The message of an internal error could contain anything. The server log has it under the same id.
  if (!(error instanceof ApiError)) return { ...failure, reason: 'InternalError' }
  const { message = '', reason } = error.status
  const isAboutBody = (code === 400 || code === 422) && isWithheld(context)
  if (!isAboutBody) return { ...failure, message: clean(message), reason }
  // The message may repeat values that the log must not show. Fields and reasons are safe.
  const causes = causesIn(context, error.status)
  return { ...failure, message: causes.length ? clean(causes.join(', ')) : undefined, reason }
}

function objectsOf(context: AuditContext, level: Level, hash: Hash): { requestObject?: Json; responseObject?: Json } {
  if (level !== 'Request' && level !== 'RequestResponse') return {}
  const requestObject = requestObjectOf(context, hash)
  const responseObject = level === 'RequestResponse' ? responseObjectOf(context, hash) : undefined
  return {
    ...(requestObject === undefined ? {} : { requestObject }),
    ...(responseObject === undefined ? {} : { responseObject }),
  }
}

type Texts = { readonly hash: Hash; readonly clean: (text: string) => string }

function annotationsOf(
  context: AuditContext,
  code: number | undefined,
  { hash, clean }: Texts,
): JsonObject | undefined {
  const { caller, allowed = code === 403 ? false : undefined, reason } = context
  const presented = code === 401 ? context.exchange.request.headers.authorization : undefined
  const found: { [name: string]: string } = {}
  if (allowed !== undefined) {
    found['authorization.k8s.io/decision'] = allowed ? 'allow' : 'forbid'
    found['authorization.k8s.io/reason'] = clean(reason)
  }
  if (caller?.key !== undefined) found['platform.sh/access-key'] = caller.key
  const { span } = context.exchange
  if (span) found['platform.sh/trace-id'] = span.traceId
  for (const [name, value] of Object.entries(context.noted ?? {})) found[name] = clean(value)
  if (presented !== undefined) found['platform.sh/presented-key'] = hash(presented.replace(/^bearer +/i, '').trim())
  if (code !== undefined && isIssuing(context, code)) Object.assign(found, issuedBy(context.answer?.document, hash))
  return Object.keys(found).length ? found : undefined
}

/** The credential in a response: the name of a key or the jti of a token, and a hash to find it again. */
export function issuedBy(document: Document | undefined, hash: Hash): { [name: string]: string } {
  const object = document?.object
  const [key, token] = [object?.spec?.['key'], object?.status?.['token']]
  const secret = typeof key === 'string' ? key : typeof token === 'string' ? token : undefined
  if (secret === undefined) return {}
  const { id, scope } = typeof key === 'string' ? { id: object?.metadata.name, scope: undefined } : claimsIn(secret)
  return {
    ...(id === undefined ? {} : { 'platform.sh/issued': id }),
    ...(scope === undefined ? {} : { 'platform.sh/issued-scope': cut(JSON.stringify(scope), 1024) }),
    'platform.sh/issued-key': hash(secret),
  }
}

/** The id of a token and its scope. Without a requested scope it is the scope of the key. */
function claimsIn(token: string): { readonly id: string | undefined; readonly scope: Json | undefined } {
  try {
    const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as JsonObject
    const holder = claims['platform.sh']
    return {
      id: typeof claims['jti'] === 'string' ? claims['jti'] : undefined,
      scope: isObject(holder) ? holder['scope'] : undefined,
    }
  } catch {
    return { id: undefined, scope: undefined }
  }
}

const threeDigits = (number: number) => String(number).padStart(3, '0')

/** RFC 3339 with microseconds, as Kubernetes' MicroTime. */
export function microTime(milliseconds: number): string {
  const whole = Math.floor(milliseconds)
  const micros = Math.floor((milliseconds - whole) * 1000)
  const millis = whole - Math.floor(whole / 1000) * 1000
  return `${timestamp(whole).slice(0, -1)}.${threeDigits(millis)}${threeDigits(micros)}Z`
}
