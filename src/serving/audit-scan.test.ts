// The backwards scan of audit logs: bounded pages, chunk borders, times, damaged lines and rotated files.

import assert from 'node:assert/strict'
import { appendFileSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import { type AuditLine, type AuditPosition, type AuditSearch, parseAuditQuery } from '../api/audit-query.ts'
import { scan } from './audit-scan.ts'

let directory: string
let file: string
before(() => {
  directory = mkdtempSync(join(tmpdir(), 'audit-scan-'))
})
beforeEach(() => {
  rmSync(directory, { recursive: true })
  directory = mkdtempSync(join(tmpdir(), 'audit-scan-'))
  file = join(directory, 'audit.log')
})
after(() => rmSync(directory, { recursive: true }))

const start = Date.parse('2026-03-01T00:00:00Z')
const minute = 60_000

const lineAt = (index: number, more: AuditLine = {}): string =>
  `${JSON.stringify({
    auditID: `id-${index}`,
    stage: 'ResponseComplete',
    verb: 'create',
    user: { username: 'ada' },
    objectRef: { resource: 'teams', name: `team-${index}` },
    responseStatus: { code: 201 },
    stageTimestamp: `${new Date(start + index * minute).toISOString().slice(0, -1)}000Z`,
    ...more,
  })}\n`
const lines = (from: number, to: number, more?: AuditLine) =>
  Array.from({ length: to - from }, (_, index) => lineAt(from + index, more)).join('')

type Options = Partial<Omit<AuditSearch, 'query'>> & { readonly scannedBytes?: number; readonly pageBytes?: number }

function all(selector = '', { scannedBytes = 1e9, pageBytes = 1e9, limit = 1e6, ...more }: Options = {}) {
  const query = parseAuditQuery(selector)
  const names: string[] = []
  let pages = 0
  let from: AuditPosition | undefined
  do {
    const page = scan(file, { query, limit, from, ...more }, { scannedBytes, pageBytes })
    assert.ok('items' in page, JSON.stringify(page))
    names.push(...page.items.map(one => one.event.objectRef?.name ?? ''))
    from = page.next
    pages++
  } while (from)
  return { names, pages }
}

const expected = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => `team-${to - 1 - index}`)

test('finds every line once, newest first, across chunk borders', () => {
  writeFileSync(file, lines(0, 5000))
  assert.deepEqual(all().names, expected(0, 5000))
  assert.deepEqual(all('', { limit: 700 }).names, expected(0, 5000))
})

test('a page reads a bounded number of bytes, also if nothing matches', () => {
  writeFileSync(file, lines(0, 10_000))
  const { names, pages } = all('name=team-3', { scannedBytes: 512 * 1024 })
  assert.deepEqual(names, ['team-3'])
  assert.ok(pages >= 4, String(pages))
})

test('a page has a bounded size, and large events lose their bodies', () => {
  const requestObject = { data: 'x'.repeat(100_000) }
  writeFileSync(file, lines(0, 20, { requestObject }))
  const { names, pages } = all('', { pageBytes: 256 * 1024 })
  assert.deepEqual(names, expected(0, 20))
  assert.ok(pages >= 5, String(pages))
  const page = scan(file, { query: parseAuditQuery(''), limit: 1 })
  assert.ok('items' in page)
  assert.deepEqual([page.items[0]?.truncated, page.items[0]?.event.requestObject], [true, undefined])
})

test('a damaged line, an empty line and a line that is being written are skipped', () => {
  writeFileSync(file, `${lineAt(0)}\n{"verb":\n${lineAt(1)}${lineAt(2).slice(0, 40)}`)
  assert.deepEqual(all().names, ['team-1', 'team-0'])
})

test('a line longer than a chunk is found, a longer one than any event is skipped', () => {
  writeFileSync(file, lineAt(0) + lineAt(1, { requestObject: { data: 'x'.repeat(1_000_000) } }))
  appendFileSync(file, `"${'x'.repeat(20_000_000)}"\n${lineAt(2)}`)
  assert.deepEqual(all().names, ['team-2', 'team-1', 'team-0'])
})

test('from and to find their lines without reading the whole log', () => {
  writeFileSync(file, lines(0, 20_000))
  const at = (index: number) => new Date(start + index * minute).toISOString()
  const { names, pages } = all(`from=${at(4000)},to=${at(4100)}`, { scannedBytes: 1024 * 1024 })
  assert.deepEqual(names, expected(4000, 4101))
  assert.equal(pages, 1)
})

test('pages continue in a file that was rotated since, and in older files', () => {
  writeFileSync(join(directory, 'audit-2026-03-01T01-00-00.000.log'), lines(0, 60))
  writeFileSync(join(directory, 'audit-foreign.log'), lines(500, 600))
  writeFileSync(file, lines(60, 100))
  const query = parseAuditQuery('')
  const first = scan(file, { query, limit: 10 })
  assert.ok('items' in first && first.next)
  renameSync(file, join(directory, 'audit-2026-03-01T02-00-00.000.log'))
  writeFileSync(file, lines(100, 110))
  const rest = scan(file, { query, limit: 1000, from: first.next })
  assert.ok('items' in rest)
  assert.deepEqual(
    [...first.items, ...rest.items].map(one => one.event.objectRef?.name),
    expected(0, 100),
  )
  assert.deepEqual(all().names, expected(0, 110))
})

test('files outside of from and to are not read', () => {
  writeFileSync(join(directory, 'audit-2026-03-01T01-00-00.000.log'), lines(0, 60))
  writeFileSync(join(directory, 'audit-2026-03-02T01-00-00.000.log'), lines(60, 1500))
  writeFileSync(file, lines(1500, 3000))
  const { names, pages } = all('to=2026-03-01T00:10:00Z', { scannedBytes: 20_000 })
  assert.deepEqual(names, expected(0, 11))
  assert.ok(pages <= 2, String(pages))
})

test('a position in a file that is gone has expired', () => {
  writeFileSync(file, lines(0, 10))
  const query = parseAuditQuery('')
  assert.deepEqual(scan(file, { query, limit: 10, from: { file: '1:1', at: 5 } }), { expired: true })
  const first = scan(file, { query, limit: 1 })
  assert.ok('items' in first && first.next)
  assert.deepEqual(scan(file, { query, limit: 1, from: { ...first.next, at: 1e9 } }), { expired: true })
})

test('without the permission to see everything, only own actions and actions on objects are candidates', () => {
  const groups = ['platform:user:ada']
  writeFileSync(
    file,
    lineAt(0, { user: { username: 'ada', groups } }) +
      lineAt(1, { user: { username: 'eve', groups: ['platform:user:eve'] } }) +
      lineAt(2, { user: { username: 'eve' }, objectRef: { resource: 'teams', name: 'team-2', uid: 'u' } }) +
      lineAt(3, { user: { username: 'ada', groups: [] } }),
  )
  const { names } = all('', { actor: { username: 'ada', isUser: true } })
  assert.deepEqual(names, ['team-2', 'team-0'])
})

test('RequestReceived is left out unless a selector asks for it', () => {
  writeFileSync(file, lineAt(0, { stage: 'RequestReceived' }) + lineAt(1))
  assert.deepEqual(all().names, ['team-1'])
  assert.deepEqual(all('stage=RequestReceived').names, ['team-0'])
})
