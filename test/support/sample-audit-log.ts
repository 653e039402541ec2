// An audit log in memory with one event, the sample of AuditEvent, for servers in this process.

import { type AuditLine, type AuditReader, auditEventName, matchesAudit } from '../../src/api/audit-query.ts'
import { AuditEvent } from '../../src/kinds/audit-event.ts'
import { openAuditFeed } from '../../src/serving/audit-feed.ts'

export function sampleAuditLog(now: () => number): AuditReader {
  const { apiVersion: _, kind: __, metadata: ___, ...event } = AuditEvent.sample
  const feed = openAuditFeed(now)
  feed.push(event as AuditLine, JSON.stringify(event))
  return {
    feed,
    problem: undefined,
    search: async ({ query, limit, show }) => {
      const recent = feed.after(feed.start, limit) ?? []
      const found = recent.filter(one => matchesAudit(query, one.event, () => auditEventName(one.id)))
      return { items: found.flatMap(one => show(one) ?? []), warnings: [] }
    },
  }
}
