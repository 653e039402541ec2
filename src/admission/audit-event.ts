// AuditEvent: lists and watches the audit log, limited to what the caller may see (D70).

import type { Admission } from '../api/admission.ts'
import {
  type Actor,
  type AuditLine,
  type AuditQuery,
  type AuditReader,
  auditEventName,
  auditUnreadable,
  type FoundEvent,
  isActionOf,
  matchesAudit,
  parseAuditQuery,
  userGroup,
} from '../api/audit-query.ts'
import type { Caller } from '../api/caller.ts'
import { badRequest, expired } from '../api/errors.ts'
import type { ObjectOf } from '../api/kind.ts'
import type { Resource } from '../api/object.ts'
import {
  type Document,
  documentOf,
  type Filter,
  type Selection,
  statusDocument,
  type Watch,
  type WatchEvent,
  type WatchOptions,
  watchEvent,
} from '../api/resources.ts'
import { AuditEvent } from '../kinds/audit-event.ts'
import { openContinueTokens, type TokenSealing } from './audit-continue.ts'

type Dependencies = TokenSealing & { readonly auditLog: AuditReader }

const [defaultLimit, maxLimit] = [100, 500]
const maxEvents = 256

export const auditEventAdmission = (dependencies: Dependencies): Admission<ObjectOf<typeof AuditEvent>> => {
  const { auditLog } = dependencies
  const tokens = openContinueTokens(dependencies)
  return {
    async list(options, caller) {
      const query = queryOf(options)
      const limit = Math.min(options.limit && options.limit > 0 ? options.limit : defaultLimit, maxLimit)
      const view = viewOf(caller, options.only)
      const actor = options.only && view.actor
      const scope = JSON.stringify([view.actor, actor !== undefined, options.fieldSelector ?? ''])
      const from = options.continue ? tokens.read(options.continue, scope) : undefined
      const { position } = auditLog.feed
      const show = (found: FoundEvent) => {
        const object = view.show(found)
        return object && encoded(object)
      }
      const { items, next, warnings } = await auditLog.search(
        { query, actor, limit, from, show },
        caller.impersonator ?? caller.username,
      )
      for (const text of warnings) options.warn?.(text)
      return { items, resourceVersion: String(position), ...(next ? { continue: tokens.write(next, scope) } : {}) }
    },
    watch(options, caller) {
      const { feed, problem } = auditLog
      if (problem !== undefined) throw auditUnreadable(problem)
      return follow(feed, {
        query: queryOf(options),
        start: startOf(options, feed),
        view: viewOf(caller, options.only),
      })
    },
  }
}

/** Encoded now, in slices, and not with the whole response. */
function encoded(object: Resource): Document {
  const document = documentOf(object)
  void document.json
  return document
}

function queryOf({ fieldSelector = '', labelSelector = '' }: Selection): AuditQuery {
  if (labelSelector) throw badRequest('audit events have no labels; use a field selector')
  return parseAuditQuery(fieldSelector)
}

type View = { readonly actor: Actor; readonly show: (found: FoundEvent, version?: number) => Resource | undefined }

/** Everything; with `only`, own actions in full, and redacted events about objects that `only` accepts. */
function viewOf({ username, groups, uid }: Caller, only: Filter | undefined): View {
  const actor = { username, isUser: groups.includes(userGroup(username)), uid }
  return {
    actor,
    show(found, version) {
      const object = objectOf(found, version)
      if (!only || isActionOf(actor, found.event)) return object
      return only(object) ? objectOf({ id: found.id, event: redact(found.event) }, version, true) : undefined
    },
  }
}

function objectOf({ id, event, truncated }: FoundEvent, version?: number, redacted = false): Resource {
  const { stageTimestamp = '', responseStatus } = event
  const uid = [id.slice(0, 8), id.slice(8, 12), id.slice(12, 16), id.slice(16, 20), id.slice(20)].join('-')
  return {
    ...event,
    ...(responseStatus ? { responseStatus: pick(responseStatus, ['code', 'status', 'reason', 'message']) } : {}),
    apiVersion: AuditEvent.apiVersion,
    kind: AuditEvent.kind,
    metadata: {
      name: auditEventName(id),
      uid,
      creationTimestamp: `${stageTimestamp.slice(0, 19)}Z`,
      ...(version === undefined ? {} : { resourceVersion: String(version) }),
    },
    ...(truncated ? { truncated } : {}),
    ...(redacted ? { redacted } : {}),
  } as Resource
}

const decision = 'authorization.k8s.io/decision'

const shownToOwners = 'level auditID stage verb objectRef requestReceivedTimestamp stageTimestamp'.split(' ')

/** Keeps the fields that the owner of an object may see of the actions of others. */
function redact(event: AuditLine): AuditLine {
  const { requestURI = '', user, impersonatedUser, responseStatus, annotations } = event
  const verdict = annotations?.[decision]
  const { message: _, ...result } = responseStatus ?? {}
  return {
    ...pick(event, shownToOwners),
    requestURI: requestURI.split('?', 1)[0] ?? '',
    user: pick(user ?? {}, ['username']),
    ...(impersonatedUser ? { impersonatedUser: pick(impersonatedUser, ['username']) } : {}),
    ...(responseStatus ? { responseStatus: result } : {}),
    ...(verdict === undefined ? {} : { annotations: { [decision]: verdict } }),
  }
}

const pick = <T extends object>(from: T, keys: readonly string[]): Partial<T> =>
  Object.fromEntries(Object.entries(from).filter(([key]) => keys.includes(key))) as Partial<T>

/** Without a version, a watch starts with the buffered events. */
function startOf({ resourceVersion = '' }: WatchOptions, { start }: AuditReader['feed']): number {
  if (resourceVersion === '' || resourceVersion === '0') return start
  if (!/^\d{1,16}$/.test(resourceVersion))
    throw badRequest(
      `invalid resource version: ${JSON.stringify(resourceVersion)}: it must be one that this server returned`,
    )
  return Number(resourceVersion)
}

type Following = { readonly query: AuditQuery; readonly start: number; readonly view: View }

function follow(feed: AuditReader['feed'], { query, start, view }: Following): Watch {
  let position = start
  let stopped = false
  let wake = () => {}
  let cancel = () => {}
  const stop = () => {
    stopped = true
    cancel()
    wake()
  }
  const take = (): readonly WatchEvent[] | undefined => {
    const found = feed.after(position, maxEvents)
    if (!found) {
      stopped = true
      const message = `too old resource version: ${position} (${feed.start})`
      return [watchEvent('ERROR', statusDocument(expired(message).status))]
    }
    if (found.length === 0) return undefined
    position = found.at(-1)?.position ?? position
    return found.flatMap(one => {
      const isWanted = matchesAudit(query, one.event, () => auditEventName(one.id))
      const object = isWanted ? view.show(one, one.position) : undefined
      return object ? [watchEvent('ADDED', documentOf(object))] : []
    })
  }
  return {
    async next() {
      while (!stopped) {
        const events = take()
        if (events?.length) return events
        if (events) {
          await Promise.resolve()
          continue
        }
        await new Promise<void>(resolve => {
          wake = resolve
          cancel = feed.wait(resolve)
        })
      }
      return undefined
    },
    bookmark: () => {
      const { apiVersion, kind } = AuditEvent
      return watchEvent('BOOKMARK', documentOf({ apiVersion, kind, metadata: { resourceVersion: String(position) } }))
    },
    stop,
  }
}
