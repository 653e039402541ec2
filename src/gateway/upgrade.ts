// Exec, attach and port-forward: a connection that becomes another protocol, once the cluster has agreed to it and not before.

import type { ClientRequest, IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { badRequest } from '../api/errors.ts'
import type { Request } from '../serving/exchange.ts'
import { brokenOff, notReached, redirected, refusedUs, tooLate } from './backend.ts'
import { type Forwarding, open, whenConnected } from './forward.ts'
import { answerHeaders } from './headers.ts'

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
  const outgoing = await open(upgrading, ['Connection', 'Upgrade', 'Upgrade', wanted])
  const agreed = await agreement(outgoing, upgrading)
  if (agreed === 'gone') return 499
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
    if (statusCode < 400) throw brokenOff(backend, new Error('it did not agree to the upgrade'))
    return relay(upgrading, answer, body)
  }
  upgrading.started(101)
  return join(socket, other, upgrading, agreed)
}

type Agreed = {
  readonly answer: IncomingMessage
  /** To the cluster. Held here, for when an answer is read to its end it would go back to the pool. */
  readonly connection: Duplex
  readonly socket?: Duplex
  readonly head?: Buffer
}

function agreement(outgoing: ClientRequest, { exchange, backend, timeouts }: Upgrading): Promise<Agreed | 'gone'> {
  return new Promise((resolve, reject) => {
    let isConnected = false
    const timer = setTimeout(() => {
      reject(tooLate(backend, timeouts.answer))
      outgoing.destroy()
    }, timeouts.answer)
    exchange.onClosed(() => {
      clearTimeout(timer)
      outgoing.destroy()
      resolve('gone')
    })
    whenConnected(outgoing, timeouts.connect, () => {
      isConnected = true
    })
    outgoing.on('error', error => {
      clearTimeout(timer)
      reject(isConnected ? brokenOff(backend, error) : notReached(backend, error))
    })
    outgoing.on('response', answer => {
      clearTimeout(timer)
      resolve({ answer, connection: answer.socket })
    })
    outgoing.on('upgrade', (answer, socket, head) => {
      clearTimeout(timer)
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
  const kept = answerHeaders(rawHeaders, headers.connection)
  const without = kept.filter((_, index) => kept[index - (index % 2)]?.toLowerCase() !== 'content-length')
  response.writeHead(statusCode, [
    'Audit-Id',
    auditId,
    ...without,
    'Content-Length',
    String(body.length),
    'Connection',
    'close',
  ])
  response.end(body)
  return statusCode
}

/** Both directions, each at the pace of who reads; when one side is gone, so is the other. */
function join(client: Duplex, cluster: Duplex, { exchange, head }: Upgrading, agreed: Agreed): Promise<number> {
  const { rawHeaders, headers } = agreed.answer
  exchange.response.detachSocket(client as never)
  const lines = [
    'HTTP/1.1 101 Switching Protocols',
    `Audit-Id: ${exchange.auditId}`,
    'Connection: Upgrade',
    `Upgrade: ${headers.upgrade}`,
  ]
  const kept = answerHeaders(rawHeaders, headers.connection)
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
