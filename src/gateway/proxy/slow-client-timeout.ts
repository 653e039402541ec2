// Limits the time for a client to read a chunk of a response. A client that never reads would occupy a slot forever.

import type { Socket } from 'node:net'
import type { Exchange } from '../../serving/exchange.ts'
import type { Forwarding } from './upstream-request.ts'

export type ReadTimeout = {
  /** The client has to take something before it is given more. */
  start(): void
  /** It did. */
  clear(): void
}

/** Streams are counted apart, and may be followed as slowly as anybody likes. */
const none: ReadTimeout = { start: () => {}, clear: () => {} }

/** `late`: it took too long for one piece, of some 64 KiB. */
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

/** How many streams are under way on a connection by HTTP/1.1. */
const streams = new WeakMap<Socket, number>()

/** Nothing waits in line behind it for long: it may never end. */
export function countStream({ exchange, route }: Forwarding): void {
  const { socket, httpVersionMajor } = exchange.request
  if (!route.isLong || httpVersionMajor !== 1) return
  const add = (by: number) => void streams.set(socket, (streams.get(socket) ?? 0) + by)
  add(1)
  exchange.onClosed(() => add(-1))
}

/** An answer that waits behind another one of its connection (pipelining) cannot be taken yet, and those before it have a pace of their own. */
const isPipelined = ({ request, response }: Exchange) =>
  request.httpVersionMajor === 1 && response.socket === null && !streams.get(request.socket)
