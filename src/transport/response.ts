// The answer of a server as much of a Response as is asked of one: whole, or as it comes. transport.ts reads it.

import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { ApiError } from '../api/errors.ts'

/** Rejects with an ApiError 422 where it has more than `most` bytes; it is given up then. */
export async function readWhole(answer: IncomingMessage, url: string, most: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let left = most
  for await (const chunk of answer) {
    left -= (chunk as Buffer).length
    if (left < 0)
      throw new ApiError(422, 'Invalid', `${new URL(url).origin} answered with more than ${most} bytes (${url})`)
    chunks.push(chunk as Buffer)
  }
  return chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)
}

/**
 * As much of a Response as is asked of one. A real one brings a stream, and that is most of the work for a small answer;
 * and all that a browser has for fetch, some megabytes.
 */
function lightResponse(answer: IncomingMessage, over: object): Response {
  const status = answer.statusCode ?? 500
  const headers = { get: (name: string) => answer.headersDistinct[name.toLowerCase()]?.join(', ') ?? null }
  return { status, headers, ok: status >= 200 && status < 300, body: null, ...over } as unknown as Response
}

export function wholeResponse(answer: IncomingMessage, body: Buffer): Response {
  const text = async () => body.toString()
  return lightResponse(answer, {
    text,
    json: async () => JSON.parse(await text()) as unknown,
    arrayBuffer: async () => body.buffer.slice(body.byteOffset, body.byteOffset + body.length) as ArrayBuffer,
  })
}

export function streamedResponse(answer: IncomingMessage): Response {
  const body = Readable.toWeb(answer)
  const text = async () => {
    const chunks: Buffer[] = []
    for await (const chunk of body) chunks.push(chunk as Buffer)
    return Buffer.concat(chunks).toString()
  }
  return lightResponse(answer, { body, text })
}
