// Power loss while the store writes: sectors written since the last fsync may be on disk or not.
// Builds every such disk from copies taken when the store reported "durable", opens it, and compares it with the acknowledged writes.

import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { hash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { loadLog } from '../../src/storage/sqlite/load.ts'
import { openTable, type RowBatch } from '../../src/storage/sqlite/table.ts'
import { openWatchCache } from '../../src/storage/watch-cache.ts'
import { type Dice, diceOf } from './seeded-random.ts'

const sector = 512
/** The bytes at the beginning of a write-ahead log that identify its frames. */
const logHead = 32
const head = '{"metadata":{"resourceVersion":"'
const keys = 5

/** The files on the disk: the database and its write-ahead log. */
type Disk = { readonly db: Buffer; readonly wal: Buffer }
type Loss = { readonly disks: number; readonly commits: number; readonly checkpoints: number }

export function runPowerLoss({ commits, seed }: { readonly commits: number; readonly seed: string }): Loss {
  const directory = mkdtempSync(join(tmpdir(), 'platform-power-'))
  try {
    return losePower(directory, commits, diceOf(`${seed}/power`))
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

function losePower(directory: string, commits: number, roll: Dice): Loss {
  const file = join(directory, 'store.db')
  const table = openTable({ file })
  const previous = new Map<string, number>()
  const count = { disks: 0, checkpoints: 0 }
  let before = diskOf(file)
  let state = stateOf(directory, before)
  /** Every disk that a power loss can leave between two durable states must show one of them. */
  const step = (what: string) => {
    const after = diskOf(file)
    const next = stateOf(directory, after)
    for (const [name, disk] of lossesBetween(before, after, roll)) {
      count.disks++
      const found = stateOf(directory, disk)
      assert.ok(found === state || found === next, `${what}, ${name}: ${found}\nnot ${state}\nnor ${next}`)
    }
    before = after
    state = next
  }
  for (let revision = 2; revision < 2 + commits; revision++) {
    table.append(batchAt(revision, previous, roll))
    assert.match(stateOf(directory, diskOf(file)), new RegExp(`^${revision} `), 'acknowledged is on the disk')
    step(`while ${revision} was written`)
    if (roll(6)) continue
    count.checkpoints++
    const db = new DatabaseSync(file)
    db.exec('PRAGMA wal_checkpoint(PASSIVE)')
    // The last connection to close would run a checkpoint.
    step(`during a checkpoint at ${revision}`)
    db.close()
  }
  table.close()
  return { ...count, commits }
}

/** One commit, sometimes with a deletion. */
function batchAt(revision: number, previous: Map<string, number>, roll: Dice): RowBatch {
  const name = `n${roll(keys)}`
  const last = previous.get(name) ?? 0
  const isDelete = last > 0 && roll(5) === 0
  const text = isDelete ? Buffer.alloc(0) : Buffer.from(`${head}"},"value":"${revision}${'x'.repeat(roll(9000))}"}`)
  if (isDelete) previous.delete(name)
  else previous.set(name, revision)
  const row = { revision, slot: 0, bucket: 'things', namespace: '', name, previous: last }
  return { rows: [{ ...row, gap: isDelete ? 0 : head.length, text: text.length }], slab: text, time: revision }
}

const diskOf = (file: string): Disk => ({ db: readFileSync(file), wal: readFileSync(`${file}-wal`) })

/** Opens a copy like a server, and returns its content. */
function stateOf(directory: string, { db, wal }: Disk): string {
  const file = join(directory, 'copy.db')
  rmSync(`${file}-shm`, { force: true })
  writeFileSync(file, db)
  writeFileSync(`${file}-wal`, wal)
  const table = openTable({ file })
  const replica = openWatchCache()
  loadLog(file, replica)
  assert.equal(table.revision, replica.revision)
  table.close()
  const { entries } = replica.list({ bucket: 'things' })
  return `${replica.revision} ${entries.map(({ key, revision, text }) => `${key.name}@${revision} ${hash('sha1', text).slice(0, 8)}`).join(', ')}`
}

function* lossesBetween(before: Disk, after: Disk, roll: Dice): Generator<readonly [string, Disk]> {
  // A restarted log first gets its header and an fsync.
  const begun = { ...before, wal: withHead(before.wal, after.wal) }
  yield ['with the head of a new log', begun]
  for (const [name, wal] of tornOf(begun.wal, after.wal, roll)) yield [`log ${name}`, { ...before, wal }]
  for (const [name, db] of tornOf(before.db, after.db, roll)) yield [`database ${name}`, { ...before, db }]
}

function withHead(before: Buffer, after: Buffer): Buffer {
  const bytes = Buffer.alloc(Math.max(before.length, Math.min(after.length, logHead)))
  before.copy(bytes)
  after.copy(bytes, 0, 0, logHead)
  return bytes
}

/** Truncated after every sector, with each sector missing, and with random sets of sectors. */
function* tornOf(before: Buffer, after: Buffer, roll: Dice): Generator<readonly [string, Buffer]> {
  const changed = changedSectors(before, after)
  for (const [index, at] of changed.entries()) {
    yield [`with the first ${index} sectors`, torn(before, after, changed.slice(0, index))]
    yield [`without sector ${at}`, torn(before, after, changed.toSpliced(index, 1))]
  }
  for (let some = 0; some < Math.min(changed.length, 16); some++)
    yield [
      'with some sectors',
      torn(
        before,
        after,
        changed.filter(() => roll(2)),
      ),
    ]
}

function changedSectors(before: Buffer, after: Buffer): number[] {
  const all = Array.from({ length: Math.ceil(Math.max(before.length, after.length) / sector) }, (_, at) => at)
  const of = (bytes: Buffer, at: number) => bytes.subarray(at * sector, (at + 1) * sector)
  return all.filter(at => !of(before, at).equals(of(after, at)))
}

/** The old bytes with some of the new sectors; unwritten gaps are zero. */
function torn(before: Buffer, after: Buffer, sectors: readonly number[]): Buffer {
  const end = Math.min(after.length, ((sectors.at(-1) ?? -1) + 1) * sector)
  const bytes = Buffer.alloc(Math.max(before.length, end))
  before.copy(bytes)
  for (const at of sectors) after.copy(bytes, at * sector, at * sector, (at + 1) * sector)
  return bytes
}
