// The backwards scan of audit logs: bounded parts, chunk borders, times, damaged lines and rotated files.

import assert from 'node:assert/strict'
import { appendFileSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import { type AuditLine, type AuditPosition, parseAuditQuery } from '../api/audit-query.ts'
import { type Scan, scan } from './audit-scan.ts'

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

/** Reads part after part, and counts their bytes. */
function all(selector = '', more: Omit<Scan, 'query' | 'from'> = {}) {
  const query = parseAuditQuery(selector)
  const names: string[] = []
  let [parts, bytes] = [0, 0]
  let from: AuditPosition | undefined
  do {
    const part = scan(file, { query, from, ...more })
    assert.ok('matches' in part, JSON.stringify(part))
    names.push(...part.matches.map(one => one.event.objectRef?.name ?? ''))
    from = part.next
    parts++
    bytes += part.bytes
  } while (from)
  return { names, parts, bytes }
}

const expected = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => `team-${to - 1 - index}`)

test('finds every line once, newest first, across chunk borders', () => {
  writeFileSync(file, lines(0, 5000))
  assert.deepEqual(all().names, expected(0, 5000))
  assert.deepEqual(all('', { limit: 700 }).names, expected(0, 5000))
})

test('a part reads a bounded number of bytes, also if nothing matches', () => {
  writeFileSync(file, lines(0, 10_000))
  const { names, parts, bytes } = all('name=team-3')
  assert.deepEqual(names, ['team-3'])
  assert.ok(parts >= 8, String(parts))
  assert.ok(bytes / parts <= 256 * 1024, `${bytes} in ${parts}`)
})

test('without a limit, parts end at the same places whatever matches', () => {
  writeFileSync(file, lines(0, 5000))
  const ends = (selector: string) => {
    const found: AuditPosition[] = []
    let from: AuditPosition | undefined
    do {
      const part = scan(file, { query: parseAuditQuery(selector), from })
      assert.ok('matches' in part)
      from = part.next
      if (from) found.push(from)
    } while (from)
    return found
  }
  assert.deepEqual(ends('verb=create'), ends('verb=delete'))
})

test('each match has the place where the search continues after it', () => {
  writeFileSync(file, lines(0, 2000))
  const query = parseAuditQuery('')
  const part = scan(file, { query })
  assert.ok('matches' in part)
  const rest = scan(file, { query, limit: 1, from: part.matches[100]?.at })
  assert.ok('matches' in rest)
  assert.deepEqual(
    rest.matches.map(one => one.id),
    [part.matches[101]?.id],
  )
})

test('large events lose their bodies', () => {
  writeFileSync(file, lines(0, 20, { requestObject: { data: 'x'.repeat(100_000) } }))
  assert.deepEqual(all().names, expected(0, 20))
  const part = scan(file, { query: parseAuditQuery(''), limit: 1 })
  assert.ok('matches' in part)
  assert.deepEqual([part.matches[0]?.truncated, part.matches[0]?.event.requestObject], [true, undefined])
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
  const { names, bytes } = all(`from=${at(4000)},to=${at(4100)}`)
  assert.deepEqual(names, expected(4000, 4101))
  assert.ok(bytes <= 1024 * 1024, String(bytes))
})

test('pages continue in a file that was rotated since, and in older files', () => {
  writeFileSync(join(directory, 'audit-2026-03-01T01-00-00.000.log'), lines(0, 60))
  writeFileSync(join(directory, 'audit-foreign.log'), lines(500, 600))
  writeFileSync(file, lines(60, 100))
  const query = parseAuditQuery('')
  const first = scan(file, { query, limit: 10 })
  assert.ok('matches' in first && first.next)
  renameSync(file, join(directory, 'audit-2026-03-01T02-00-00.000.log'))
  writeFileSync(file, lines(100, 110))
  const rest = scan(file, { query, from: first.next })
  assert.ok('matches' in rest)
  assert.deepEqual(
    [...first.matches, ...rest.matches].map(one => one.event.objectRef?.name),
    expected(0, 100),
  )
  assert.deepEqual(all().names, expected(0, 110))
})

test('files outside of from and to are not read', () => {
  writeFileSync(join(directory, 'audit-2026-03-01T01-00-00.000.log'), lines(0, 60))
  writeFileSync(join(directory, 'audit-2026-03-02T01-00-00.000.log'), lines(60, 1500))
  writeFileSync(file, lines(1500, 3000))
  const { names, bytes } = all('to=2026-03-01T00:10:00Z')
  assert.deepEqual(names, expected(0, 11))
  assert.ok(bytes <= 20_000, String(bytes))
})

test('a position in a file that is gone has expired', () => {
  writeFileSync(file, lines(0, 10))
  const query = parseAuditQuery('')
  assert.deepEqual(scan(file, { query, limit: 10, from: { file: '1:1', at: 5 } }), { expired: true })
  const first = scan(file, { query, limit: 1 })
  assert.ok('matches' in first && first.next)
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
