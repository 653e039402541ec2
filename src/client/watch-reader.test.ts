// The watch reader: chunk boundaries, invalid lines, and every way to end.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Status } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import type { Watch, WatchEvent } from '../api/resources.ts'
import { readWatch } from './watch-reader.ts'

const kind = { kind: 'Team', apiVersion: 'x/v1' } as Kind
const encoder = new TextEncoder()
const event = (type: string, name: string, resourceVersion: string) =>
  `${JSON.stringify({ type, object: { kind: 'Team', metadata: { name, resourceVersion } } })}\n`

function streamOf(chunks: readonly Uint8Array[], end: 'close' | 'stay' | 'break' = 'close') {
  let cancelled = false
  const queue = [...chunks]
  const stream = new ReadableStream<Uint8Array>({
    pull(controller) {
      const chunk = queue.shift()
      if (chunk) controller.enqueue(chunk)
      else if (end === 'close') controller.close()
      else if (end === 'break') controller.error(new Error('connection reset'))
      else return new Promise(() => {})
    },
    cancel() {
      cancelled = true
    },
  })
  return { stream, isCancelled: () => cancelled }
}

async function all(watch: Watch): Promise<WatchEvent[]> {
  const found: WatchEvent[] = []
  for (let events = await watch.next(); events; events = await watch.next()) found.push(...events)
  return found
}

const read = (stream: ReadableStream<Uint8Array> | null, longestLine?: number) =>
  readWatch(stream, { kind, from: '7', abort: () => {}, ...(longestLine ? { longestLine } : {}) })

test('events arrive whole and in order, wherever the chunks end', async () => {
  const names = fc.array(fc.string({ unit: 'binary', maxLength: 8 }), { maxLength: 6 })
  await fc.assert(
    fc.asyncProperty(
      names,
      fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 20 }),
      async (said, sizes) => {
        const text = encoder.encode(said.map((name, at) => event('ADDED', name, String(at))).join('\n'))
        const chunks: Uint8Array[] = []
        for (let at = 0, turn = 0; at < text.length; turn++) {
          const size = sizes[turn % sizes.length] as number
          chunks.push(text.subarray(at, at + size))
          at += size
        }
        const found = await all(read(streamOf(chunks).stream))
        assert.deepEqual(
          found.map(({ document }) => document.object.metadata.name),
          // UTF-8 encoding replaces lone surrogates.
          said.map(name => JSON.parse(new TextDecoder().decode(encoder.encode(JSON.stringify(name))))),
        )
        for (const { line } of found) assert.equal(line.at(-1), 10)
      },
    ),
    { numRuns: 2000 },
  )
})

test('next returns all events of a chunk, and at least one', async () => {
  const chunk = encoder.encode(
    event('ADDED', 'a', '1') + event('MODIFIED', 'a', '2') + event('DELETED', 'a', '3').slice(0, 20),
  )
  const watch = read(
    streamOf([encoder.encode('\n'), chunk, encoder.encode(event('DELETED', 'a', '3').slice(20))]).stream,
  )
  assert.deepEqual(
    (await watch.next())?.map(one => one.type),
    ['ADDED', 'MODIFIED'],
  )
  assert.deepEqual(
    (await watch.next())?.map(one => one.type),
    ['DELETED'],
  )
  assert.equal(await watch.next(), undefined)
})

test('a bookmark has the last version, initially the requested one', async () => {
  const watch = read(streamOf([encoder.encode(event('ADDED', 'a', '12'))]).stream)
  assert.equal(watch.bookmark().document.object.metadata.resourceVersion, '7')
  await watch.next()
  assert.deepEqual(watch.bookmark().document.object, {
    kind: 'Team',
    apiVersion: 'x/v1',
    metadata: { resourceVersion: '12' },
  })
})

test('a line that is too long or not an event ends the watch with ERROR', async () => {
  const long = streamOf([encoder.encode('x'.repeat(60)), encoder.encode('x'.repeat(60))], 'stay')
  for (const watch of [
    read(long.stream, 100),
    read(streamOf([encoder.encode('not json\n')], 'stay').stream),
    read(streamOf([encoder.encode('{"type":"NEWS","object":{}}\n')], 'stay').stream),
    read(streamOf([encoder.encode('{"type":"ADDED"}\n')], 'stay').stream),
  ]) {
    const [only, ...more] = (await watch.next()) ?? []
    assert.equal(only?.type, 'ERROR')
    assert.equal((only?.document.object as unknown as Status | undefined)?.code, 500)
    assert.deepEqual(more, [])
    assert.equal(await watch.next(), undefined)
  }
  assert.ok(long.isCancelled())
})

test('a lost connection, an incomplete line and a response without a body end the watch', async () => {
  const whole = encoder.encode(event('ADDED', 'a', '1'))
  const half = encoder.encode('{"type":"ADD')
  assert.equal((await all(read(streamOf([whole, half]).stream))).length, 1)
  assert.equal((await all(read(streamOf([whole], 'break').stream))).length, 1)
  assert.deepEqual(await all(read(null)), [])
})

test('stop aborts the request; pending and later calls of next return undefined', async () => {
  let aborted = 0
  const { stream, isCancelled } = streamOf([], 'stay')
  const watch = readWatch(stream, { kind, from: '0', abort: () => aborted++ })
  const waiting = watch.next()
  watch.stop()
  watch.stop()
  assert.equal(await waiting, undefined)
  assert.equal(await watch.next(), undefined)
  assert.equal(aborted, 1)
  assert.ok(isCancelled())
})
