// A light Response with the members that callers use: buffered or streamed.

import { Readable } from 'node:stream'
import type { Call, ResponseHead } from './upstream.ts'

/**
 * The members of a Response that callers use. A real Response creates a stream, which is most of the work for a small response, and
 * loads fetch, which takes some megabytes.
 */
function lightResponse({ status, rawHeaders }: ResponseHead, over: object): Response {
  const get = (name: string) => {
    const values: string[] = []
    for (let index = 0; index < rawHeaders.length; index += 2)
      if (rawHeaders[index]?.toLowerCase() === name.toLowerCase()) values.push(rawHeaders[index + 1] as string)
    return values.length ? values.join(', ') : null
  }
  return { status, headers: { get }, ok: status >= 200 && status < 300, body: null, ...over } as unknown as Response
}

export function wholeResponse(head: ResponseHead, body: Buffer): Response {
  const text = async () => body.toString()
  return lightResponse(head, {
    text,
    json: async () => JSON.parse(await text()) as unknown,
    arrayBuffer: async () => body.buffer.slice(body.byteOffset, body.byteOffset + body.length) as ArrayBuffer,
  })
}

/** The body of a stream: it pauses the call while nobody reads, and ends it when the reader cancels. */
export function openBody(call: Call): Readable {
  return new Readable({
    read: () => call.resume(),
    destroy(error, callback) {
      call.drop()
      callback(error)
    },
  })
}

export function streamedResponse(head: ResponseHead, stream: Readable): Response {
  const body = Readable.toWeb(stream)
  const text = async () => {
    const chunks: Buffer[] = []
    for await (const chunk of body) chunks.push(chunk as Buffer)
    return Buffer.concat(chunks).toString()
  }
  return lightResponse(head, { body, text })
}
