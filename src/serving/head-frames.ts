// HTTP/2 as far as the first head of a connection needs it: how large that is, and an answer to it, in frames. first-head.ts calls it.

import type { ApiError } from '../api/errors.ts'
import { headersOfRefusal } from './client-error.ts'

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
const type = { data: 0, headers: 1, settings: 4, goAway: 7, continuation: 9 } as const
const flag = { none: 0, endStream: 1, ack: 1, endHeaders: 4 } as const
/** A frame's length, its type, its flags and its stream. */
const frameHead = 9
/** Of settings and the like that come before it. */
const mostBefore = 16 * 1024
/** So much of a head the library reads in any case: as it is encoded, and in frames. */
const most = { bytes: 64 * 1024, frames: 9 } as const

/** Looks at the heads of frames alone. What is not as it should be is `seen`: saying what is wrong with it is the library's. */
export function openHeadReader() {
  const part = Buffer.alloc(preface.length)
  let [wanted, have, toSkip] = [preface.length, 0, 0]
  let [stream, frames, bytes, before] = [0, 0, 0, 0]

  function frame(): 'more' | 'seen' | 'too large' {
    const [length, kind, flags] = [part.readUIntBE(0, 3), part[3], part[4] as number]
    toSkip = length
    if (stream === 0 && kind !== type.headers) {
      before += frameHead + length
      return before > mostBefore ? 'seen' : 'more'
    }
    if (stream !== 0 && kind !== type.continuation) return 'seen'
    stream ||= part.readUInt32BE(5)
    frames++
    bytes += length
    if (stream % 2 === 0 || stream > 0x7f_ff_ff_ff) return 'seen'
    if (bytes > most.bytes || frames > most.frames) return 'too large'
    return flags & flag.endHeaders ? 'seen' : 'more'
  }

  return {
    /** The head's, once it has begun. */
    get stream() {
      return stream
    },
    read(chunk: Buffer): 'more' | 'seen' | 'too large' {
      for (let at = 0; at < chunk.length; ) {
        const step = Math.min(toSkip || wanted - have, chunk.length - at)
        if (toSkip > 0) toSkip -= step
        else have += chunk.copy(part, have, at, at + step)
        at += step
        if (have < wanted) continue
        have = 0
        if (wanted === preface.length) {
          if (!part.equals(preface)) return 'seen'
          wanted = frameHead
          continue
        }
        const found = frame()
        if (found !== 'more') return found
      }
      return 'more'
    },
  }
}

/** The answer on that stream, and that it was the last: who did not read a head does not know the table any more by which later ones are compressed. */
export function framesOfRefusal(stream: number, { status }: ApiError): Buffer {
  const body = Buffer.from(`${JSON.stringify(status)}\n`)
  const headers = Object.entries(headersOfRefusal(status, body.length)).map(([name, value]) => [
    ...[0, ...text(name.toLowerCase())],
    ...text(value),
  ])
  const goAway = Buffer.alloc(8)
  goAway.writeUInt32BE(stream)
  return Buffer.concat([
    frameOf(type.settings, flag.none, 0, []),
    frameOf(type.settings, flag.ack, 0, []),
    frameOf(type.headers, flag.endHeaders, stream, [8, ...text(String(status.code)), ...headers.flat()]),
    frameOf(type.data, flag.endStream, stream, body),
    frameOf(type.goAway, flag.none, 0, goAway),
  ])
}

function frameOf(kind: number, flags: number, stream: number, payload: Iterable<number>): Buffer {
  const bytes = Buffer.from([...payload])
  const head = Buffer.alloc(frameHead)
  head.writeUIntBE(bytes.length, 0, 3)
  head.writeUInt8(kind, 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, bytes])
}

/** As HPACK has it, neither compressed nor remembered. All of ours are shorter than the 127 bytes that one byte can tell. */
const text = (value: string) => [value.length, ...Buffer.from(value, 'latin1')]
