// Connections to one cluster, kept and used again: a request without a body goes out on one, and its answer comes back. forward.ts asks.

import type { Socket } from 'node:net'
import { type AnswerReader, type Head, openAnswerReader } from './answer-reader.ts'

/** Opens a connection; it may still be connecting, and says `connect` or `secureConnect` when it is not any more. */
export type Connect = () => Socket

export type Asked = {
  readonly method: string
  /** The request as it goes out, with its last empty line. */
  readonly text: string
  /** Milliseconds until a connection. */
  readonly connectWithin: number
  /** On a new connection: one that was kept turned out to be dead, and those kept for longer are no better. */
  readonly isFresh?: boolean
  /**
   * It may wait for hours. On a new connection as well, which shows that the cluster is there: what is sent on one that has died unseen
   * is sent again and again by the kernel, for a quarter of an hour, before that says so.
   */
  readonly isLong?: boolean
  /** Aborted when no connection is to be kept any more. */
  readonly retired?: AbortSignal | undefined
}

/** Who hears of an answer. After `end` or `failed` nothing more comes. */
export type Listening = {
  head(head: Head): void
  data(chunk: Buffer): void
  end(): void
  failed(error: Error, how: How): void
}

export type How = {
  /** On a connection that had been used before, and nothing came. */
  readonly isStale: boolean
  /** It may have been carried out. */
  readonly isConnected: boolean
  /** The cluster said that it did not look at it. */
  readonly isRefused?: boolean
}

/** A request under way. */
export interface Call {
  pause(): void
  resume(): void
  /** Ends it, and the connection with it. */
  drop(): void
}

const idleFor = 60_000
const mostIdle = 256

/** A class, against the house's habit: a thousand of them are held at once, and a listener each for all requests is enough. */
class Connection {
  readonly socket: Socket
  readonly pool: Pool
  listening: Listening | undefined
  reader: AnswerReader | undefined
  isConnected = false
  isUsed = false
  hasAnswered = false
  error: Error | undefined
  timer: NodeJS.Timeout | undefined

  constructor(socket: Socket, pool: Pool) {
    this.socket = socket
    this.pool = pool
    socket.setNoDelay(true)
    socket.setKeepAlive(true, 30_000)
    socket.once('encrypted' in socket ? 'secureConnect' : 'connect', () => {
      this.isConnected = true
      clearTimeout(this.timer)
    })
    socket.on('data', chunk => this.take(chunk as Buffer))
    socket.on('error', error => {
      this.error ??= error
    })
    socket.on('timeout', () => {
      if (!this.listening) socket.destroy()
    })
    socket.on('close', () => this.closed())
  }

  ask({ method, text, connectWithin }: Asked, listening: Listening): void {
    const { socket } = this
    this.listening = listening
    this.hasAnswered = false
    this.reader = openAnswerReader(method, {
      head: head => listening.head(head),
      data: chunk => listening.data(chunk),
      end: isReusable => this.done(isReusable),
    })
    if (!this.isConnected) {
      const late = Object.assign(new Error('it did not answer in time'), { code: 'ETIMEDOUT' })
      this.timer = setTimeout(() => socket.destroy(late), connectWithin)
    }
    socket.write(text, 'latin1')
  }

  take(chunk: Buffer): void {
    if (!this.listening) return void this.socket.destroy() // nobody asked for it
    this.hasAnswered = true
    try {
      this.reader?.take(chunk)
    } catch (error) {
      this.error = error as Error
      this.socket.destroy()
    }
  }

  done(isReusable: boolean): void {
    const { listening, socket, pool } = this
    this.listening = undefined
    this.reader = undefined
    this.isUsed = true
    if (isReusable && !pool.isRetired && pool.idle.length < mostIdle && !socket.destroyed) {
      socket.resume()
      socket.setTimeout(idleFor)
      socket.unref()
      pool.idle.push(this)
    } else socket.destroy()
    listening?.end()
  }

  closed(): void {
    clearTimeout(this.timer)
    const { idle } = this.pool
    const at = idle.indexOf(this)
    if (at !== -1) idle.splice(at, 1)
    const { listening, isConnected, isUsed, hasAnswered } = this
    if (!listening) return
    // What has no length ends with the connection, but only where the cluster ended it.
    if (!this.error && this.socket.readableEnded && this.reader?.close()) return
    this.listening = undefined
    const error = this.error ?? Object.assign(new Error('the connection was broken off'), { code: 'ECONNRESET' })
    listening.failed(error, { isStale: isUsed && !hasAnswered, isConnected })
  }
}

type Pool = { readonly idle: Connection[]; isRetired: boolean }

/** By how they are made: who is somebody else to the cluster has connections of its own. */
const pools = new WeakMap<Connect, Pool>()

function poolOf(connect: Connect, retired: AbortSignal | undefined): Pool {
  const known = pools.get(connect)
  if (known) return known
  const pool: Pool = { idle: [], isRetired: retired?.aborted === true }
  pools.set(connect, pool)
  // Those that are used end with what they are used for.
  retired?.addEventListener('abort', () => {
    pool.isRetired = true
    endIdle(pool)
  })
  return pool
}

const endIdle = ({ idle }: Pool) => {
  for (const { socket } of idle.splice(0)) socket.destroy()
}

export function ask(connect: Connect, asked: Asked, listening: Listening): Call {
  const pool = poolOf(connect, asked.retired)
  const { idle } = pool
  if (asked.isFresh && !asked.isLong) endIdle(pool)
  let connection = asked.isLong ? undefined : idle.pop() // the one that was used last: the others may grow old
  while (connection && !isWhole(connection.socket)) connection = idle.pop()
  if (connection) {
    connection.socket.setTimeout(0)
    connection.socket.ref()
  }
  const one = connection ?? new Connection(connect(), pool)
  one.ask(asked, listening)
  /** Otherwise the connection is somebody else's by now. */
  const isOurs = () => one.listening === listening
  return {
    pause: () => void (isOurs() && one.socket.pause()),
    resume: () => void (isOurs() && one.socket.resume()),
    drop() {
      if (!isOurs()) return
      one.listening = undefined
      one.socket.destroy()
    },
  }
}

const isWhole = ({ destroyed, readableEnded, writable }: Socket) => !destroyed && !readableEnded && writable
