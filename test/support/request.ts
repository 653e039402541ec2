// A plain HTTPS client for tests, without a library.

import { once } from 'node:events'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { Agent, request as httpsRequest } from 'node:https'
import { createInterface } from 'node:readline'

export type RequestOptions = {
  /** A string is sent unchanged, anything else as JSON. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** The bearer key; '' sends none. Default: the administrator's. */
  readonly key?: string
}
export type Answer = {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** The parsed body, if it is JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: tests assert fields of arbitrary responses
  readonly body: any
}
// biome-ignore lint/suspicious/noExplicitAny: as above
export type WatchEvent = { readonly type: string; readonly object: any }

export function openRequests(to: { readonly base: string; readonly ca: string; readonly key: string }) {
  const agent = new Agent({ ca: to.ca, keepAlive: true, maxSockets: 64 })

  async function send(method: string, path: string, options: RequestOptions): Promise<IncomingMessage> {
    const { body, headers = {}, key = to.key } = options
    const payload = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body)
    const call = httpsRequest(`${to.base}${path}`, {
      method,
      agent,
      headers: {
        ...(key && { authorization: `Bearer ${key}` }),
        ...(payload !== undefined && {
          'content-type': 'application/json',
          'content-length': String(Buffer.byteLength(payload)),
        }),
        ...headers,
      },
    })
    call.end(payload)
    const [response] = (await once(call, 'response')) as [IncomingMessage]
    return response
  }

  return {
    async request(method: string, path: string, options: RequestOptions = {}): Promise<Answer> {
      const response = await send(method, path, options)
      let text = ''
      for await (const chunk of response.setEncoding('utf8')) text += chunk
      const isJson = response.headers['content-type']?.startsWith('application/json') && text
      return {
        status: response.statusCode ?? 0,
        headers: response.headers,
        text,
        body: isJson ? JSON.parse(text) : undefined,
      }
    },

    async *watch(path: string, options: RequestOptions = {}): AsyncIterableIterator<WatchEvent> {
      const url = /[?&]watch=/.test(path) ? path : `${path}${path.includes('?') ? '&' : '?'}watch=true`
      const response = await send('GET', url, options)
      try {
        if (response.statusCode !== 200) throw new Error(`the watch was answered with ${response.statusCode}`)
        for await (const line of createInterface({ input: response })) if (line) yield JSON.parse(line) as WatchEvent
      } finally {
        response.destroy()
      }
    },
  }
}
