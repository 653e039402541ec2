// Pages of searches in the audit logs of several replicas: order, gaps, missing replicas, and what they reveal of hidden events.

import assert from 'node:assert/strict'
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type Dice, diceOf } from '../../test/prove/seeded-random.ts'
import {
  type AuditCursor,
  type AuditLine,
  type AuditSearch,
  type FoundEvent,
  parseAuditQuery,
} from '../api/audit-query.ts'
import { tooManyRequests } from '../api/errors.ts'
import { documentOf } from '../api/resources.ts'
import { type AuditSource, pageOf, type ScanLog } from './audit-pages.ts'
import { scan } from './audit-scan.ts'

let directory: string
before(() => {
  directory = mkdtempSync(join(tmpdir(), 'audit-pages-'))
})
after(() => rmSync(directory, { recursive: true }))

const start = Date.parse('2026-03-01T00:00:00Z')
const lineAt = (index: number, more: AuditLine = {}) =>
  `${JSON.stringify({
    auditID: `id-${index}`,
    stage: 'ResponseComplete',
    verb: 'create',
    user: { username: 'admin' },
    objectRef: { resource: 'teams', name: `e-${index}`, uid: 'u' },
    stageTimestamp: `${new Date(start + index * 1000).toISOString().slice(0, -1)}000Z`,
    ...more,
  })}\n`

let count = 0
type Source = AuditSource & { readonly file: string }
/** A replica with a log of its own. */
function replica(log: string): Source {
  const id = `r${++count}`
  const file = join(directory, `${id}.log`)
  writeFileSync(file, log)
  return { id, name: `https://${id}`, file, scan: async search => scan(file, search) }
}
const broken = (reason = 'no route'): AuditSource => ({
  ...replica(''),
  scan: async () => {
    throw new Error(reason)
  },
})

const show = ({ id, event }: FoundEvent) =>
  documentOf({ apiVersion: 'v1', kind: 'Event', metadata: { name: event.objectRef?.name ?? id } })

type Options = Partial<AuditSearch> & { readonly selector?: string; readonly meanwhile?: () => void }

/** All pages, each asked of a replica that has the others in another order. */
async function pagesOf(sources: readonly AuditSource[], { selector = '', meanwhile, ...options }: Options) {
  const pages: { names: string[]; warnings: readonly string[]; next: AuditCursor | undefined }[] = []
  let from: AuditCursor | undefined
  do {
    const turn = pages.length % sources.length
    const order = [...sources.slice(turn), ...sources.slice(0, turn)]
    const search = { query: parseAuditQuery(selector), limit: 10, show, ...options, from }
    const { items, warnings, next } = await pageOf(search, order)
    pages.push({ names: items.map(({ object }) => object.metadata.name ?? ''), warnings, next })
    from = next
    meanwhile?.()
    assert.ok(pages.length < 5000, 'the search does not end')
  } while (from)
  return pages
}

/** Events 0 … total - 1, in order, each in the log of a random replica. */
function spread(total: number, replicas: number, dice: Dice, line: (index: number) => string = lineAt) {
  const logs = Array.from({ length: replicas }, () => '')
  for (let index = 0; index < total; index++) {
    const target = dice(replicas)
    logs[target] += line(index)
  }
  return logs.map(replica)
}
const newestFirst = (total: number) => Array.from({ length: total }, (_, index) => `e-${total - 1 - index}`)

describe('several replicas', () => {
  for (const limit of [1, 3, 50, 500])
    test(`pages of ${limit} are in the order of time, without gaps or repeats`, async () => {
      const pages = await pagesOf(spread(400, 3, diceOf(String(limit))), { limit })
      assert.deepEqual(
        pages.flatMap(({ names }) => names),
        newestFirst(400),
      )
      assert.ok(pages.every(({ names, warnings }) => names.length <= limit && warnings.length === 0))
    })

  test('events that arrive while somebody reads do not move the pages', async () => {
    const sources = spread(60, 3, diceOf('1'))
    let index = 60
    const meanwhile = () => {
      for (const { file } of sources) appendFileSync(file, lineAt(index++))
    }
    const pages = await pagesOf(sources, { limit: 7, meanwhile })
    assert.deepEqual(
      pages.flatMap(({ names }) => names),
      newestFirst(60),
    )
  })

  test('a log without matches that is larger than a page is read to its end', async () => {
    const long = replica(lineAt(1, { requestObject: { data: 'x'.repeat(50_000) } }).repeat(500))
    const sources = [replica(lineAt(0, { verb: 'get' })), long, replica(lineAt(2, { verb: 'get' }))]
    const pages = await pagesOf(sources, { selector: 'verb=get' })
    assert.ok(pages.length > 3, String(pages.length))
    assert.deepEqual(
      pages.flatMap(({ names }) => names),
      ['e-2', 'e-0'],
    )
  })

  test('no more than 32 logs are read, with a warning', async () => {
    const sources = Array.from({ length: 34 }, (_, index) => replica(lineAt(index)))
    const { items, warnings } = await pageOf({ query: parseAuditQuery(''), limit: 100, show }, sources)
    assert.equal(items.length, 32)
    assert.deepEqual(warnings, ['a search reads the audit logs of 32 replicas, so those of 2 are missing'])
  })
})

describe('a replica that cannot be read', () => {
  test('is left out of the whole search, with a warning on every page', async () => {
    let asked = 0
    const dead = broken()
    const counted: AuditSource = {
      ...dead,
      scan(search) {
        asked++
        return dead.scan(search)
      },
    }
    const pages = await pagesOf([...spread(30, 2, diceOf('2')), counted], { limit: 4 })
    assert.deepEqual(
      pages.flatMap(({ names }) => names),
      newestFirst(30),
    )
    assert.equal(asked, 1)
    for (const { warnings } of pages) {
      assert.equal(warnings.length, 1)
      assert.match(warnings[0] ?? '', /the audit log of replica https:\/\/r\d+ could not be read/)
    }
    assert.match(pages[0]?.warnings[0] ?? '', /no route/)
  })

  test('in the middle of a search: the rest continues without it', async () => {
    const [one, two] = spread(40, 2, diceOf('3')) as [Source, Source]
    let calls = 0
    const failing: ScanLog = search => (++calls > 2 ? Promise.reject(new Error('gone')) : two.scan(search))
    const pages = await pagesOf([one, { ...two, scan: failing }], { limit: 5 })
    const names = pages.flatMap(page => page.names)
    const own = (await pagesOf([one], { limit: 100 })).flatMap(page => page.names)
    for (const name of own) assert.ok(names.includes(name), name)
    assert.equal(new Set(names).size, names.length)
    assert.equal(pages.at(-1)?.warnings.length, 1)
  })

  test('or that no longer exists: the search continues', async () => {
    const [one, two] = spread(20, 2, diceOf('4')) as [Source, Source]
    const search = { query: parseAuditQuery(''), limit: 2, show }
    const { next } = await pageOf(search, [one, two])
    const { items, warnings } = await pageOf({ ...search, from: next, limit: 100 }, [one])
    assert.ok(items.length > 0)
    assert.match(warnings[0] ?? '', /no longer exists/)
  })

  test('tells other callers only its id', async () => {
    const actor = { username: 'eve', isUser: true }
    const dead = broken('10.0.0.7')
    const [page] = await pagesOf([replica(lineAt(0)), dead], { actor })
    assert.deepEqual(page?.warnings, [
      `the audit log of replica ${dead.id} could not be read, so its events are missing`,
    ])
  })

  test('if it is all of them, the search fails with 503', async () => {
    const search = { query: parseAuditQuery(''), limit: 1, show }
    await assert.rejects(pageOf(search, [broken(), broken()]), { code: 503 })
    await assert.rejects(pageOf(search, [broken()]), { code: 503 })
  })

  test('because it is busy: the client tries again', async () => {
    const busy: AuditSource = { ...replica(''), scan: () => Promise.reject(tooManyRequests()) }
    await assert.rejects(pageOf({ query: parseAuditQuery(''), limit: 1, show }, [replica(lineAt(0)), busy]), {
      code: 429,
    })
  })
})

describe('pages of callers who do not see all events', () => {
  const actor = { username: 'eve', isUser: true }
  const showOwn = (found: FoundEvent) => (found.event.user?.username === 'eve' ? show(found) : undefined)
  const own = { user: { username: 'eve', groups: ['platform:user:eve'] } }
  const hidden = { objectRef: { resource: 'teams', name: 'merger', uid: 'm' } }

  for (const seed of [1, 2, 3])
    test(`end at the same places wherever hidden events match, seed ${seed}`, async () => {
      const dice = diceOf(String(seed))
      const filler = () => ({ requestObject: { data: 'x'.repeat(dice(3000)) } })
      const sources = spread(1000, 3, dice, index => lineAt(index, { ...(dice(20) === 0 ? own : hidden), ...filler() }))
      for (const limit of [1, 5, 20]) {
        const options = { actor, show: showOwn, limit }
        const right = await pagesOf(sources, { ...options, selector: 'name!=nothing' })
        const wrong = await pagesOf(sources, { ...options, selector: 'name!=merger' })
        assert.deepEqual(right, wrong)
        assert.ok(right.length > 1)
      }
    })

  test('end at the same places in logs that are larger than a page', async () => {
    const body = { requestObject: { data: 'x'.repeat(50_000) } }
    const dice = diceOf('6')
    const sources = spread(800, 2, dice, index => lineAt(index, { ...(index % 200 === 0 ? own : hidden), ...body }))
    const options = { actor, show: showOwn, limit: 3 }
    const right = await pagesOf(sources, { ...options, selector: 'name!=nothing' })
    assert.deepEqual(right, await pagesOf(sources, { ...options, selector: 'name!=merger' }))
    assert.ok(right.some(({ names, next }) => names.length < 3 && next))
    assert.deepEqual(
      right.flatMap(({ names }) => names),
      ['e-600', 'e-400', 'e-200', 'e-0'],
    )
  })
})
