// The pages and limits of searches in the audit log, and that a search does not block the event loop.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import {
  type AuditCursor,
  type AuditLine,
  type AuditPage,
  type FoundEvent,
  parseAuditQuery,
} from '../api/audit-query.ts'
import type { Resource } from '../api/object.ts'
import { documentOf } from '../api/resources.ts'
import { openAuditFeed } from './audit-feed.ts'
import { openAuditReader } from './audit-search.ts'

let directory: string
before(() => {
  directory = mkdtempSync(join(tmpdir(), 'audit-search-'))
})
after(() => rmSync(directory, { recursive: true }))

const line = (name: string, more: AuditLine = {}) => {
  const objectRef = { resource: 'teams', name }
  return `${JSON.stringify({ auditID: name, stage: 'ResponseComplete', verb: 'create', objectRef, ...more })}\n`
}
const open = (file: string, target = 'audit.log') =>
  openAuditReader({ target, file, feed: openAuditFeed(Date.now), settled: async () => {} })

const show = ({ id, event }: FoundEvent) =>
  documentOf({ apiVersion: 'v1', kind: 'Event', metadata: { name: event.objectRef?.name ?? id } })
const namesOf = (page: AuditPage) => page.items.map(({ object }) => object.metadata.name ?? '')

test('one user cannot occupy the search, and others are served meanwhile', async () => {
  const file = join(directory, 'audit.log')
  writeFileSync(file, line('a').repeat(1000))
  const { search } = open(file)
  const query = parseAuditQuery('name=none')
  const own = Array.from({ length: 10 }, () => search({ query, limit: 1, show }, 'ada').catch(error => error.code))
  const other = search({ query, limit: 1, show }, 'bob')
  const results = await Promise.all(own)
  assert.equal(results.filter(one => one === 429).length, 6)
  assert.deepEqual(namesOf(await other), [])
  assert.deepEqual(await search({ query, limit: 1, show }, 'ada'), { items: [], warnings: [] })
})

describe('a page for a caller who does not see all events', () => {
  const actor = { username: 'eve', isUser: true }
  const groups = ['platform:user:eve']
  const own = (name: string) =>
    line(name, { user: { username: 'eve', groups }, objectRef: { resource: 'teams', name, uid: name } })
  const hidden = (name: string, more = {}) =>
    line(name, { user: { username: 'admin' }, objectRef: { resource: 'teams', name, uid: name }, ...more })
  const showOwn = (found: FoundEvent) => (found.event.user?.username === 'eve' ? show(found) : undefined)

  /** The names of each page, and whether it has a successor. */
  async function pagesOf(log: string, selector: string, limit: number) {
    const file = join(directory, 'restricted.log')
    writeFileSync(file, log)
    const { search } = open(file)
    const pages: { names: string[]; more: boolean }[] = []
    let from: AuditCursor | undefined
    do {
      const page = await search({ query: parseAuditQuery(selector), actor, limit, from, show: showOwn }, 'eve')
      pages.push({ names: namesOf(page), more: page.next !== undefined })
      from = page.next
    } while (from)
    return pages
  }
  const alternating = (count: number, other: (index: number) => string) =>
    Array.from({ length: count }, (_, index) => own(`own-${index}`) + other(index)).join('')

  test('ends at a shown event, wherever hidden events match', async () => {
    const log = alternating(20, () => hidden('merger'))
    const withGuess = await pagesOf(log, 'name!=nothing', 3)
    assert.deepEqual(withGuess[0], { names: ['own-19', 'own-18', 'own-17'], more: true })
    assert.deepEqual(await pagesOf(log, 'name!=merger', 3), withGuess)
  })

  test('ends after all of the log if nothing is shown, wherever hidden events match', async () => {
    const log = hidden('merger').repeat(5000)
    assert.deepEqual(await pagesOf(log, 'name=merger', 1), [{ names: [], more: false }])
    assert.deepEqual(await pagesOf(log, 'name=nothing', 1), [{ names: [], more: false }])
  })

  test('does not count the bytes of hidden events', async () => {
    const large = { requestObject: { data: 'x'.repeat(60_000) } }
    const log = alternating(30, index => hidden(`large-${index}`, large))
    assert.deepEqual(await pagesOf(log, 'verb=create', 30), await pagesOf(log, 'user=eve', 30))
  })

  test('reads the same part of a large log, wherever hidden events match', async () => {
    const log = own('first') + hidden('merger').repeat(150_000) + own('last')
    const right = await pagesOf(log, 'name!=nothing', 2)
    const wrong = await pagesOf(log, 'name!=merger', 2)
    assert.ok(right.length >= 2, String(right.length))
    assert.deepEqual(right, wrong)
  })
})

test('an unrestricted page has a bounded size', async () => {
  const file = join(directory, 'bodies.log')
  const requestObject = { data: 'x'.repeat(60_000) }
  writeFileSync(file, line('a', { requestObject }).repeat(30))
  const showAll = ({ id, event }: FoundEvent) =>
    documentOf({ apiVersion: 'v1', kind: 'Event', metadata: { name: id }, ...event } as Resource)
  const page = await open(file).search({ query: parseAuditQuery(''), limit: 500, show: showAll }, 'ada')
  assert.ok(page.items.length < 12, String(page.items.length))
  assert.ok(page.next)
})

test('the event loop turns while a search runs', async () => {
  const file = join(directory, 'large.log')
  writeFileSync(file, line('a').repeat(200_000))
  let turns = 0
  let isOver = false
  const turn = () => {
    turns++
    if (!isOver) setImmediate(turn)
  }
  setImmediate(turn)
  const page = await open(file).search({ query: parseAuditQuery('code!=200,name!=b'), limit: 500, show }, 'ada')
  isOver = true
  assert.equal(page.items.length, 500)
  assert.ok(turns > 10, String(turns))
})

test('a missing directory, off and standard output are reported with the fix', async () => {
  const query = parseAuditQuery('')
  for (const reader of [open('/nowhere/audit.log'), open('off', 'off'), open('-', '-')])
    await assert.rejects(reader.search({ query, limit: 1, show }, 'ada'), (error: Error & { code: number }) => {
      assert.equal(error.code, 503)
      return true
    })
})
