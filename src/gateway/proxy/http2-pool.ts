// Pools HTTP/2 connections to a cluster, so that watches share connections instead of opening one each.

import { type ClientHttp2Session, type ClientHttp2Stream, constants, type OutgoingHttpHeaders } from 'node:http2'
import type { Call, ResponseHandler } from '../../transport/upstream.ts'
import { type ConnectHttp2, type Opened, openHttp2, startPings } from './http2-connect.ts'
import { handleResponse } from './http2-stream.ts'

/** A slot for one stream on an open connection. */
export interface StreamSlot {
  /** Throws if HTTP/2 cannot send the headers, and releases the slot. */
  send(headers: OutgoingHttpHeaders, handler: ResponseHandler): Call
  /** Releases an unused slot. */
  release(): void
}

export type AcquireOptions = {
  readonly server: string
  /** Milliseconds for connecting. */
  readonly connectWithin: number
  /** Requires a new connection, because the existing ones are dead. */
  readonly isFresh: boolean
  /** Aborted when the pool must close its connections. */
  readonly retired?: AbortSignal | undefined
  /** Whether the client has disconnected. */
  readonly isGone?: (() => boolean) | undefined
  /** Milliseconds between pings. A connection without data until the next ping is dead. */
  readonly pingEvery?: number | undefined
}

const idleFor = 60_000
/** Attempts whose connections closed right after opening. After that, the pool uses HTTP/1.1. */
const maxFailedAttempts = 2
/** The cluster may allow fewer. Not more, because all streams end with their connection. */
const maxStreams = 250
/** Some servers treat many aborted streams as an attack, and close the connection with all streams. */
const maxAborted = 500
const defaultPingInterval = 20_000
/** For all streams together. Each stream also has its own window of 64 KiB, so that a slow reader does not delay the others. */
const window = 4 * 1024 * 1024

type Pool = {
  readonly connections: Set<SharedConnection>
  /** Resolves with undefined if there is no connection, or it is closed already. */
  opening: Promise<SharedConnection | undefined> | undefined
  /** The cluster does not support HTTP/2. */
  isPlain: boolean
  isRetired: boolean
}

/** Connections by their credentials: another identity towards the cluster gets its own connections. */
const pools = new WeakMap<ConnectHttp2, Pool>()

/** undefined: the cluster does not support HTTP/2, or closes such connections. Rejects if it is unreachable. */
export async function acquireStream(connect: ConnectHttp2, options: AcquireOptions): Promise<StreamSlot | undefined> {
  const pool = poolOf(connect, options.retired)
  let mayUse = !options.isFresh
  for (let failedAttempts = 0; failedAttempts < maxFailedAttempts; ) {
    if (pool.isPlain || pool.isRetired || options.isGone?.()) return undefined
    if (mayUse) for (const one of pool.connections) if (one.hasFreeStream) return one.take()
    mayUse = true
    pool.opening ??= add(pool, connect, options).finally(() => {
      pool.opening = undefined
    })
    const opened = await pool.opening
    if (options.isFresh && opened?.hasFreeStream) return opened.take()
    // A new connection that other requests have filled is not a failed attempt.
    if (!opened?.hasFreeStream && !opened?.streams) failedAttempts++
  }
  return undefined
}

function poolOf(connect: ConnectHttp2, retired: AbortSignal | undefined): Pool {
  const known = pools.get(connect)
  if (known) return known
  const isRetired = retired?.aborted === true
  const pool: Pool = { connections: new Set(), opening: undefined, isPlain: false, isRetired }
  pools.set(connect, pool)
  retired?.addEventListener('abort', () => {
    pool.isRetired = true
    for (const one of pool.connections) one.retire()
  })
  return pool
}

async function add(pool: Pool, connect: ConnectHttp2, options: AcquireOptions): Promise<SharedConnection | undefined> {
  const opened = await openHttp2(connect, options)
  if (!opened) pool.isPlain = true
  else if (opened.session.closed || opened.session.destroyed) opened.socket.destroy()
  else {
    const one = new SharedConnection(opened, pool, options.pingEvery)
    pool.connections.add(one)
    return one
  }
  return undefined
}

class SharedConnection {
  readonly session: ClientHttp2Session
  readonly pool: Pool
  streams = 0
  isUsed = false
  isOver = false
  aborted = 0
  lastSeen = Number.POSITIVE_INFINITY
  timer: NodeJS.Timeout | undefined

  constructor(opened: Opened, pool: Pool, pingEvery = defaultPingInterval) {
    const { session } = opened
    this.session = session
    this.pool = pool
    this.isOver = pool.isRetired
    session.setLocalWindowSize(window)
    startPings(opened, pingEvery)
    session.on('goaway', (_, last = 0) => {
      this.lastSeen = Math.min(this.lastSeen, last)
    })
    session.on('close', () => {
      clearTimeout(this.timer)
      pool.connections.delete(this)
    })
    this.rest()
  }

  get hasFreeStream(): boolean {
    const { closed, destroyed, remoteSettings } = this.session
    if (this.isOver || closed || destroyed) return false
    return this.streams < Math.min(maxStreams, remoteSettings.maxConcurrentStreams ?? maxStreams)
  }

  take(): StreamSlot {
    this.streams++
    clearTimeout(this.timer)
    this.session.ref()
    return { send: (headers, handler) => this.send(headers, handler), release: () => this.release() }
  }

  release(): void {
    this.streams--
    if (this.streams === 0) this.rest()
  }

  /** The connection is idle. */
  rest(): void {
    if (this.isOver) return void this.session.close()
    this.session.unref()
    this.timer = setTimeout(() => this.session.close(), idleFor).unref()
  }

  /** Streams in flight may finish. */
  retire(): void {
    this.isOver = true
    if (this.streams === 0) this.session.close()
  }

  send(headers: OutgoingHttpHeaders, handler: ResponseHandler): Call {
    const isReused = this.isUsed
    this.isUsed = true
    let stream: ClientHttp2Stream
    try {
      stream = this.session.request(headers, { endStream: true })
    } catch (error) {
      this.release()
      throw error
    }
    const answer = handleResponse(stream, handler, { isReused, lastSeen: () => this.lastSeen })
    stream.once('close', () => {
      // A connection that refused one stream will refuse the next. Its streams may finish, and it gets no new ones.
      if (stream.rstCode === constants.NGHTTP2_REFUSED_STREAM) this.isOver = true
      this.release()
    })
    return {
      pause: () => void (answer.isWanted && stream.pause()),
      resume: () => void (answer.isWanted && stream.resume()),
      drop: () => {
        if (!answer.isWanted) return
        answer.isWanted = false
        if (++this.aborted > maxAborted) this.isOver = true
        stream.close(constants.NGHTTP2_CANCEL)
        stream.destroy()
      },
    }
  }
}
