// Exec, attach and port-forward: switches the connection to another protocol after the cluster has accepted, never before.

import type { Duplex } from 'node:stream'
import { badRequest } from '../../api/errors.ts'
import type { Request } from '../../serving/exchange.ts'
import type { ResponseHead } from '../../transport/upstream.ts'
import { brokenOff, notAgreed, notReached, type Ready, redirected, refusedUs, tooLate } from './backend.ts'
import { responseHeaders } from './headers.ts'
import { type Forwarding, readyOf, requestOf } from './upstream-request.ts'

export type Upgrading = Forwarding & {
  readonly socket: Duplex
  /** The data that the client sent after its request. */
  readonly head: Buffer
}

const known = /^(websocket|spdy\/3\.1)$/i

/** Throws 400. */
export function protocolOf({ headers, method }: Request): string {
  const wanted = headers.upgrade ?? ''
  if (!known.test(wanted)) throw badRequest('the Upgrade header must be websocket or SPDY/3.1')
  if (method !== 'GET' && method !== 'POST') throw badRequest('an upgrade request must be GET or POST')
  if (headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0)
    throw badRequest('an upgrade request must not have a body')
  return wanted
}

/** Resolves when both sides are closed. Rejects with an ApiError if the cluster did not accept. Its connection is closed then. */
export async function upgrade(upgrading: Upgrading): Promise<number> {
  const { exchange, backend, socket } = upgrading
  const wanted = protocolOf(exchange.request)
  const ready = await readyOf(upgrading)
  if (exchange.closed) return 499
  const stopBuffering = bufferEarlyData(socket)
  const answer = await agreement(upgrading, ready, wanted)
  if (answer === 'gone') return 499
  const { head } = answer
  const { status } = head
  if (exchange.response.headersSent) {
    answer.socket?.destroy() // ended meanwhile, with the reason
    return exchange.response.statusCode
  }
  if (!answer.socket || protocolIn(head)?.toLowerCase() !== wanted.toLowerCase()) {
    // Further data from the client must not reach the cluster as a request of the gateway (CVE-2018-1002105).
    answer.socket?.destroy()
    if (status === 401) {
      backend.refuse()
      throw refusedUs(backend)
    }
    if (status >= 300 && status < 400) throw redirected(backend)
    if (status < 400) throw notAgreed(backend)
    return relay(upgrading, head, answer.body)
  }
  upgrading.started(101)
  return join(socket, answer.socket, { ...upgrading, head: Buffer.concat([upgrading.head, ...stopBuffering()]) }, head)
}

/** Time for the client to read the error. Closing at once would reset the connection and lose the response. */
const linger = 1000

/** Drains a connection that was not upgraded, after its response. Only a reading socket notices that the client disconnected. */
export function closeAfterResponse(socket: Duplex): void {
  if (socket.writableEnded || socket.destroyed) return
  socket.end()
  socket.removeAllListeners('data').resume()
  // Closes the connection of a client that never closes its side.
  const timer = setTimeout(() => socket.destroy(), linger).unref()
  socket.once('close', () => clearTimeout(timer))
}

const maxEarlyBytes = 64 * 1024

/** Keeps data that arrives before the cluster accepts the upgrade. Only a reading socket notices that the client disconnected. */
function bufferEarlyData(socket: Duplex): () => readonly Buffer[] {
  const buffered: Buffer[] = []
  let size = 0
  const data = (chunk: Buffer) => {
    buffered.push(chunk)
    size += chunk.length
    if (size >= maxEarlyBytes) socket.pause()
  }
  const gone = () => void socket.destroy()
  socket.on('data', data).on('end', gone)
  return () => {
    socket.off('data', data).off('end', gone).pause()
    return buffered
  }
}

type Answer = {
  readonly head: ResponseHead
  /** The connection to the cluster, if it accepted. */
  readonly socket?: Duplex
  /** The response body of a cluster that did not accept. */
  readonly body: Buffer
}

const maxRefusalBytes = 64 * 1024
const refusalTimeout = 5000

/** Resolves with the response of the cluster. An error response is limited in size and time, and its connection is closed. */
function agreement(upgrading: Upgrading, ready: Ready, wanted: string): Promise<Answer | 'gone'> {
  const { exchange, backend, timeouts } = upgrading
  const request = { ...requestOf(upgrading, ready), upgrade: wanted }
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    let head: ResponseHead | undefined
    const refused = () => {
      clearTimeout(timer)
      call.drop()
      if (head) resolve({ head, body: Buffer.concat(chunks).subarray(0, maxRefusalBytes) })
    }
    const late = () => {
      call.drop()
      reject(tooLate(backend, timeouts.answer))
    }
    let timer = setTimeout(late, timeouts.answer)
    const call = ready.upstream.send(request, {
      head(answer) {
        head = answer
        clearTimeout(timer)
        timer = setTimeout(refused, Math.min(timeouts.answer, refusalTimeout))
      },
      data(chunk) {
        chunks.push(chunk)
        size += chunk.length
        if (size >= maxRefusalBytes) refused()
      },
      end: refused,
      failed(error, { isConnected }) {
        if (head) return refused()
        clearTimeout(timer)
        reject(isConnected ? brokenOff(backend, error) : notReached(backend, error))
      },
      upgraded(answer, socket) {
        clearTimeout(timer)
        resolve({ head: answer, socket, body: Buffer.alloc(0) })
      },
    })
    exchange.onClosed(() => {
      clearTimeout(timer)
      call.drop()
      resolve('gone')
    })
  })
}

function protocolIn({ rawHeaders }: ResponseHead): string | undefined {
  const all = rawHeaders.filter((_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === 'upgrade')
  return all.length ? all.join(', ') : undefined
}

function relay({ exchange }: Upgrading, { status, rawHeaders, connection }: ResponseHead, body: Buffer): number {
  const { response, auditId } = exchange
  const kept = responseHeaders(auditId, rawHeaders, connection)
  const without = kept.filter((_, index) => kept[index - (index % 2)]?.toLowerCase() !== 'content-length')
  response.writeHead(status, [...without, 'Content-Length', String(body.length), 'Connection', 'close'])
  response.end(body)
  return status
}

/** Relays both directions, each at the speed of its reader. When one side closes, so does the other. */
function join(client: Duplex, cluster: Duplex, { exchange, head }: Upgrading, agreed: ResponseHead): Promise<number> {
  exchange.response.detachSocket(client as never)
  const lines = ['HTTP/1.1 101 Switching Protocols', 'Connection: Upgrade', `Upgrade: ${protocolIn(agreed)}`]
  const kept = responseHeaders(exchange.auditId, agreed.rawHeaders, agreed.connection)
  for (let index = 0; index < kept.length; index += 2) lines.push(`${kept[index]}: ${kept[index + 1]}`)
  client.write(Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'))
  if (head.length) cluster.write(head)
  return new Promise(resolve => {
    const end = () => {
      client.destroy()
      cluster.destroy()
      resolve(101)
    }
    for (const one of [client, cluster]) {
      one.on('error', end)
      one.on('close', end)
    }
    client.pipe(cluster)
    cluster.pipe(client)
  })
}
