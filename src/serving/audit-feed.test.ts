// The audit feed shows events as the log has them, without bodies of large ones, and keeps a bounded number.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AuditLine } from '../api/audit-query.ts'
import { openAuditFeed } from './audit-feed.ts'

const push = (feed: ReturnType<typeof openAuditFeed>, event: AuditLine) => feed.push(event, JSON.stringify(event))

test('an event is as in the log, without undefined fields', () => {
  const feed = openAuditFeed(() => 0)
  const event = { auditID: 'a', verb: 'create', requestObject: { spec: { note: 'ü' } } }
  push(feed, { ...event, userAgent: undefined } as unknown as AuditLine)
  const [found] = feed.after(feed.start, 10) ?? []
  assert.deepEqual({ event: found?.event, truncated: found?.truncated }, { event, truncated: undefined })
})

test('a large event has no bodies', () => {
  const feed = openAuditFeed(() => 0)
  const large = { note: 'x'.repeat(70_000) }
  push(feed, { auditID: 'a', verb: 'create', requestObject: large, responseObject: large })
  const [found] = feed.after(feed.start, 10) ?? []
  assert.deepEqual(
    { event: found?.event, truncated: found?.truncated },
    { event: { auditID: 'a', verb: 'create' }, truncated: true },
  )
})

test('the newest events are kept, limited in number and size', () => {
  const feed = openAuditFeed(() => 0)
  const kept = () => feed.after(feed.start, Number.POSITIVE_INFINITY)?.length
  for (let i = 0; i < 1500; i++) push(feed, { auditID: String(i) })
  assert.equal(kept(), 1000)
  assert.equal(feed.after(feed.start - 1, 1), undefined)
  for (let i = 0; i < 1000; i++) push(feed, { auditID: String(i), requestObject: { note: 'x'.repeat(32_000) } })
  assert.equal(kept(), 65)
  assert.equal(feed.after(feed.start, 65)?.at(-1)?.event.auditID, '999')
})
