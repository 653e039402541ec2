// The checker of test/prove with handmade histories: a correct one, and one that breaks each rule.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { bugs } from '../prove/bugs.ts'
import { checkConsistency } from '../prove/check-consistency.ts'
import { edited } from '../prove/edits.ts'
import type { Get, List, Recording, Session, Sight, Told, Write } from '../prove/recording.ts'

const a = (version: number, value: string, color = 'red', uid = 'first'): Sight => ({
  name: 'a',
  version,
  uid,
  value,
  color,
})
const b = (version: number, value: string): Sight => ({ name: 'b', version, uid: 'of b', value, color: 'blue' })

/** Created at 2, changed at 3; b is created at 4; a gets a new label at 5 and is deleted at 6. */
const [one, two, three, four] = [a(2, 'one'), a(3, 'two'), b(4, 'three'), a(5, 'two', 'blue')]
const created: Write = { op: 'create', name: 'a', value: 'one', color: 'red', code: 201, seen: one, start: 1, end: 2 }
const updated: Write = {
  op: 'update',
  name: 'a',
  value: 'two',
  color: 'red',
  expect: 2,
  code: 200,
  seen: two,
  start: 3,
  end: 5,
}
const other: Write = {
  op: 'create',
  name: 'b',
  value: 'three',
  color: 'blue',
  code: 201,
  seen: three,
  start: 4,
  end: 8,
}
const relabelled: Write = { op: 'relabel', name: 'a', color: 'blue', code: 200, seen: four, start: 10, end: 11 }
const deleted: Write = { op: 'delete', name: 'a', expect: 5, code: 200, uid: 'first', start: 20, end: 21 }
const writes = [created, updated, other, relabelled, deleted]

const got: Get = { name: 'a', code: 200, seen: two, start: 6, end: 7 }
const missed: Get = { name: 'a', code: 404, start: 22, end: 23 }
const listed: List = { at: 4, items: [two, three], more: false, start: 8, end: 9 }
const paged: List = { at: 5, items: [four], limit: 1, more: true, remaining: 1, start: 12, end: 13 }
const rest: List = { at: 5, items: [three], limit: 1, after: 'a', began: 5, more: false, start: 24, end: 25 }
const exact: List = { at: 3, items: [two], exact: 3, more: false, start: 26, end: 27 }

const told = (type: Told['type'], sight: Sight, tick: number): Told => ({ tick, type, ...sight })
const mark = (version: number, tick: number) => told('BOOKMARK', { ...one, version }, tick)
const events = [
  told('ADDED', one, 2),
  told('MODIFIED', two, 6),
  told('ADDED', three, 9),
  told('MODIFIED', four, 12),
  told('DELETED', { ...four, version: 6 }, 22),
]
const whole: Session = { watcher: 1, from: 1, told: [...events, mark(6, 23)] }
const ofRed: Session = {
  watcher: 2,
  from: 1,
  color: 'red',
  told: [told('ADDED', one, 2), told('MODIFIED', two, 6), told('DELETED', { ...two, version: 5 }, 13)],
}
const resumed: Session[] = [
  { watcher: 3, from: 1, told: [told('ADDED', one, 2), mark(2, 3)] },
  { watcher: 3, from: 2, told: events.slice(1) },
]

const right: Recording = {
  writes,
  gets: [got, missed],
  lists: [listed, paged, rest, exact],
  sessions: [whole, ofRed, ...resumed],
  from: 1,
  last: 6,
}

test('a correct history breaks no rule', () => {
  assert.deepEqual(checkConsistency(right), [])
})

const dry = a(7, 'dry', 'red', 'second')
const withTold = (told: readonly Told[]): Partial<Recording> => ({ sessions: [whole, { watcher: 9, from: 1, told }] })
const withWrite = (write: Write): Partial<Recording> => ({ writes: [...writes, write] })
const withGet = (get: Get): Partial<Recording> => ({ gets: [get] })
const withList = (list: List): Partial<Recording> => ({ lists: [list] })

const broken: readonly (readonly [rule: string, what: string, change: Partial<Recording>])[] = [
  [
    'one write a revision',
    'a revision is given twice',
    withWrite({ ...other, name: 'c', seen: { ...three, name: 'c' } }),
  ],
  ['one write a revision', 'one object is deleted twice', withWrite(deleted)],
  [
    'real time',
    'a write is placed before one that was over',
    { writes: [created, { ...updated, start: 12, end: 13 }, other, relabelled, deleted] },
  ],
  [
    'every write has a writer',
    'something happens that nobody asked for',
    { writes: [created, updated, relabelled, deleted] },
  ],
  [
    'dry run',
    'a dry run leaves something behind',
    {
      ...withWrite({
        op: 'create',
        name: 'a',
        value: 'dry',
        color: 'red',
        dryRun: true,
        code: 201,
        start: 30,
        end: 31,
      }),
      sessions: [{ ...whole, told: [...events, told('ADDED', dry, 31)] }],
    },
  ],
  [
    'no-op',
    'what changes nothing gets a new version',
    withWrite({ op: 'same', name: 'a', expect: 3, code: 200, seen: four, start: 8, end: 9 }),
  ],
  [
    'compare-and-swap',
    'an update for an older version succeeds',
    { writes: [created, { ...updated, expect: 1 }, other, relabelled, deleted] },
  ],
  [
    'compare-and-swap',
    'a delete for an older version succeeds',
    { writes: [created, updated, other, relabelled, { ...deleted, expect: 3 }] },
  ],
  [
    'compare-and-swap',
    'a patch is built on what is not there any more',
    {
      writes: [created, updated, other, { ...relabelled, seen: a(5, 'one', 'blue') }, deleted],
      sessions: [],
      gets: [],
      lists: [],
    },
  ],
  [
    'compare-and-swap',
    'an update for the right version is refused',
    withWrite({ ...updated, expect: 5, code: 409, start: 14, end: 15 }),
  ],
  [
    'compare-and-swap',
    'a create of what is not there is refused',
    withWrite({ ...created, name: 'c', code: 409, start: 14, end: 15 }),
  ],
  ['compare-and-swap', 'what is there is not found', withWrite({ ...relabelled, code: 404, start: 14, end: 15 })],
  ['get', 'a get shows what was superseded before it began', withGet({ ...got, seen: one })],
  ['get', 'a get shows a state that was requested after it ended', withGet({ ...got, seen: four })],
  ['get', 'a get does not find what is there', withGet({ ...missed, start: 12, end: 13 })],
  ['get', 'a get shows a value that was never there', withGet({ ...got, seen: { ...two, value: 'one' } })],
  [
    'list',
    'a list shows a state from before it began',
    withList({ ...listed, at: 3, items: [two], start: 12, end: 13 }),
  ],
  ['list', 'a list mixes two revisions', withList({ ...listed, items: [one, three] })],
  ['list', 'a list leaves something out', withList({ ...listed, items: [two] })],
  ['list', 'a list shows what is not selected', withList({ ...listed, color: 'blue' })],
  ['list', 'a page goes on at another revision', withList({ ...rest, began: 4 })],
  ['list', 'a page says that nothing follows', withList({ ...paged, more: false })],
  ['list', 'a page miscounts what remains', withList({ ...paged, remaining: 2 })],
  ['list', 'an exact list shows another revision', withList({ ...exact, exact: 4 })],
  ['ordered', 'two events change places', withTold([0, 2, 1, 3, 4].map(index => events[index] as Told))],
  ['unique', 'a watch delivers an event twice', withTold([...events.slice(0, 2), ...events.slice(1)])],
  [
    'atomic',
    'an event shows only a part of its write',
    withTold([...events.slice(0, 3), told('MODIFIED', a(5, 'one', 'blue'), 12)]),
  ],
  ['atomic', 'an event has the wrong type', withTold([told('MODIFIED', one, 2), ...events.slice(1)])],
  ['reliable', 'an event is left out', withTold([...events.slice(0, 2), ...events.slice(3)])],
  ['reliable', 'the last event never comes', withTold(events.slice(0, 4))],
  ['reliable', 'a deletion is acknowledged, and no watch delivers it', { sessions: [] }],
  [
    'resumable',
    'a watch resumes one revision too late',
    { sessions: [whole, resumed[0] as Session, { watcher: 3, from: 2, told: events.slice(2) }] },
  ],
  ['resumable', 'history is gone too soon', { sessions: [whole, { watcher: 9, from: 1, told: [], gone: true }] }],
  [
    'bookmarkable',
    'a bookmark comes before what it promises',
    withTold([events[0] as Told, mark(3, 6), ...events.slice(1)]),
  ],
  ['bookmarkable', 'a bookmark goes back', withTold([...events, mark(5, 30)])],
  [
    'selected',
    'a watch leaks what is not for it',
    {
      sessions: [
        whole,
        { ...ofRed, told: [...ofRed.told.slice(0, 2), told('ADDED', three, 9), ...ofRed.told.slice(2)] },
      ],
    },
  ],
]

for (const [rule, what, change] of broken)
  test(`the checker finds it when ${what} (${rule})`, () => {
    const found = checkConsistency({ ...right, ...change })
    assert.ok(
      found.some(one => one.rule === rule),
      JSON.stringify(found),
    )
  })

test('every seeded bug still matches the sources', () => {
  const read = (file: string) => readFileSync(join(import.meta.dirname, '../../src', file), 'utf8')
  for (const [name, { edits }] of Object.entries(bugs)) for (const edit of edits) edited(name, edit, read(edit.file))
  assert.ok(Object.keys(bugs).length >= 20)
})
