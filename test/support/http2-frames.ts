// HTTP/2 frame by frame, for input that no client sends. Tests of listeners and of shared connections use it.

import { once } from 'node:events'
import { connect as connectTls, type TLSSocket } from 'node:tls'

/** An HTTP/2 frame, for input that no library sends. */
export function frame(type: number, flags: number, stream: number, body: Buffer): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(body.length, 0, 3)
  head.writeUInt8(type, 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, body])
}

/** Without Node's client, which ends a body before it resets the stream. */
export async function openFrames(url: string): Promise<TLSSocket> {
  const socket = connectTls({
    port: Number(new URL(url).port),
    host: '127.0.0.1',
    ALPNProtocols: ['h2'],
    rejectUnauthorized: false,
  })
  socket.on('error', () => {}).resume()
  await once(socket, 'secureConnect')
  socket.write(Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(4, 0, 0, Buffer.alloc(0))]))
  return socket
}

/** Literal headers without indexing. */
export const headOf = (headers: { readonly [name: string]: string }) =>
  Buffer.concat(Object.entries(headers).flatMap(([name, value]) => [Buffer.from([0]), textOf(name), textOf(value)]))

function textOf(text: string): Buffer {
  const size: number[] = []
  let left = text.length
  if (left < 127) size.push(left)
  else {
    size.push(127)
    for (left -= 127; left >= 128; left = Math.floor(left / 128)) size.push((left % 128) + 128)
    size.push(left)
  }
  return Buffer.concat([Buffer.from(size), Buffer.from(text, 'latin1')])
}
