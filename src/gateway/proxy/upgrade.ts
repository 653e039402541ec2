// Exec, attach and port-forward: a connection that becomes another protocol, once the cluster has agreed to it and not before.

import type { ClientRequest, IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { badRequest } from '../../api/errors.ts'
import type { Request } from '../../serving/exchange.ts'
import { brokenOff, notAgreed, notReached, redirected, refusedUs, tooLate } from './backend.ts'
import { answerHeaders } from './headers.ts'
import { type Forwarding, onTheWay, openRequest, readyOf } from './upstream-request.ts'

export type Upgrading = Forwarding & {
  readonly socket: Duplex
  /** What the client sent behind its request. */
  readonly head: Buffer
}

const known = /^(websocket|spdy\/3\.1)$/i

/** Throws 400. */
export function protocolOf({ headers, method }: Request): string {
  const wanted = headers.upgrade ?? ''
  if (!known.test(wanted)) throw badRequest('a connection is upgraded to websocket or SPDY/3.1 only')
  if (method !== 'GET' && method !== 'POST') throw badRequest('an upgrade is asked for with GET or POST')
  if (headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0)
    throw badRequest('a request for an upgrade has no body')
  return wanted
}

/** Resolves when both sides are done. Rejects with an ApiError where the cluster did not agree; its connection is gone then. */
export async function upgrade(upgrading: Upgrading): Promise<number> {
  const { exchange, backend, timeouts, socket } = upgrading
  const wanted = protocolOf(exchange.request)
  const ready = await readyOf(upgrading)
  if (exchange.closed) return 499
  const letGo = holdEarly(socket)
  const outgoing = openRequest(upgrading, ready, ['Connection', 'Upgrade', 'Upgrade', wanted])
  const agreed = await agreement(outgoing, upgrading)
  if (agreed === 'gone') return 499
  if (exchange.response.headersSent) {
    agreed.connection.destroy() // it was cut meanwhile, and told why
    return exchange.response.statusCode
  }
  const { answer } = agreed
  const { statusCode = 502 } = answer
  const other = agreed.socket
  if (!other || statusCode !== 101 || answer.headers.upgrade?.toLowerCase() !== wanted.toLowerCase()) {
    // Whatever the client sends now must not reach the cluster as if it were ours (CVE-2018-1002105).
    const body = await refusal(answer, timeouts.answer).finally(() => agreed.connection.destroy())
    if (statusCode === 401) {
      backend.refuse()
      throw refusedUs(backend)
    }
    if (statusCode >= 300 && statusCode < 400) throw redirected(backend)
    if (statusCode < 400) throw notAgreed(backend)
    return relay(upgrading, answer, body)
  }
  upgrading.started(101)
  return join(socket, other, { ...upgrading, head: Buffer.concat([upgrading.head, ...letGo()]) }, agreed)
}

/** How long a client may take to read why it was refused. Closing at once, with bytes of it unread, would take the answer back. */
const linger = 1000

/** For a connection that was not upgraded, once it has its answer. What still comes is read, for only who reads hears that the client is gone. */
export function takeLeave(socket: Duplex): void {
  if (socket.writableEnded || socket.destroyed) return
  socket.end()
  socket.removeAllListeners('data').resume()
  // Who never closes its side does not keep ours.
  const timer = setTimeout(() => socket.destroy(), linger).unref()
  socket.once('close', () => clearTimeout(timer))
}

const mostEarly = 64 * 1024

/** What a client sends before the cluster has agreed is kept for then. It is read, for only who reads hears that the client is gone. */
function holdEarly(socket: Duplex): () => readonly Buffer[] {
  const held: Buffer[] = []
  let size = 0
  const data = (chunk: Buffer) => {
    held.push(chunk)
    size += chunk.length
    if (size >= mostEarly) socket.pause()
  }
  const gone = () => void socket.destroy()
  socket.on('data', data).on('end', gone)
  return () => {
    socket.off('data', data).off('end', gone).pause()
    return held
  }
}

type Agreed = {
  readonly answer: IncomingMessage
  /** To the cluster. Held here, for when an answer is read to its end it would go back to the pool. */
  readonly connection: Duplex
  readonly socket?: Duplex
  readonly head?: Buffer
}

function agreement(outgoing: ClientRequest, upgrading: Upgrading): Promise<Agreed | 'gone'> {
  const { backend, timeouts } = upgrading
  return new Promise((resolve, reject) => {
    const answered = onTheWay(outgoing, upgrading, {
      within: timeouts.answer,
      late: () => reject(tooLate(backend, timeouts.answer)),
      gone: () => resolve('gone'),
      failed: (error, isConnected) => reject(isConnected ? brokenOff(backend, error) : notReached(backend, error)),
    })
    outgoing.on('response', answer => {
      answered()
      resolve({ answer, connection: answer.socket })
    })
    outgoing.on('upgrade', (answer, socket, head) => {
      answered()
      resolve({ answer, connection: socket, socket, head })
    })
    outgoing.end()
  })
}

const mostRefusal = 64 * 1024

/** Why the cluster did not agree; short, and not waited for long. */
function refusal(answer: IncomingMessage, within: number): Promise<Buffer> {
  return new Promise(resolve => {
    const chunks: Buffer[] = []
    let size = 0
    const done = () => {
      clearTimeout(timer)
      resolve(Buffer.concat(chunks).subarray(0, mostRefusal))
    }
    const timer = setTimeout(done, Math.min(within, 5000))
    answer.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      size += chunk.length
      if (size >= mostRefusal) done()
    })
    for (const event of ['end', 'error', 'close']) answer.on(event, done)
  })
}

function relay(
  { exchange }: Upgrading,
  { statusCode = 502, headers, rawHeaders }: IncomingMessage,
  body: Buffer,
): number {
  const { response, auditId } = exchange
  const kept = answerHeaders(auditId, rawHeaders, headers.connection)
  const without = kept.filter((_, index) => kept[index - (index % 2)]?.toLowerCase() !== 'content-length')
  response.writeHead(statusCode, [...without, 'Content-Length', String(body.length), 'Connection', 'close'])
  response.end(body)
  return statusCode
}

/** Both directions, each at the pace of who reads; when one side is gone, so is the other. */
function join(client: Duplex, cluster: Duplex, { exchange, head }: Upgrading, agreed: Agreed): Promise<number> {
  const { rawHeaders, headers } = agreed.answer
  exchange.response.detachSocket(client as never)
  const lines = ['HTTP/1.1 101 Switching Protocols', 'Connection: Upgrade', `Upgrade: ${headers.upgrade}`]
  const kept = answerHeaders(exchange.auditId, rawHeaders, headers.connection)
  for (let index = 0; index < kept.length; index += 2) lines.push(`${kept[index]}: ${kept[index + 1]}`)
  client.write(Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'))
  if (agreed.head?.length) client.write(agreed.head)
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
