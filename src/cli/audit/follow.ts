// Follows audit events: watches, reconnects, and reads the log again if the server no longer has the history.

import { setTimeout as delay } from 'node:timers/promises'
import type { AuditLine } from '../../api/audit-query.ts'
import { ApiError, type Status } from '../../api/errors.ts'
import type { Resource } from '../../api/object.ts'
import type { Resources, WatchEvent } from '../../api/resources.ts'
import type { Io } from '../../host/command.ts'
import { AuditEvent } from '../../kinds/audit-event.ts'
import { reconnectWarnings } from '../watch-reconnect.ts'

type Following = {
  readonly fieldSelector: string
  /** The start of the watch. */
  readonly resourceVersion: string
  /** The uids of events that were printed. */
  readonly known: readonly string[]
  readonly print: (event: Resource) => void
}

const maxKnown = 2000
const [minDelay, maxDelay] = [200, 30_000]

/** Ends only by an error that a retry cannot fix. */
export async function followEvents(
  resources: Pick<Resources, 'list' | 'watch'>,
  io: Io,
  { fieldSelector, resourceVersion, known, print }: Following,
): Promise<void> {
  const warnings = reconnectWarnings(io)
  const seen = new Set(known)
  let version: string | undefined = resourceVersion
  let since = new Date(io.now()).toISOString()
  let wait = minDelay
  const show = (event: Resource) => {
    const { uid = '' } = event.metadata
    since = (event as AuditLine).stageTimestamp ?? since
    if (seen.has(uid)) return
    seen.add(uid)
    for (const old of seen) {
      if (seen.size <= maxKnown) break
      seen.delete(old)
    }
    print(event)
  }
  for (;;) {
    try {
      version ??= await catchUp(resources, `${fieldSelector}${fieldSelector ? ',' : ''}from=${since}`, show)
      for await (const { type, document } of eventsOf(resources, fieldSelector, version)) {
        warnings.onReconnect?.()
        wait = minDelay
        version = document.object.metadata.resourceVersion ?? version
        if (type === 'ADDED') show(document.object)
      }
    } catch (error) {
      if (!(error instanceof ApiError) || (error.code < 500 && error.code !== 410 && error.code !== 429)) throw error
      if (error.code === 410) version = undefined
      else warnings.onDisconnect?.(error)
    }
    await delay(wait)
    wait = Math.min(maxDelay, wait * 2)
  }
}

/** Shows the events since a time, the oldest first. Returns the version at which the watch continues. */
async function catchUp(
  resources: Pick<Resources, 'list'>,
  fieldSelector: string,
  show: (event: Resource) => void,
): Promise<string> {
  const missed: Resource[] = []
  let version: string | undefined
  let next: string | undefined
  do {
    const page = await resources.list(AuditEvent, { fieldSelector, limit: 500, ...(next ? { continue: next } : {}) })
    version ??= page.resourceVersion
    missed.push(...page.items.map(({ object }) => object))
    next = page.continue
  } while (next)
  for (const event of missed.toReversed()) show(event)
  return version
}

async function* eventsOf(
  resources: Pick<Resources, 'watch'>,
  fieldSelector: string,
  resourceVersion: string,
): AsyncGenerator<WatchEvent> {
  const watch = await resources.watch(AuditEvent, { fieldSelector, resourceVersion, allowWatchBookmarks: true })
  try {
    for (let events = await watch.next(); events; events = await watch.next())
      for (const event of events) {
        if (event.type === 'ERROR') {
          const { code = 500, reason = '', message = '' } = event.document.object as unknown as Status
          throw new ApiError(code, reason, message)
        }
        yield event
      }
  } finally {
    watch.stop()
  }
}
