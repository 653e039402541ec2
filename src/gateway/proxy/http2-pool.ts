// Connections that the streams of one cluster share, by HTTP/2 where it speaks it: a watch is a stream and no connection. proxy.ts takes places.

import { type ClientHttp2Session, type ClientHttp2Stream, constants, type OutgoingHttpHeaders } from 'node:http2'
import type { Call, ResponseHandler } from '../../transport/upstream.ts'
import { listenForLife, type Opened, open, type Share } from './http2-connect.ts'
import { listenTo } from './http2-stream.ts'

/** For one stream, on a connection that is open. */
export interface Place {
  /** Throws where the headers cannot be said in HTTP/2; the place is given back then. */
  ask(headers: OutgoingHttpHeaders, listening: ResponseHandler): Call
  /** Not needed after all. */
  leave(): void
}

export type Wanted = {
  readonly server: string
  /** Milliseconds until a connection. */
  readonly connectWithin: number
  /** On a new connection: the others turned out to be dead. */
  readonly isFresh: boolean
  /** Aborted when the pool must close its connections. */
  readonly retired?: AbortSignal | undefined
  /** Nobody waits for it any more. */
  readonly isGone?: (() => boolean) | undefined
  /** Milliseconds between two questions whether the cluster is still there. One that does not answer until the next is gone. */
  readonly askEvery?: number | undefined
}

const idleFor = 60_000
/** Connections that closed right after they were opened. After some of them the pool uses HTTP/1.1. */
const mostInVain = 2
/** A cluster may allow fewer. All that share a connection end with it, so not more either. */
const mostStreams = 250
/** Some servers take many streams that are broken off for an attack, and end all that share the connection. */
const mostBrokenOff = 500
const usuallyAskEvery = 20_000
/** Of all streams together; each has 64 KiB of its own, so that one who reads slowly does not hold the others back. */
const window = 4 * 1024 * 1024

type Pool = {
  readonly connections: Set<Shared>
  /** undefined: there is none, or it is over already. */
  opening: Promise<Shared | undefined> | undefined
  /** The cluster does not speak HTTP/2. */
  isPlain: boolean
  isRetired: boolean
}

/** Connections by their credentials: another identity towards the cluster gets its own connections. */
const pools = new WeakMap<Share, Pool>()

/** undefined: the cluster does not support HTTP/2, or closes such connections. Rejects if it is unreachable. */
export async function acquireStream(share: Share, wanted: Wanted): Promise<Place | undefined> {
  const pool = poolOf(share, wanted.retired)
  let mayUse = !wanted.isFresh
  for (let inVain = 0; inVain < mostInVain; ) {
    if (pool.isPlain || pool.isRetired || wanted.isGone?.()) return undefined
    if (mayUse) for (const one of pool.connections) if (one.hasRoom) return one.take()
    mayUse = true
    pool.opening ??= add(pool, share, wanted).finally(() => {
      pool.opening = undefined
    })
    const opened = await pool.opening
    if (wanted.isFresh && opened?.hasRoom) return opened.take()
    // One that others have filled was not in vain.
    if (!opened?.hasRoom && !opened?.taken) inVain++
  }
  return undefined
}

function poolOf(share: Share, retired: AbortSignal | undefined): Pool {
  const known = pools.get(share)
  if (known) return known
  const isRetired = retired?.aborted === true
  const pool: Pool = { connections: new Set(), opening: undefined, isPlain: false, isRetired }
  pools.set(share, pool)
  retired?.addEventListener('abort', () => {
    pool.isRetired = true
    for (const one of pool.connections) one.retire()
  })
  return pool
}

async function add(pool: Pool, share: Share, wanted: Wanted): Promise<Shared | undefined> {
  const opened = await open(share, wanted)
  if (!opened) pool.isPlain = true
  else if (opened.session.closed || opened.session.destroyed) opened.socket.destroy()
  else {
    const one = new Shared(opened, pool, wanted.askEvery)
    pool.connections.add(one)
    return one
  }
  return undefined
}

class Shared {
  readonly session: ClientHttp2Session
  readonly pool: Pool
  taken = 0
  isUsed = false
  isOver = false
  brokenOff = 0
  lastSeen = Number.POSITIVE_INFINITY
  timer: NodeJS.Timeout | undefined

  constructor(opened: Opened, pool: Pool, askEvery = usuallyAskEvery) {
    const { session } = opened
    this.session = session
    this.pool = pool
    this.isOver = pool.isRetired
    session.setLocalWindowSize(window)
    listenForLife(opened, askEvery)
    session.on('goaway', (_, last = 0) => {
      this.lastSeen = Math.min(this.lastSeen, last)
    })
    session.on('close', () => {
      clearTimeout(this.timer)
      pool.connections.delete(this)
    })
    this.rest()
  }

  get hasRoom(): boolean {
    const { closed, destroyed, remoteSettings } = this.session
    if (this.isOver || closed || destroyed) return false
    return this.taken < Math.min(mostStreams, remoteSettings.maxConcurrentStreams ?? mostStreams)
  }

  take(): Place {
    this.taken++
    clearTimeout(this.timer)
    this.session.ref()
    return { ask: (headers, listening) => this.ask(headers, listening), leave: () => this.leave() }
  }

  leave(): void {
    this.taken--
    if (this.taken === 0) this.rest()
  }

  /** Nobody uses it at the moment. */
  rest(): void {
    if (this.isOver) return void this.session.close()
    this.session.unref()
    this.timer = setTimeout(() => this.session.close(), idleFor).unref()
  }

  /** Streams in flight may finish. */
  retire(): void {
    this.isOver = true
    if (this.taken === 0) this.session.close()
  }

  ask(headers: OutgoingHttpHeaders, listening: ResponseHandler): Call {
    const isReused = this.isUsed
    this.isUsed = true
    let stream: ClientHttp2Stream
    try {
      stream = this.session.request(headers, { endStream: true })
    } catch (error) {
      this.leave()
      throw error
    }
    const answer = listenTo(stream, listening, { isReused, lastSeen: () => this.lastSeen })
    stream.once('close', () => {
      // A connection that refused one stream will refuse the next. Its streams may finish, and it gets no new ones.
      if (stream.rstCode === constants.NGHTTP2_REFUSED_STREAM) this.isOver = true
      this.leave()
    })
    return {
      pause: () => void (answer.isWanted && stream.pause()),
      resume: () => void (answer.isWanted && stream.resume()),
      drop: () => {
        if (!answer.isWanted) return
        answer.isWanted = false
        if (++this.brokenOff > mostBrokenOff) this.isOver = true
        stream.close(constants.NGHTTP2_CANCEL)
        stream.destroy()
      },
    }
  }
}
