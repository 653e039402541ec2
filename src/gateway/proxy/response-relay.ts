// The answer of a cluster on its way to the client, piece by piece and no faster than it is taken. proxy.ts opens it.

import { breakOff } from '../../serving/abort-response.ts'
import type { Response } from '../../serving/exchange.ts'
import type { Call, ResponseHead } from '../../transport/upstream.ts'
import { answerHeaders } from './headers.ts'
import { openPace } from './slow-client-timeout.ts'
import type { Forwarding } from './upstream-request.ts'
import { isInLines } from './watch-error-event.ts'

/** An answer that has begun. */
export type Sent = {
  readonly status: number
  /** Hands it on to the client. */
  pass(): Promise<void>
  /** Nobody wants it. */
  drop(): void
}

const short = 16 * 1024

/** It comes piece by piece. */
export type Passing = Sent & { data(chunk: Buffer): void; end(): void; broken(): void }

/** Aborts the client's response if the cluster aborts its own: a partial response must not look complete. */
export function openPassing(forwarding: Forwarding, head: ResponseHead, call: Call): Passing {
  const { response } = forwarding.exchange
  let isPassing = false
  let isHeldBack = false
  /** Whether what was sent ends with a line. */
  let isLine = true
  /** The data that arrived with the headers; all of a small response. */
  let waiting: Buffer[] = []
  let state: 'open' | 'whole' | 'broken' = 'open'
  let done: () => void = () => {}
  const pace = openPace(forwarding, () => {
    breakOff(response)
    call.drop()
    done()
  })
  const go = () => {
    isHeldBack = false
    pace.took()
    call.resume()
  }
  const data = (chunk: Buffer) => {
    if (!isPassing) return void waiting.push(chunk)
    isLine = chunk.at(-1) === 10
    if (response.write(chunk) || isHeldBack) return
    isHeldBack = true
    pace.waits()
    call.pause()
    response.once('drain', go)
  }
  if (isInLines(forwarding.route, head))
    forwarding.parting.say = line => {
      // Not possible behind another response on the same connection, or if the client does not read.
      if (!isPassing || state !== 'open' || !isLine || isHeldBack || !response.socket) return false
      state = 'whole'
      call.drop()
      response.end(line)
      return true
    }
  return {
    status: head.status,
    drop: () => call.drop(),
    data,
    end() {
      state = 'whole'
      if (!isPassing) return
      response.end()
      pace.waits()
    },
    broken() {
      if (isPassing && state === 'open') breakOff(response)
      if (state === 'open') state = 'broken'
      done()
    },
    pass() {
      if (state === 'broken') breakOff(response)
      else begin(forwarding, head)
      isPassing = true
      const first = waiting.length > 1 ? Buffer.concat(waiting) : waiting[0]
      waiting = []
      if (state === 'whole') endWith(response, first)
      else if (first) data(first)
      if (state === 'whole') pace.waits()
      return new Promise(resolve => {
        done = resolve
        forwarding.exchange.onClosed(resolve)
      })
    },
  }
}

/** A short text goes out in one piece with the head; bytes would be one more. */
function endWith(response: Response, body: Buffer | undefined): void {
  if (body && body.length <= short) response.end(body.toString('latin1'), 'latin1')
  else response.end(body)
}

function begin({ exchange, route, started }: Forwarding, { status, rawHeaders, connection }: ResponseHead): void {
  const { response, auditId } = exchange
  response.writeHead(status, answerHeaders(auditId, rawHeaders, connection))
  if (!route.isLong) return
  response.flushHeaders()
  started(status)
}
