// Reads a request's body: bounded before anything is parsed, and only after it is known who sends it (D4, D7).

import { decode } from '../api/codec.ts'
import { badRequest, tooLarge, unsupportedMediaType } from '../api/errors.ts'
import { DecodeError, TooManyValues } from '../api/json-reader.ts'
import type { Json } from '../api/object.ts'
import { ownTurn } from '../api/time-slices.ts'
import type { Exchange, Request } from '../serving/exchange.ts'
import { readProtobuf } from './protobuf.ts'

const limit = 3 * 1024 * 1024
/** Many small values cost more than their bytes: reading and checking them holds up others (D72). */
const maxValues = 50_000
/** A new key of a map costs several times as much as other values. No schema needs as many. */
const maxKeys = 25_000
/** Characters in strings, keys and numbers. No object of this size can be stored, and encoding it takes long (D72). */
const maxText = 1536 * 1024
/** Bytes of a body that take some milliseconds to parse. */
const large = 64 * 1024
const nothing = Buffer.alloc(0)
const incomplete = () => badRequest('the request ended before its body was complete')
const tooMuch = (limit: number) => tooLarge(`Request entity too large: limit is ${limit}`)

export type Body = { readonly value: Json | undefined; readonly duplicates: readonly string[] }

/** All bytes, at most 3 MiB by default. By events: an async iterator costs more than the rest of a small write's reading. */
export function readBytes(exchange: Exchange, max = limit): Promise<Buffer> {
  const { request } = exchange
  // The client left while the request waited for something else. No event will tell, and an HTTP/2 stream seems to have ended.
  if (exchange.closed) return Promise.reject(incomplete())
  if (request.readableEnded) return Promise.resolve(nothing)
  if (Number(request.headers['content-length'] ?? 0) > max) return Promise.reject(tooMuch(max))
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    const keep = (chunk: Buffer) => {
      size += chunk.length
      if (size <= max) return void chunks.push(chunk)
      request.off('data', keep).pause()
      reject(tooMuch(max))
    }
    const { stream } = request as { stream?: { readonly closed: boolean } }
    const finish = () => {
      if (stream?.closed) return // HTTP/2 reports a reset without an error as an end.
      if (exchange.closed) return brokenOff() // A 504 is sent already, and the body is discarded.
      // Without this, the listeners keep the bytes in memory until the response is sent.
      request.off('data', keep).off('end', finish).off('error', brokenOff).off('close', brokenOff)
      resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks))
    }
    // A client that closes the connection early is not a server error, whatever the socket reports.
    const brokenOff = () => reject(incomplete())
    // request.complete does not help on close: HTTP/2 sets it on every closed stream.
    request.on('data', keep).on('end', finish).on('error', brokenOff).on('close', brokenOff)
  })
}

export const mediaType = (request: Request) =>
  String(request.headers['content-type'] ?? '')
    .split(';', 1)[0]
    ?.trim()
    .toLowerCase() ?? ''

/** An object: JSON or YAML; with no content type YAML, of which JSON is a part (D4). Protobuf for Kubernetes' own groups. */
export async function readObject(exchange: Exchange, what: string, protobuf: boolean): Promise<Body> {
  const body = await read(exchange, what, protobuf)
  if (exchange.auditContext) exchange.auditContext.sent = body.value
  return body
}

async function read(exchange: Exchange, what: string, protobuf: boolean): Promise<Body> {
  const type = mediaType(exchange.request)
  if (type === 'application/vnd.kubernetes.protobuf' && protobuf)
    return readBy(exchange, bytes => ({ value: readProtobuf(bytes, { maxValues, maxText }), duplicates: [] }))
  const format = type === '' || type === 'application/yaml' ? 'yaml' : type === 'application/json' ? 'json' : undefined
  if (!format) throw unsupportedMediaType(['application/json', 'application/yaml'])
  return readParsed(exchange, format, what)
}

export const readParsed = (exchange: Exchange, format: 'json' | 'yaml', what: string): Promise<Body> =>
  readBy(exchange, bytes => parse(bytes, format, what))

/** Parsing a large body and working with it are two pieces: other requests are answered before and between (D72). */
async function readBy(exchange: Exchange, parser: (bytes: Buffer) => Body | Promise<Body>): Promise<Body> {
  const bytes = await readBytes(exchange)
  if (bytes.length < large) return counted(parser, bytes)
  await ownTurn()
  const body = await counted(parser, bytes)
  await ownTurn()
  // Answered by now, with a 504, or the client is gone: nothing of it is done.
  if (exchange.closed) throw badRequest('the request ended before it was handled')
  return body
}

async function counted(parser: (bytes: Buffer) => Body | Promise<Body>, bytes: Buffer): Promise<Body> {
  try {
    return await parser(bytes)
  } catch (error) {
    if (!(error instanceof TooManyValues)) throw error
    throw tooLarge(`Request entity too large: it contains ${error.problem}`)
  }
}

/** YAML is rarely sent, and its reader loaded by the first who does. */
async function parse(bytes: Buffer, format: 'json' | 'yaml', what: string): Promise<Body> {
  if (bytes.length === 0) return { value: undefined, duplicates: [] }
  try {
    return format === 'json'
      ? decode(bytes, { maxValues, maxKeys, maxText })
      : (await import('../api/yaml-codec.ts')).decodeYaml(bytes, { maxValues, maxKeys, maxText })
  } catch (error) {
    throw error instanceof DecodeError && !(error instanceof TooManyValues)
      ? badRequest(`the object provided is unrecognized (must be of type ${what}): ${error.message}`)
      : error
  }
}
