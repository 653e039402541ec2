// The first head of a connection by HTTP/2. One that Node's library would give up on, and end the connection, is answered here: decision 0018. The listener calls it.

import type { Http2SecureServer } from 'node:http2'
import type { TLSSocket } from 'node:tls'
import type { ApiError } from '../api/errors.ts'
import { endGently } from './client-error.ts'
import { framesOfRefusal, openHeadReader } from './head-frames.ts'

type Refusing = {
  readonly tooLarge: ApiError
  /** Milliseconds that a head may take. */
  readonly within: number
}

/** Nearly all clients send it at once. Who waits for us to speak first is handed over after so many milliseconds. */
const moment = 100

/** Costs a connection something, its requests nothing: once its first head is seen the library reads by itself. */
export function refuseLargeFirstHeads(server: Http2SecureServer, refusing: Refusing): void {
  const takers = server.listeners('secureConnection')
  server.removeAllListeners('secureConnection')
  server.on('secureConnection', (socket: TLSSocket) => {
    const take = () => {
      for (const taker of takers) taker.call(server, socket)
    }
    if (socket.alpnProtocol === 'h2') look(socket, refusing, take)
    else take()
  })
}

function look(socket: TLSSocket, { tooLarge, within }: Refusing, take: () => void): void {
  const reader = openHeadReader()
  const chunks: Buffer[] = []
  const see = (chunk: Buffer) => {
    const found = reader.read(chunk)
    if (found === 'too large') {
      leave()
      endGently(socket, framesOfRefusal(reader.stream, tooLarge))
      return
    }
    chunks.push(chunk)
    if (found === 'seen') handOver()
  }
  const handOver = () => {
    leave()
    socket.pause()
    if (chunks.length > 0) socket.unshift(Buffer.concat(chunks))
    take()
  }
  const leave = () => {
    clearTimeout(timer)
    socket.off('data', see).off('end', handOver).off('close', leave).off('error', leave)
  }
  let timer = setTimeout(() => {
    if (reader.stream === 0) handOver()
    else timer = setTimeout(handOver, within)
  }, moment)
  socket.on('data', see).on('end', handOver).on('close', leave).on('error', leave)
}
