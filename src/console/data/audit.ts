// Audit events: searched on the server, page by page, newest first.

import { escapeValue } from '../../api/selector.ts'
import { getJson } from './server.ts'

export type AuditEvent = {
  /** Events of a watch have a version. */
  readonly metadata: { readonly name: string; readonly uid: string; readonly resourceVersion?: string }
  readonly verb: string
  readonly auditID?: string
  readonly requestURI?: string
  readonly stage?: string
  readonly user?: { readonly username?: string }
  readonly impersonatedUser?: { readonly username?: string }
  readonly sourceIPs?: readonly string[]
  readonly userAgent?: string
  readonly objectRef?: {
    readonly resource?: string
    readonly subresource?: string
    readonly namespace?: string
    readonly name?: string
    readonly uid?: string
  }
  readonly responseStatus?: { readonly code?: number; readonly reason?: string; readonly message?: string }
  readonly stageTimestamp?: string
  readonly annotations?: { readonly [key: string]: string }
  readonly redacted?: boolean
}

export const auditFields = ['user', 'verb', 'resource', 'namespace', 'name', 'uid', 'code', 'from', 'to'] as const
export type AuditQuery = { readonly [field in (typeof auditFields)[number]]?: string }

/** A search without a verb shows changes only, unless reads are wanted: lists read all day. */
const reads = ['get', 'list', 'watch']

/** The field selector of a search. */
export function selectorOf(query: AuditQuery, withReads = true): string {
  const asked = auditFields.flatMap(field => (query[field] ? [`${field}=${escapeValue(query[field])}`] : []))
  const hidden = withReads || query.verb ? [] : reads.map(verb => `verb!=${verb}`)
  return [...asked, ...hidden].join(',')
}

export type AuditPage = {
  readonly events: readonly AuditEvent[]
  readonly next: string | undefined
  /** A watch of this version brings the events after those of the page. */
  readonly version: string
}

const pageSize = 100
/** A page can be short although older events match: the server limits the work of one request. */
const maxEmptyPages = 50

/** `from`: where the page before ended. */
export async function searchAudit(selector: string, from?: string): Promise<AuditPage> {
  const events: AuditEvent[] = []
  let next = from
  let version: string | undefined
  for (let pages = 0; pages < maxEmptyPages; pages++) {
    const parameters = new URLSearchParams({
      limit: String(pageSize - events.length),
      ...(selector ? { fieldSelector: selector } : {}),
      ...(next ? { continue: next } : {}),
    })
    const page = await getJson<{
      readonly items: readonly AuditEvent[]
      readonly metadata: { readonly continue?: string; readonly resourceVersion: string }
    }>(`/apis/management.platform.sh/v1/auditevents?${parameters}`)
    events.push(...page.items)
    version ??= page.metadata.resourceVersion
    next = page.metadata.continue || undefined
    if (next === undefined || events.length >= pageSize) break
  }
  return { events, next, version: version ?? '0' }
}
