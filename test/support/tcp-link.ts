// A TCP proxy in front of a server, which forwards its responses slowly or late.

import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'

/** A test, or another owner that closes its links. */
type Owner = { after(close: () => void): void }

/** Forwards the responses of a server at a limited speed. Returns the address of the link. It closes with the test. */
export function slowLink(t: Owner, endpoint: string, bytesPerMs: number): Promise<string> {
  let free = performance.now()
  return openLink(t, endpoint, (chunk, near, far) => {
    near.write(chunk)
    free = Math.max(free, performance.now()) + chunk.length / bytesPerMs
    const ahead = free - performance.now()
    if (ahead < 2) return
    far.pause()
    setTimeout(() => far.resume(), ahead)
  })
}

/** Forwards the responses of a server after a delay, which is 0 at first. */
export async function lateLink(t: Owner, endpoint: string) {
  let delayOf = (): number => 0
  const last = new Map<Socket, Promise<void>>()
  return {
    endpoint: await openLink(t, endpoint, (chunk, near) => {
      const due = wait(delayOf())
      if (!last.has(near)) near.on('close', () => last.delete(near))
      // In order, also if the delay has become shorter.
      last.set(
        near,
        Promise.all([last.get(near), due]).then(() => void near.write(chunk)),
      )
    }),
    /** A function gives the delay for each part of a response. */
    delay: (ms: number | (() => number)) => {
      delayOf = typeof ms === 'number' ? () => ms : ms
    },
    /** Breaks all connections. The server has the requests, and delayed responses are lost. */
    lose() {
      for (const near of last.keys()) near.destroy()
    },
  }
}

async function openLink(
  t: Owner,
  endpoint: string,
  respond: (chunk: Buffer, near: Socket, far: Socket) => void,
): Promise<string> {
  const { hostname, port } = new URL(endpoint)
  const server = createServer(near => {
    const far = connect(Number(port), hostname)
    near.pipe(far)
    far.on('data', chunk => respond(chunk, near, far))
    for (const [a, b] of [
      [near, far],
      [far, near],
    ] as const) {
      a.on('error', () => b.destroy())
      a.on('close', () => b.destroy())
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
