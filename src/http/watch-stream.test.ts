// A watch written to a real socket: how much of it an unread client makes the server hold, and when bookmarks are true.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { test } from 'node:test'
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
function bigWatch(): Watch {
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
  }
}

async function serve(options: Partial<StreamOptions>) {
  const held: { response?: Response; over?: Promise<void> } = {}
  const listener = await listenHttp({ host: '127.0.0.1', port: 0 }, (incoming, response) => {
    held.response = response
    held.over = streamWatch(
      openExchange(incoming, response, () => 'id'),
      bigWatch(),
      {
        kind,
        view: plain,
        include: 'Metadata',
        bookmarks: false,
        timeout: 60_000,
        now: Date.now,
        crowd: () => 1,
        ending: new AbortController().signal,
        ...options,
      },
    )
  })
  const call = request(listener.url).end()
  const [answer] = (await once(call, 'response')) as [IncomingMessage]
  return { held, answer, close: () => listener.close(0) }
}

async function linesOf(answer: IncomingMessage): Promise<{ type: string; object: { metadata: { name: string } } }[]> {
  let text = ''
  for await (const chunk of answer.setEncoding('utf8')) text += chunk
  return text
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line))
}

test('of a watch that nobody reads the server holds about a mebibyte, and who reads on misses nothing', async () => {
  const { held, answer, close } = await serve({ timeout: 300 })
  await wait(500)
  assert.ok((held.response?.writableLength ?? 0) < 2 * mebibyte, `it holds ${held.response?.writableLength} bytes`)
  const lines = await linesOf(answer)
  assert.deepEqual(
    lines.map(({ object }) => object.metadata.name),
    Array.from({ length: count }, (_, n) => `n${n}`),
  )
  await held.over
  await close()
})

test('a bookmark is not sent before all that it vouches for', async () => {
  const { held, answer, close } = await serve({ timeout: 200, bookmarks: true })
  await wait(400)
  const lines = await linesOf(answer)
  assert.equal(lines.length, count)
  assert.ok(lines.every(({ type }) => type === 'ADDED'))
  await held.over
  await close()
})

test('a client that goes while it has not read ends the watch at once', async () => {
  const { held, answer, close } = await serve({})
  await wait(100)
  answer.destroy()
  await held.over
  await close()
})

test('a client that takes nothing for too long is cut loose; one that takes a little now and then is not', async () => {
  const silent = await serve({ patience: 200 })
  await silent.held.over
  assert.ok(silent.held.response?.destroyed, 'what was held for it is let go')
  await silent.close()
  const slow = await serve({ patience: 2000, timeout: 500 })
  assert.equal((await linesOf(slow.answer)).length, count)
  await slow.held.over
  await slow.close()
})
