// A watch written to a real socket: how much of it an unread client makes the server hold, and when bookmarks are true.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { defineKind } from '../api/kind.ts'
import { documentOf, type Watch, watchEvent } from '../api/resources.ts'
import { openExchange, type Response } from '../serving/exchange.ts'
import { listenHttp } from '../serving/listener.ts'
import { plain } from './negotiate.ts'
import { type StreamOptions, streamWatch } from './watch-stream.ts'

const kind = defineKind({
  kind: 'Thing',
  plural: 'things',
  singular: 'thing',
  namespaced: false,
  description: 'A thing.',
  sample: {},
})
const event = (type: 'ADDED' | 'BOOKMARK', name: string, size: number) =>
  watchEvent(
    type,
    documentOf({
      apiVersion: kind.apiVersion,
      kind: 'Thing',
      metadata: { name, annotations: { big: 'x'.repeat(size) } },
    }),
  )
const mebibyte = 1024 * 1024
const count = 256

/** 32 MiB in one batch, then nothing until it is stopped. */
function bigWatch(): Watch & { readonly stopped: Promise<undefined> } {
  let rest: ReturnType<typeof event>[] | undefined = Array.from({ length: count }, (_, n) =>
    event('ADDED', `n${n}`, mebibyte / 8),
  )
  let stop = () => {}
  const stopped = new Promise<undefined>(resolve => {
    stop = () => resolve(undefined)
  })
  return {
    async next() {
      const events = rest
      rest = undefined
      return events ?? (await stopped)
    },
    bookmark: () => event('BOOKMARK', 'mark', 0),
    stop: () => stop(),
    stopped,
  }
}

async function serve(context: TestContext, options: Partial<StreamOptions>) {
  const held: { response?: Response; over?: Promise<void> } = {}
  const watch = bigWatch()
  const listener = await listenHttp({ host: '127.0.0.1', port: 0 }, (incoming, response) => {
    held.response = response
    held.over = streamWatch(
      openExchange(incoming, response, () => 'id'),
      watch,
      {
        kind,
        view: plain,
        include: 'Metadata',
        bookmarks: false,
        timeout: 60_000,
        now: Date.now,
        lastActivity: () => undefined,
        crowd: () => 1,
        ending: new AbortController().signal,
        ...options,
      },
    )
  })
  context.after(() => listener.close(0))
  const call = request(listener.url).end()
  const [answer] = (await once(call, 'response')) as [IncomingMessage]
  return { held, answer, stopped: watch.stopped }
}

/** Until the buffers of both sides are full and the server waits for the client. */
async function blocked({ response }: { readonly response?: Response }): Promise<void> {
  for (let size = -1; !response?.writableNeedDrain || size !== response.writableLength; await wait(50))
    size = response?.writableLength ?? -1
}

async function linesOf(answer: IncomingMessage): Promise<{ type: string; object: { metadata: { name: string } } }[]> {
  let text = ''
  for await (const chunk of answer.setEncoding('utf8')) text += chunk
  return text
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line))
}

test('the server buffers about a mebibyte of an unread watch, and a client that resumes reading misses nothing', async context => {
  const { held, answer, stopped } = await serve(context, { timeout: 300 })
  await stopped
  await blocked(held)
  assert.ok((held.response?.writableLength ?? 0) < 2 * mebibyte, `it holds ${held.response?.writableLength} bytes`)
  const lines = await linesOf(answer)
  assert.deepEqual(
    lines.map(({ object }) => object.metadata.name),
    Array.from({ length: count }, (_, n) => `n${n}`),
  )
  await held.over
})

test('a bookmark is sent after all events it covers', async context => {
  const { held, answer, stopped } = await serve(context, { timeout: 200, bookmarks: true })
  await stopped
  const lines = await linesOf(answer)
  assert.equal(lines.length, count)
  assert.ok(lines.every(({ type }) => type === 'ADDED'))
  await held.over
})

test('a client that disconnects without reading ends the watch immediately', async context => {
  const { held, answer } = await serve(context, {})
  await blocked(held)
  answer.destroy()
  await held.over
})

test('a client that does not read for too long is disconnected; one that reads a little is not', async context => {
  const silent = await serve(context, { patience: 200 })
  await silent.held.over
  assert.ok(silent.held.response?.destroyed, 'what was held for it is let go')
  const slow = await serve(context, { patience: 20_000, timeout: 500 })
  assert.equal((await linesOf(slow.answer)).length, count)
  await slow.held.over
})
