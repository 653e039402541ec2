// The queue of the audit log: order, batches, bounds, and behaviour while the log cannot be written.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { Writable } from 'node:stream'
import { test } from 'node:test'
import { setImmediate, setTimeout } from 'node:timers/promises'
import { type Destination, openSink, type SinkOptions, streamDestination } from './audit-sink.ts'

type Fake = Destination & {
  fails: string | undefined
  text: string
  tries: number
  puts: number
  closed: boolean
  most: number
}

/** A destination in memory that fails on demand and limits the bytes per write. */
function openFake(): Fake {
  const fake: Fake = {
    fails: undefined,
    text: '',
    tries: 0,
    puts: 0,
    closed: false,
    most: Number.POSITIVE_INFINITY,
    async put(batch, done) {
      await setTimeout(1)
      fake.tries++
      if (fake.fails) throw new Error(fake.fails)
      fake.puts++
      const taken = batch.subarray(done, Math.min(batch.length, done + fake.most))
      fake.text += taken.toString('latin1')
      return done + taken.length
    },
    async close() {
      fake.closed = true
    },
  }
  return fake
}

const open = (destination: Destination, more: Partial<SinkOptions> = {}) => {
  const seen = { lost: 0, failed: [] as unknown[] }
  const sink = openSink({
    destination,
    queueBytes: 1 << 20,
    batchBytes: 1 << 16,
    lost: lines => {
      seen.lost += lines
    },
    failed: error => void seen.failed.push(error),
    retryAfter: 5,
    closeWithin: 30_000,
    ...more,
  })
  return { sink, seen }
}
const numbers = (count: number) => Array.from({ length: count }, (_, index) => `line ${index}`)
const joined = (lines: readonly string[]) => lines.map(line => `${line}\n`).join('')

test('lines are written in order and in few batches, none above the limit', async () => {
  const fake = openFake()
  const { sink } = open(fake, { batchBytes: 1000 })
  const lines = numbers(2000)
  for (const line of lines) assert.equal(sink.write(line), true)
  await sink.flush()
  assert.equal(fake.text, joined(lines))
  assert.ok(fake.puts >= joined(lines).length / 1000 && fake.puts < 60, String(fake.puts))
  await sink.close()
  assert.ok(fake.closed)
})

test('a line larger than a batch is written alone, and a destination may accept a batch in parts', async () => {
  const fake = openFake()
  fake.most = 7
  const { sink } = open(fake, { batchBytes: 20 })
  const lines = ['short', 'x'.repeat(100), 'end']
  for (const line of lines) sink.write(line)
  await sink.flush()
  await sink.close()
  assert.equal(fake.text, joined(lines))
})

test('while the target fails, the sink reports the reason and keeps lines; after it recovers, it writes them and clears the reason', async () => {
  const fake = openFake()
  fake.fails = 'ENOSPC: no space left on device'
  const { sink, seen } = open(fake)
  const lines = numbers(50)
  for (const line of lines.slice(0, 25)) sink.write(line)
  while (!sink.failure) await setTimeout(1)
  assert.match(sink.failure, /ENOSPC/)
  for (const line of lines.slice(25)) sink.write(line)
  while (fake.tries < 4) await setTimeout(1)
  assert.equal(seen.failed.length, 1, 'told once')
  fake.fails = undefined
  await sink.flush()
  assert.equal(sink.failure, undefined)
  assert.equal(fake.text, joined(lines))
  assert.equal(seen.lost, 0)
  await sink.close()
})

test('beyond the limit lines are dropped and counted, and the sink reports it until there is space again', async () => {
  const fake = openFake()
  fake.fails = 'broken'
  const { sink, seen } = open(fake, { queueBytes: 1000, batchBytes: 100 })
  const taken = numbers(500).filter(line => sink.write(line))
  assert.ok(taken.length > 50 && taken.length < 200, String(taken.length))
  assert.equal(seen.lost, 500 - taken.length)
  assert.ok(sink.failure)
  fake.fails = undefined
  await sink.flush()
  assert.equal(sink.failure, undefined)
  assert.equal(fake.text, joined(taken))
  assert.equal(sink.write('again'), true)
  await sink.close()
  assert.equal(fake.text, joined([...taken, 'again']))
})

test('closing writes pending lines, gives up after a while, and accepts nothing more', async () => {
  const fake = openFake()
  fake.fails = 'broken'
  const { sink, seen } = open(fake, { closeWithin: 100 })
  for (const line of numbers(10)) sink.write(line)
  await sink.close()
  assert.equal(seen.lost, 10)
  assert.equal(sink.write('late'), false)
  assert.equal(seen.lost, 11)
})

test('a stream that fails, or never responds, makes the sink fail and nothing else', async () => {
  const broken = new Writable({ write: (_chunk, _encoding, done) => done(new Error('EPIPE')) })
  const { sink, seen } = open(streamDestination(broken), { closeWithin: 100 })
  sink.write('a')
  while (!sink.failure) await setTimeout(1)
  assert.match(sink.failure, /EPIPE/)
  await sink.close()
  assert.equal(seen.lost, 1)
  const stuck = open(streamDestination(new Writable({ write: () => {} })), { closeWithin: 100 })
  stuck.sink.write('a')
  await stuck.sink.close()
  assert.equal(stuck.seen.lost, 1)
})

test('stdout is a destination: lines written before the exit arrive complete', () => {
  const program = `
    import { openSink, streamDestination } from '${import.meta.dirname}/audit-sink.ts'
    const sink = openSink({ destination: streamDestination(process.stdout), queueBytes: 1e8, batchBytes: 1e5, lost() {}, failed() {} })
    for (let n = 0; n < 20000; n++) sink.write('line ' + n)
    await sink.close()
    process.exit(0)`
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], { maxBuffer: 1e8 })
  assert.equal(stdout.toString(), joined(numbers(20_000)))
})

test('settled resolves when lines are written, and at the first failed attempt', async () => {
  const fake = openFake()
  const { sink } = open(fake, { closeWithin: 100 })
  assert.equal(await sink.settled(), true, 'there is nothing to wait for')
  sink.write('one')
  assert.equal(await sink.settled(), true)
  assert.equal(fake.text, 'one\n')
  fake.fails = 'no space left on device'
  sink.write('two')
  assert.equal(await sink.settled(), false)
  sink.write('three')
  assert.equal(await sink.settled(), false, 'while it is known to fail nobody waits')
  fake.fails = undefined
  await sink.flush()
  assert.equal(await sink.settled(), true)
  assert.equal(fake.text, 'one\ntwo\nthree\n')
  fake.fails = 'gone'
  sink.write('four')
  const waiting = sink.settled()
  await sink.close()
  assert.equal(await waiting, false)
})

test('lines of one tick are written together, and immediately on flush, a full batch, or close', async () => {
  const fake = openFake()
  const { sink } = open(fake, { gatherFor: 500, batchBytes: 1000 })
  for (const line of numbers(20)) {
    sink.write(line)
    await setImmediate()
  }
  while (fake.puts === 0) await setTimeout(1)
  assert.equal(fake.text, joined(numbers(20)))

  const patient = openFake()
  const { sink: slow } = open(patient, { gatherFor: 1_000_000, batchBytes: 1000 })
  slow.write('one')
  assert.equal(await slow.settled(), true)
  slow.write('two')
  await slow.flush()
  assert.equal(patient.text, 'one\ntwo\n')
  slow.write('three')
  await setTimeout(1)
  slow.write('x'.repeat(1000))
  while (patient.text.length < 1000) await setTimeout(1)
  slow.write('four')
  await slow.close()
  assert.match(patient.text, /\nfour\n$/)
  await sink.close()
})
