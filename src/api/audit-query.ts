// Defines audit events and the field selectors that search them (D70).

import { ApiError, badRequest } from './errors.ts'
import type { JsonObject } from './object.ts'
import type { Document } from './resources.ts'
import { parseFieldSelector, SelectorError } from './selector.ts'

type User = {
  readonly username?: string
  readonly uid?: string
  readonly groups?: readonly string[]
  readonly extra?: { readonly [name: string]: readonly string[] }
}

/** A line of the audit log: an audit.k8s.io/v1 Event. */
export type AuditLine = {
  readonly level?: string
  readonly auditID?: string
  readonly stage?: string
  readonly requestURI?: string
  readonly verb?: string
  readonly user?: User
  readonly impersonatedUser?: User
  readonly sourceIPs?: readonly string[]
  readonly userAgent?: string
  readonly objectRef?: {
    readonly resource?: string
    readonly subresource?: string
    readonly namespace?: string
    readonly name?: string
    readonly uid?: string
    readonly apiGroup?: string
    readonly apiVersion?: string
    readonly resourceVersion?: string
  }
  readonly responseStatus?: {
    readonly code?: number
    readonly status?: string
    readonly reason?: string
    readonly message?: string
  }
  readonly requestObject?: JsonObject
  readonly responseObject?: JsonObject
  readonly requestReceivedTimestamp?: string
  readonly stageTimestamp?: string
  readonly annotations?: { readonly [name: string]: string }
}

/** `id`: identifies the event, in 32 hexadecimal digits. */
export type FoundEvent = { readonly id: string; readonly event: AuditLine; readonly truncated?: boolean }

/** A validated field selector. `from` and `to` have the format of stageTimestamp, so they compare as text. */
export type AuditQuery = {
  readonly terms: readonly { readonly field: AuditField; readonly op: '=' | '!='; readonly value: string }[]
  readonly from?: string
  readonly to?: string
}

const fields = ['user', 'verb', 'resource', 'namespace', 'name', 'uid', 'code', 'stage', 'metadata.name'] as const
export type AuditField = (typeof fields)[number]
const stages = ['RequestReceived', 'ResponseStarted', 'ResponseComplete', 'Panic']

/** Throws 400 and names the field. */
export function parseAuditQuery(selector: string): AuditQuery {
  const { terms } = parsed(selector)
  const bounds: { from?: string; to?: string } = {}
  const others: AuditQuery['terms'][number][] = []
  for (const { field, op, value } of terms) {
    if (field === 'from' || field === 'to') {
      if (op !== '=') throw badRequest(`field selector ${field}: must have the operator =`)
      bounds[field] = momentOf(field, value)
      continue
    }
    checkValue(field, value)
    others.push({ field: field as AuditField, op: op as '=' | '!=', value })
  }
  return { terms: others, ...bounds }
}

function parsed(selector: string) {
  try {
    return parseFieldSelector(selector, [...fields, 'from', 'to'])
  } catch (error) {
    if (!(error instanceof SelectorError)) throw error
    throw badRequest(`${error.message}; supported fields: ${[...fields, 'from', 'to'].join(', ')}`)
  }
}

function checkValue(field: string, value: string): void {
  if (field === 'code' && !/^[1-5](\d\d|xx)$/.test(value))
    throw badRequest(`field selector code: ${JSON.stringify(value)} must be a status code such as 403, or 4xx`)
  if (field === 'stage' && !stages.includes(value))
    throw badRequest(`field selector stage: ${JSON.stringify(value)} must be one of ${stages.join(', ')}`)
}

const rfc3339 = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)$/

/** Microseconds, as in stageTimestamp. A time without them includes its whole millisecond. */
function momentOf(field: 'from' | 'to', text: string): string {
  const time = rfc3339.test(text) ? Date.parse(text.toUpperCase()) : Number.NaN
  if (Number.isNaN(time) || time < 0 || time > Date.parse('9999-12-31T23:59:59Z'))
    throw badRequest(
      `field selector ${field}: ${JSON.stringify(text.slice(0, 64))} must be an RFC 3339 time such as 2026-01-31T12:00:00Z`,
    )
  const micros = /\.\d{3}(\d{3})/.exec(text)?.[1] ?? (field === 'from' ? '000' : '999')
  return `${new Date(time).toISOString().slice(0, -1)}${micros}Z`
}

/** `name`: of the event itself. Without a term about the stage, RequestReceived is left out: the final event follows it. */
export function matchesAudit({ terms, from, to }: AuditQuery, event: AuditLine, name: () => string): boolean {
  const time = event.stageTimestamp ?? ''
  if ((from !== undefined && time < from) || (to !== undefined && time > to)) return false
  if (event.stage === 'RequestReceived' && !terms.some(({ field }) => field === 'stage')) return false
  return terms.every(({ field, op, value }) => {
    const values = field === 'metadata.name' ? [name()] : valuesOf(field, event)
    return values.includes(value) === (op === '=')
  })
}

function valuesOf(field: AuditField, { user, impersonatedUser, objectRef = {}, ...event }: AuditLine): string[] {
  const { resource = '', subresource } = objectRef
  const code = String(event.responseStatus?.code ?? '')
  switch (field) {
    case 'user':
      return [user?.username ?? '', ...(impersonatedUser?.username ? [impersonatedUser.username] : [])]
    case 'resource':
      return subresource === undefined ? [resource] : [resource, `${resource}/${subresource}`]
    case 'code':
      return [code, `${code[0] ?? ''}xx`]
    case 'verb':
    case 'stage':
      return [event[field] ?? '']
    default:
      return [objectRef[field as 'name' | 'namespace' | 'uid'] ?? '']
  }
}

export const auditEventName = (id: string): string => `audit-${id.slice(0, 20)}`

/** The identity that own actions are compared with. `isUser`: a subject can have the name of a user. */
export type Actor = { readonly username: string; readonly isUser: boolean; readonly uid?: string | undefined }

/** Whether the actor made the request. An impersonated request is an action of the impersonator. */
export function isActionOf({ username, isUser, uid }: Actor, { user }: AuditLine): boolean {
  if (!user?.username || user.username !== username) return false
  if (uid !== undefined && user.uid !== undefined && uid !== user.uid) return false
  return (user.groups ?? []).includes(userGroup(username)) === isUser
}

export const userGroup = (username: string) => `platform:user:${username}`

/** A place in the log: a file, and a byte at the start of a line. */
export type AuditPosition = { readonly file: string; readonly at: number }

/** The positions from which a search continues, by the id of the replica. A log that has no older events is absent. `missing`: it could not be read. */
export type AuditCursor = ReadonlyMap<string, AuditPosition | 'missing'>

export type AuditSearch = {
  readonly query: AuditQuery
  /** Only events of this actor, and events about objects. `show` leaves out those that the caller may not see. */
  readonly actor?: Actor | undefined
  readonly limit: number
  readonly from?: AuditCursor | undefined
  readonly show: (found: FoundEvent) => Document | undefined
}

/** `next`: where the search continues; undefined: there are no older events. Neither depends on events that are not shown. */
export type AuditPage = {
  readonly items: readonly Document[]
  readonly next?: AuditCursor | undefined
  /** Says whose events are missing. */
  readonly warnings: readonly string[]
}

/** Recent events, in order. Positions grow, also across restarts. */
export interface AuditFeed {
  readonly position: number
  /** Events after a position; undefined: some of them are no longer in the buffer. */
  after(position: number, max: number): readonly (FoundEvent & { readonly position: number })[] | undefined
  /** The position before the oldest event of the buffer. */
  readonly start: number
  /** Calls back once, at the next event. Returns a function that cancels it. */
  wait(callback: () => void): () => void
}

/** The audit log of the server, for reading. */
export interface AuditReader {
  readonly feed: AuditFeed
  /** Why the log cannot be searched, with the fix; undefined: it can. */
  readonly problem: string | undefined
  /** Newest first. `user` is limited to a number of searches at a time. Throws 410, 429 or 503. */
  search(search: AuditSearch, user: string): Promise<AuditPage>
}

/** The client must not retry: the setting has to change. */
export const auditUnreadable = (message: string) =>
  new ApiError(503, 'ServiceUnavailable', message, {
    details: { causes: [{ reason: 'AuditLogUnreadable', field: 'audit.log', message }] },
  })

const nothing = 'this server has no audit log that can be read'

/** For a server without an audit log. */
export const noAuditLog: AuditReader = {
  feed: { position: 0, start: 0, after: () => [], wait: () => () => {} },
  problem: nothing,
  search: async () => {
    throw auditUnreadable(nothing)
  },
}
