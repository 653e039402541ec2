// The limits of searches in the audit log, and that a search does not block the event loop.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { parseAuditQuery } from '../api/audit-query.ts'
import { openAuditFeed } from './audit-feed.ts'
import { openAuditReader } from './audit-search.ts'

let directory: string
before(() => {
  directory = mkdtempSync(join(tmpdir(), 'audit-search-'))
})
after(() => rmSync(directory, { recursive: true }))

const line = (name: string) => {
  const objectRef = { resource: 'teams', name }
  return `${JSON.stringify({ auditID: name, stage: 'ResponseComplete', verb: 'create', objectRef })}\n`
}
const open = (file: string, target = 'audit.log') =>
  openAuditReader({ target, file, feed: openAuditFeed(Date.now), settled: async () => {} })

test('one user cannot occupy the search, and others are served meanwhile', async () => {
  const file = join(directory, 'audit.log')
  writeFileSync(file, line('a').repeat(1000))
  const { search } = open(file)
  const query = parseAuditQuery('name=none')
  const own = Array.from({ length: 10 }, () => search({ query, limit: 1 }, 'ada').catch(error => error.code))
  const other = search({ query, limit: 1 }, 'bob')
  const results = await Promise.all(own)
  assert.equal(results.filter(one => one === 429).length, 6)
  assert.deepEqual(await other, { items: [] })
  assert.deepEqual(await search({ query, limit: 1 }, 'ada'), { items: [] })
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
  const page = await open(file).search({ query: parseAuditQuery('code!=200,name!=b'), limit: 500 }, 'ada')
  isOver = true
  assert.equal(page.items.length, 500)
  assert.ok(turns > 10, String(turns))
})

test('a missing directory, off and standard output are reported with the fix', async () => {
  const query = parseAuditQuery('')
  for (const reader of [open('/nowhere/audit.log'), open('off', 'off'), open('-', '-')])
    await assert.rejects(reader.search({ query, limit: 1 }, 'ada'), (error: Error & { code: number }) => {
      assert.equal(error.code, 503)
      return true
    })
})
