// Relays the response of a cluster to the client in chunks, no faster than the client reads.

import { abortResponse } from '../../serving/abort-response.ts'
import type { Response } from '../../serving/exchange.ts'
import type { Call, ResponseHead } from '../../transport/upstream.ts'
import { responseHeaders } from './headers.ts'
import { openReadTimeout } from './slow-client-timeout.ts'
import type { Forwarding } from './upstream-request.ts'
import { isJsonWatch } from './watch-error-event.ts'

/** A response that has started. */
export type UpstreamResponse = {
  readonly status: number
  /** Relays it to the client. */
  pass(): Promise<void>
  /** Discards it. */
  drop(): void
}

const short = 16 * 1024

/** Receives the response in chunks. */
export type ResponseRelay = UpstreamResponse & { data(chunk: Buffer): void; end(): void; broken(): void }

/** Aborts the client's response if the cluster aborts its own: a partial response must not look complete. */
export function openResponseRelay(forwarding: Forwarding, head: ResponseHead, call: Call): ResponseRelay {
  const { response } = forwarding.exchange
  let isRelaying = false
  let isPaused = false
  /** Whether the relayed data ends with a complete line. */
  let isLine = true
  /** The data that arrived with the headers; all of a small response. */
  let buffered: Buffer[] = []
  let state: 'open' | 'whole' | 'broken' = 'open'
  let done: () => void = () => {}
  const readTimeout = openReadTimeout(forwarding, () => {
    abortResponse(response)
    call.drop()
    done()
  })
  const resume = () => {
    isPaused = false
    readTimeout.clear()
    call.resume()
  }
  const data = (chunk: Buffer) => {
    if (!isRelaying) return void buffered.push(chunk)
    isLine = chunk.at(-1) === 10
    if (response.write(chunk) || isPaused) return
    isPaused = true
    readTimeout.start()
    call.pause()
    response.once('drain', resume)
  }
  if (isJsonWatch(forwarding.route, head))
    forwarding.watchError.endWith = line => {
      // Not possible behind another response on the same connection, or if the client does not read.
      if (!isRelaying || state !== 'open' || !isLine || isPaused || !response.socket) return false
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
      if (!isRelaying) return
      response.end()
      readTimeout.start()
    },
    broken() {
      if (isRelaying && state === 'open') abortResponse(response)
      if (state === 'open') state = 'broken'
      done()
    },
    pass() {
      if (state === 'broken') abortResponse(response)
      else begin(forwarding, head)
      isRelaying = true
      const first = buffered.length > 1 ? Buffer.concat(buffered) : buffered[0]
      buffered = []
      if (state === 'whole') endWith(response, first)
      else if (first) data(first)
      if (state === 'whole') readTimeout.start()
      return new Promise(resolve => {
        done = resolve
        forwarding.exchange.onClosed(resolve)
      })
    },
  }
}

/** Sends a short text together with the headers in one write; a buffer would need a second one. */
function endWith(response: Response, body: Buffer | undefined): void {
  if (body && body.length <= short) response.end(body.toString('latin1'), 'latin1')
  else response.end(body)
}

function begin({ exchange, route, started }: Forwarding, { status, rawHeaders, connection }: ResponseHead): void {
  const { response, auditId } = exchange
  response.writeHead(status, responseHeaders(auditId, rawHeaders, connection))
  if (!route.isLong) return
  response.flushHeaders()
  started(status)
}
