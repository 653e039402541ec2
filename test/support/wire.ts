// Requests as bytes: any method, header and body, over plain HTTP or TLS, and bare sockets for invalid input.

import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { createConnection, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { gunzipSync } from 'node:zlib'
import type { Server } from './server.ts'

export type Sent = {
  readonly method?: string
  readonly headers?: { readonly [name: string]: string | readonly string[] }
  readonly body?: string | Uint8Array
  /** The bearer key; '' sends none. Default: the administrator's. */
  readonly key?: string
}
export type Reply = {
  readonly code: number
  readonly headers: IncomingMessage['headers']
  /** All Warning headers, as a list. */
  readonly warnings: readonly string[]
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests assert fields of arbitrary responses
  readonly json: any
}

export const base = '/kubernetes/management'
export const group = `${base}/apis/management.platform.sh/v1`

export type Wire = (path: string, sent?: Sent) => Promise<Reply>

/** Over TLS by default, with the full path. */
export function openWire(
  server: Pick<Server, 'https' | 'http' | 'ca' | 'adminKey'>,
  over: 'https' | 'http' = 'https',
): Wire {
  return async (path, sent = {}) => {
    const { method = 'GET', headers = {}, body, key = server.adminKey } = sent
    const at = new URL(server[over])
    // Sends the path unchanged; a URL would normalise it.
    const options = {
      method,
      agent: false,
      headers: {
        ...(key && { authorization: `Bearer ${key}` }),
        ...(body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
        ...headers,
      } as { [name: string]: string },
      ...(over === 'https' ? { ca: server.ca, servername: 'localhost' } : {}),
    }
    const call = (over === 'https' ? httpsRequest : httpRequest)({ ...options, host: at.hostname, port: at.port, path })
    // A server that rejects early closes while the body is still being sent; only its response matters.
    call.on('error', () => {})
    call.end(body)
    const [response] = (await once(call, 'response')) as [IncomingMessage]
    return replyOf(response)
  }
}

async function replyOf(response: IncomingMessage): Promise<Reply> {
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk)
  const bytes = Buffer.concat(chunks)
  const zipped = response.headers['content-encoding'] === 'gzip' && bytes.length > 0
  const text = (zipped ? gunzipSync(bytes) : bytes).toString()
  const isJson = response.headers['content-type']?.startsWith('application/json') && text
  return {
    code: response.statusCode ?? 0,
    headers: response.headers,
    warnings: response.rawHeaders.filter(
      (_, at) => at % 2 === 1 && response.rawHeaders[at - 1]?.toLowerCase() === 'warning',
    ),
    text,
    json: isJson ? JSON.parse(text) : undefined,
  }
}

export type Bare = {
  readonly socket: Socket
  /** All received data until the text appears, or until the end. */
  until(text: string): Promise<string>
  /** All received data when the other side has closed. */
  ended(): Promise<string>
}

/** A bare connection to the plain listener. */
export async function openBare(url: string, tls?: { readonly ca: string }): Promise<Bare> {
  const { hostname, port } = new URL(url)
  const at = { host: hostname, port: Number(port) }
  const socket = tls ? connectTls({ ...at, ...tls, ALPNProtocols: ['http/1.1'] }) : createConnection(at)
  await once(socket, tls ? 'secureConnect' : 'connect')
  let seen = ''
  let closed = false
  let look = () => {}
  socket.on('data', chunk => {
    seen += chunk.toString('latin1')
    look()
  })
  socket.on('error', () => {})
  socket.on('close', () => {
    closed = true
    look()
  })
  const wait = (isSo: () => boolean) =>
    new Promise<string>(resolve => {
      look = () => {
        if (isSo()) resolve(seen)
      }
      look()
    })
  return { socket, until: text => wait(() => closed || seen.includes(text)), ended: () => wait(() => closed) }
}

/** Repeats until the condition holds, for at most thirty seconds, so that a loop does not outlive its test. */
export async function eventually(what: string, isSo: () => Promise<boolean>): Promise<void> {
  for (const end = performance.now() + 30_000; !(await isSo()); await wait(10))
    if (performance.now() > end) throw new Error(`it did not come to this: ${what}`)
}

/** Waits until a count has not changed for many turns of the event loop, for at most four minutes: the other side accepts no more. */
export async function unchanged(what: string, count: () => number): Promise<void> {
  const end = performance.now() + 240_000
  for (let [same, last] = [0, -1]; same < 20; await wait(20)) {
    const now = count()
    same = now === last ? same + 1 : 0
    last = now
    if (performance.now() > end) throw new Error(`it still changes: ${what}`)
  }
}
