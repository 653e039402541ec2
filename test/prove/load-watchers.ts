// Two thousand watchers of all changes, some that never read, and the delay of the others.

import { createConnection } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { startServer } from '../support/server.ts'
import { type Latencies, openLatencies, waitFor } from './latencies.ts'
import { openLeanClient } from './lean-client.ts'
import { teams, teamText } from './observed-teams.ts'
import { vitalsOf } from './process-health.ts'

export type Watched = {
  readonly watchers: number
  readonly events: number
  readonly told: number
  readonly late: Latencies
  /** The number of disconnected clients among those that never read. */
  readonly slow: number
  readonly cut: number
  /** Resident memory, in bytes. */
  readonly grown: number
}

const perSecond = 5
const big = 'x'.repeat(60_000)

export async function runWatchers({ watchers = 2000, events = 200, slow = 20 } = {}): Promise<Watched> {
  const server = await startServer({ storage: 'sqlite', args: ['--audit-log', 'off'] })
  const to = { url: server.http, key: server.adminKey }
  const writer = openLeanClient(to)
  const late = openLatencies()
  let newest = 0
  let told = 0
  let open = 0
  const take = (line: string) => {
    if (line.startsWith('{"type":"BOOKMARK"')) {
      open++
      return
    }
    told++
    late.add(performance.now() - newest)
  }
  try {
    const { resident } = await vitalsOf(server)
    await writer.ask('POST', teams, teamText('big', big, 'blue'))
    const path = `${teams}?watch=true&labelSelector=color%3Dred&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true`
    const clients = Array.from({ length: watchers }, () => openLeanClient(to))
    for (const [index, client] of clients.entries()) {
      void client.follow(path, take).catch(() => {})
      if (index % 50 === 49) await pause(5)
    }
    await waitFor(() => open >= watchers, 60_000)
    const before = resident()
    const deaf = openDeaf(server.http, server.adminKey, slow)
    for (let count = 0; count < 150; count++)
      await writer.ask(
        'PATCH',
        `${teams}/big`,
        `{"spec":{"description":"${count}${big}"}}`,
        'application/merge-patch+json',
      )
    for (let count = 0; count < events; count++) {
      const wanted = told + watchers
      newest = performance.now()
      await writer.ask('POST', teams, teamText(`e${count}`, 'x', 'red'))
      // The next event follows when all have received this one, so that no event is mistaken for another.
      await waitFor(() => told >= wanted, 10_000)
      await pause(Math.max(0, 1000 / perSecond - (performance.now() - newest)))
    }
    await waitFor(() => told >= watchers * events, 10_000)
    await waitFor(() => deaf.cut() >= slow, 45_000)
    const grown = resident() - before
    for (const client of clients) client.close()
    return { watchers, events, told, late, slow, cut: deaf.cut(), grown }
  } finally {
    writer.close()
    await server.kill()
  }
}

/** These clients request the large object and read nothing. A write shows whether the server has closed the connection. */
function openDeaf(url: string, key: string, count: number) {
  const { hostname, port, host } = new URL(url)
  const path = `${teams}?watch=true&fieldSelector=metadata.name%3Dbig`
  let cut = 0
  const sockets = Array.from({ length: count }, () => {
    const socket = createConnection({ host: hostname, port: Number(port) })
    socket.on('error', () => {})
    socket.on('close', () => cut++)
    socket.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${key}\r\n\r\n`)
    socket.pause()
    return socket
  })
  return {
    cut() {
      // A write to a closed peer gets a reset, which a socket that does not read would not notice.
      for (const socket of sockets) if (!socket.destroyed) socket.write('\r\n')
      return cut
    },
  }
}
