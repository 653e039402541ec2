// Forwards a request to a cluster and streams the response back, with back pressure and safe retries.

import type { Call, ResponseHandler } from '../../transport/upstream.ts'
import { type Ready, redirected, refusedUs, tooLate } from './backend.ts'
import { acquireStream } from './http2-pool.ts'
import { openResponseRelay, type ResponseRelay, type UpstreamResponse } from './response-relay.ts'
import { countStream } from './slow-client-timeout.ts'
import { UpstreamError, upstreamError } from './upstream-error.ts'
import { bodyOf, type Forwarding, hasBody, readyOf, requestOf, streamHeadersOf } from './upstream-request.ts'

/** Resolves when the response is complete or the client has disconnected. Rejects with an ApiError before anything was sent. */
export async function forward(forwarding: Forwarding): Promise<void> {
  const { exchange } = forwarding
  countStream(forwarding)
  const sent = await answerOf(forwarding)
  if (sent === undefined) return // the client disconnected
  if (exchange.response.headersSent) return sent.drop() // the request was ended with an error
  await sent.pass()
  if (!exchange.request.complete) exchange.request.resume() // answered early: discards the rest of the body
}

/** A cluster that is shutting down can refuse requests on several connections. After that, HTTP/1.1 is used. */
const maxRefused = 3

/**
 * Retries once if that is safe: on a connection that had closed, and with fresh credentials. A request that the cluster
 * reports as unprocessed is retried a few times.
 */
async function answerOf(forwarding: Forwarding): Promise<UpstreamResponse | undefined> {
  const { exchange, backend } = forwarding
  const isRepeatable = exchange.method === 'GET' && !hasBody(exchange.request)
  let isFresh = false
  let isAgain = false
  let refusal: Error | undefined
  for (let [attempt, refused] = [0, 0]; ; attempt++) {
    const mayRepeat = isRepeatable && attempt === refused
    const sent = await send(forwarding, { isFresh, isAlone: refused === maxRefused, isAgain }).catch(error => {
      if (!(error instanceof UpstreamError)) throw error
      isFresh = error.isStale
      if (error.isRefused && isRepeatable && refused < maxRefused) {
        refused++
        refusal = error.reported
        return undefined
      }
      if (mayRepeat && error.isStale) return undefined
      throw refusal ?? error.reported
    })
    if (sent === 'gone') return undefined
    if (!sent) continue
    const { status } = sent
    if (status === 401) {
      sent.drop()
      if ((backend.refuse() || (backend.identify && !isAgain)) && mayRepeat) {
        isAgain = true
        continue
      }
      throw refusedUs(backend)
    }
    if (status >= 300 && status < 400 && status !== 304) {
      sent.drop()
      throw redirected(backend)
    }
    return sent
  }
}

/** `isAlone`: not on a shared connection. `isAgain`: after the backend rejected the credentials. */
type Sending = { readonly isFresh: boolean; readonly isAlone: boolean; readonly isAgain: boolean }

async function send(
  forwarding: Forwarding,
  { isFresh, isAlone, isAgain }: Sending,
): Promise<UpstreamResponse | 'gone'> {
  const ready = await readyOf(forwarding, isAgain)
  const { exchange, route } = forwarding
  if (exchange.closed) return 'gone'
  const mayShare = route.isLong && !isAlone && exchange.request.method === 'GET' && !hasBody(exchange.request)
  const shared = mayShare ? await share(forwarding, ready, isFresh) : undefined
  if (shared === 'gone') return shared
  return receive(forwarding, shared ?? overHttp1(forwarding, ready, isFresh))
}

type Begin = (handler: ResponseHandler) => Call

/** A stream gets a new connection, which shows that the cluster is reachable. On a dead one, the kernel retries for a quarter of an hour. */
function overHttp1(forwarding: Forwarding, ready: Ready, isFresh: boolean): Begin {
  const { exchange, route } = forwarding
  const request = requestOf(forwarding, ready)
  return handler => {
    if (isFresh && !route.isLong) ready.upstream.renew()
    const body = hasBody(exchange.request) ? bodyOf(exchange.request) : undefined
    return ready.upstream.send({ ...request, body, isAlone: route.isLong }, handler)
  }
}

/** Long-running requests share a connection if possible, because connections are most of their cost. undefined: not possible. */
async function share(forwarding: Forwarding, ready: Ready, isFresh: boolean): Promise<Begin | 'gone' | undefined> {
  const { exchange, backend, timeouts } = forwarding
  if (!ready.connectHttp2) return undefined
  const headers = streamHeadersOf(forwarding, ready)
  if (!headers) return undefined
  const isGone = () => exchange.closed || exchange.response.headersSent
  const wanted = { server: backend.server, connectWithin: timeouts.connect, isFresh, retired: ready.retired }
  const slot = await acquireStream(ready.connectHttp2, { ...wanted, isGone }).catch(error => {
    throw upstreamError(forwarding, error as Error, { isStale: false, isConnected: false })
  })
  if (isGone()) {
    slot?.release()
    return 'gone'
  }
  if (!slot) return undefined
  return handler => {
    try {
      return slot.send(headers, handler)
    } catch {
      // HTTP/2 allows some headers only once that a client may repeat.
      return overHttp1(forwarding, ready, isFresh)(handler)
    }
  }
}

function receive(forwarding: Forwarding, begin: Begin): Promise<UpstreamResponse | 'gone'> {
  const { exchange, backend, route, timeouts } = forwarding
  return new Promise((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined
    let relay: ResponseRelay | undefined
    const call = begin({
      head(head) {
        clearTimeout(timer)
        relay = openResponseRelay(forwarding, head, call)
        resolve(relay)
      },
      data: chunk => relay?.data(chunk),
      end: () => relay?.end(),
      failed(error, how) {
        clearTimeout(timer)
        if (relay) return relay.broken()
        reject(upstreamError(forwarding, error, how))
      },
    })
    const late = () => {
      call.drop()
      reject(new UpstreamError(tooLate(backend, timeouts.answer)))
    }
    if (!route.isLong) timer = setTimeout(late, timeouts.answer)
    exchange.onClosed(() => {
      clearTimeout(timer)
      call.drop()
      if (relay) relay.broken()
      else resolve('gone')
    })
  })
}
