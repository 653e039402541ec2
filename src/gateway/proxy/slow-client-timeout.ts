// Limits the time for a client to read a chunk of a response. A client that never reads would occupy a slot forever.

import type { Socket } from 'node:net'
import type { Exchange } from '../../serving/exchange.ts'
import type { Forwarding } from './upstream-request.ts'

export type ReadTimeout = {
  /** Call when the client must read before it gets more. */
  start(): void
  /** Call when the client has read. */
  clear(): void
}

/** Streams have their own limits, and clients may read them slowly. */
const none: ReadTimeout = { start: () => {}, clear: () => {} }

/** `late`: called if the client takes too long for one chunk of about 64 KiB. */
export function openReadTimeout({ exchange, route, timeouts }: Forwarding, late: () => void): ReadTimeout {
  if (route.isLong) return none
  let timer: NodeJS.Timeout | undefined
  const clear = () => {
    clearTimeout(timer)
    timer = undefined
  }
  const wait = () => {
    const isItsTurn = !isPipelined(exchange)
    timer = setTimeout(() => (isItsTurn ? late() : wait()), timeouts.take).unref()
  }
  exchange.onClosed(clear)
  return {
    start() {
      if (!exchange.closed && !timer) wait()
    },
    clear,
  }
}

/** Number of open streams on an HTTP/1.1 connection. */
const streams = new WeakMap<Socket, number>()

/** Counts a stream. Responses behind it may have to wait forever. */
export function countStream({ exchange, route }: Forwarding): void {
  const { socket, httpVersionMajor } = exchange.request
  if (!route.isLong || httpVersionMajor !== 1) return
  const add = (by: number) => void streams.set(socket, (streams.get(socket) ?? 0) + by)
  add(1)
  exchange.onClosed(() => add(-1))
}

/** A pipelined response behind another one cannot be read yet, and the earlier ones have their own limits. */
const isPipelined = ({ request, response }: Exchange) =>
  request.httpVersionMajor === 1 && response.socket === null && !streams.get(request.socket)
