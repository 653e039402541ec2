// Fail points of the store, at which the process can be killed. Loaded before the server with --import.

import { applyEdits, type Edit } from './edits.ts'

/** `soon`: edits that make the point occur within a second instead of an hour. */
type Point = {
  readonly file: string
  readonly at: string
  readonly side: 'before' | 'after'
  readonly soon?: readonly Edit[]
}

const tidySoon: readonly Edit[] = [
  { file: 'storage/sqlite/table.ts', from: 'const TIDY_PAGES = 4000', to: 'const TIDY_PAGES = 60' },
]
const compactSoon: readonly Edit[] = [
  { file: 'storage/sqlite/store.ts', from: 'const COMPACT_EVERY = 1000', to: 'const COMPACT_EVERY = 20' },
  {
    file: 'storage/event-log.ts',
    from: 'minAgeMs = 600_000, minEvents = 10_000',
    to: 'minAgeMs = 0, minEvents = 800',
  },
]

/** Every `at` must occur exactly once in its file; otherwise the program does not start. */
export const points: { readonly [name: string]: Point } = {
  'before append': { file: 'sqlite/table.ts', at: "db.exec('BEGIN IMMEDIATE')\n    try {", side: 'before' },
  'in append': { file: 'sqlite/table.ts', at: 'at += row.text\n', side: 'after' },
  'before commit': { file: 'sqlite/table.ts', at: "db.exec('COMMIT')", side: 'before' },
  'after commit': { file: 'sqlite/table.ts', at: "db.exec('COMMIT')", side: 'after' },
  'before checkpoint': {
    file: 'sqlite/table.ts',
    at: "db.exec('PRAGMA wal_checkpoint(PASSIVE)')",
    side: 'before',
    soon: tidySoon,
  },
  'after checkpoint': {
    file: 'sqlite/table.ts',
    at: "db.exec('PRAGMA wal_checkpoint(PASSIVE)')",
    side: 'after',
    soon: tidySoon,
  },
  'in compaction': { file: 'sqlite/table.ts', at: "writeMeta(db, 'floor', to)", side: 'before', soon: compactSoon },
  'after compaction': { file: 'sqlite/table.ts', at: 'floor = to\n', side: 'before', soon: compactSoon },
  'before cache update': { file: 'commit-queue.ts', at: 'watchCache.apply(events, revision, time)', side: 'before' },
  'after cache update': { file: 'commit-queue.ts', at: 'watchCache.apply(events, revision, time)', side: 'after' },
  'before answer': {
    file: 'commit-queue.ts',
    at: 'if (error === undefined) pending.resolve(revision)',
    side: 'before',
  },
  'after answer': { file: 'commit-queue.ts', at: 'start()\n    answer(outcomes)', side: 'after' },
}

/** Kills the process when the point was reached this many times. */
const die = (after: number) =>
  `;if ((globalThis.passed = (globalThis.passed ?? 0) + 1) >= ${after}) process.kill(process.pid, 'SIGKILL');`

const { PROVE_FAIL_POINT: name = '', PROVE_FAIL_AFTER: after = '1' } = process.env
const point = points[name]
if (point) {
  const own = die(Number(after))
  const to = point.side === 'before' ? `${own}\n${point.at}` : `${point.at}\n${own}\n`
  applyEdits(name, [{ file: `storage/${point.file}`, from: point.at, to }, ...(point.soon ?? [])])
}
