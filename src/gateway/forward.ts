// Hands a request on to a cluster and its answer back, as they come: nothing is gathered, and nobody is sent more than they take.

import type { IncomingMessage } from 'node:http'
import type { Head } from './answer-reader.ts'
import { brokenOff, notReached, type Ready, redirected, refusedUs, tooLate } from './backend.ts'
import { ask, type Call, type Connect } from './connections.ts'
import { answerHeaders } from './headers.ts'
import { type Forwarding, hasBody, onTheWay, openRequest, readyOf, textOf } from './outgoing.ts'

/** Resolves when the answer is out, or the client is gone. Rejects with an ApiError before anything was sent. */
export async function forward(forwarding: Forwarding): Promise<void> {
  const { exchange } = forwarding
  const sent = await answerOf(forwarding)
  if (sent === undefined) return // the client left
  await sent.pass()
  if (!exchange.request.complete) exchange.request.resume() // answered early: what still comes is let go
}

/** Tries once more where that can do no harm: on a connection that had ended, and with fresh credentials. */
async function answerOf(forwarding: Forwarding): Promise<Sent | undefined> {
  const { exchange, backend } = forwarding
  const isRepeatable = exchange.method === 'GET' && !hasBody(exchange.request)
  for (let attempt = 0; ; attempt++) {
    const mayRepeat = isRepeatable && attempt === 0
    const sent = await send(forwarding).catch(error => {
      if (!(error instanceof Failed)) throw error
      if (mayRepeat && error.isStale) return undefined
      throw error.told
    })
    if (sent === 'gone') return undefined
    if (!sent) continue
    const { status } = sent
    if (status === 401) {
      sent.drop()
      if (backend.refuse() && mayRepeat) continue
      throw refusedUs(backend)
    }
    if (status >= 300 && status < 400 && status !== 304) {
      sent.drop()
      throw redirected(backend)
    }
    return sent
  }
}

/** An answer that has begun. */
type Sent = {
  readonly status: number
  /** Hands it on to the client. */
  pass(): Promise<void>
  /** Nobody wants it. */
  drop(): void
}

class Failed extends Error {
  readonly told: Error
  /** The connection had been used before, and nothing came of this request. */
  readonly isStale: boolean
  constructor(told: Error, isStale: boolean) {
    super(told.message)
    this.told = told
    this.isStale = isStale
  }
}

async function send(forwarding: Forwarding): Promise<Sent | 'gone'> {
  const ready = await readyOf(forwarding)
  const { connect } = ready
  if (forwarding.exchange.closed) return 'gone'
  return connect && !hasBody(forwarding.exchange.request)
    ? sendText(forwarding, ready, connect)
    : sendRequest(forwarding, ready)
}

/** Most requests have no body. They go out on connections of our own: Node's client takes three times as long for them. */
function sendText(forwarding: Forwarding, ready: Ready, connect: Connect): Promise<Sent | 'gone'> {
  const { exchange, backend, route, timeouts } = forwarding
  const text = textOf(forwarding, ready)
  return new Promise((resolve, reject) => {
    const late = () => {
      call.drop()
      reject(new Failed(tooLate(backend, timeouts.answer), false))
    }
    const timer = route.isLong ? undefined : setTimeout(late, timeouts.answer)
    let passing: Passing | undefined
    const call = ask(
      connect,
      { method: exchange.request.method ?? 'GET', text, connectWithin: timeouts.connect },
      {
        head(head) {
          clearTimeout(timer)
          passing = openPassing(forwarding, head, call)
          resolve(passing)
        },
        data: chunk => passing?.data(chunk),
        end: () => passing?.end(),
        failed(error, { isStale, isConnected }) {
          clearTimeout(timer)
          if (passing) return passing.broken()
          reject(new Failed(isConnected && !isStale ? brokenOff(backend, error) : notReached(backend, error), isStale))
        },
      },
    )
    exchange.onClosed(() => {
      clearTimeout(timer)
      call.drop()
      if (passing) passing.broken()
      else resolve('gone')
    })
  })
}

const short = 16 * 1024

type Passing = Sent & { data(chunk: Buffer): void; end(): void; broken(): void }

/** What a cluster breaks off is broken off for the client, too: half an answer must not look like a whole one. */
function openPassing(forwarding: Forwarding, head: Head, call: Call): Passing {
  const { response } = forwarding.exchange
  let isPassing = false
  /** What came together with the head: of a small answer all of it. */
  let waiting: Buffer | undefined
  let state: 'open' | 'whole' | 'broken' = 'open'
  let done: () => void = () => {}
  const go = () => {
    if (state !== 'broken') call.resume()
  }
  const data = (chunk: Buffer) => {
    if (!isPassing) waiting = waiting ? Buffer.concat([waiting, chunk]) : chunk
    else if (!response.write(chunk)) {
      call.pause()
      response.once('drain', go)
    }
  }
  return {
    status: head.status,
    drop: call.drop,
    data,
    end() {
      state = 'whole'
      if (isPassing) response.end()
    },
    broken() {
      if (isPassing && state === 'open') response.destroy()
      if (state === 'open') state = 'broken'
      done()
    },
    pass() {
      if (state === 'broken') response.destroy()
      else begin(forwarding, head)
      isPassing = true
      const first = waiting
      waiting = undefined
      // A short text goes out in one piece with the head; bytes would be one more.
      if (state === 'whole')
        if (first && first.length <= short) response.end(first.toString('latin1'), 'latin1')
        else response.end(first)
      else if (first) data(first)
      return new Promise(resolve => {
        done = resolve
        forwarding.exchange.onClosed(resolve)
      })
    },
  }
}

function begin({ exchange, route, started }: Forwarding, { status, rawHeaders, connection }: Head): void {
  const { response, auditId } = exchange
  response.writeHead(status, answerHeaders(auditId, rawHeaders, connection))
  if (!route.isLong) return
  response.flushHeaders()
  started(status)
}

/** With a body, or through a proxy. */
function sendRequest(forwarding: Forwarding, ready: Ready): Promise<Sent | 'gone'> {
  const { exchange, backend, route, timeouts } = forwarding
  const outgoing = openRequest(forwarding, ready)
  return new Promise((resolve, reject) => {
    const answered = onTheWay(outgoing, forwarding, {
      within: route.isLong ? undefined : timeouts.answer,
      late: () => reject(new Failed(tooLate(backend, timeouts.answer), false)),
      gone: () => resolve('gone'),
      failed(error, isConnected) {
        const isStale = outgoing.reusedSocket
        reject(new Failed(isConnected && !isStale ? brokenOff(backend, error) : notReached(backend, error), isStale))
      },
    })
    outgoing.on('response', (answer: IncomingMessage) => {
      answered()
      const drop = () => void outgoing.destroy()
      outgoing.on('error', () => exchange.response.destroy())
      resolve({ status: answer.statusCode ?? 502, drop, pass: () => passOn(forwarding, answer, drop) })
    })
    if (hasBody(exchange.request)) exchange.request.pipe(outgoing)
    else outgoing.end()
  })
}

function passOn(forwarding: Forwarding, answer: IncomingMessage, drop: () => void): Promise<void> {
  const { exchange } = forwarding
  const { statusCode = 502, rawHeaders, headers } = answer
  begin(forwarding, { status: statusCode, rawHeaders, connection: headers.connection })
  return new Promise(resolve => {
    exchange.onClosed(() => {
      if (!answer.readableEnded) drop()
      resolve()
    })
    answer.on('error', () => exchange.response.destroy())
    answer.pipe(exchange.response)
  })
}
