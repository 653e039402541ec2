// A TCP proxy in front of a server, which forwards its responses slowly or late.

import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { TestContext } from 'node:test'

/** Forwards the responses of a server at a limited speed. Returns the address of the link. It closes with the test. */
export function slowLink(t: TestContext, endpoint: string, bytesPerMs: number): Promise<string> {
  let free = performance.now()
  return openLink(t, endpoint, (chunk, near, far) => {
    near.write(chunk)
    free = Math.max(free, performance.now()) + chunk.length / bytesPerMs
    const wait = free - performance.now()
    if (wait < 2) return
    far.pause()
    setTimeout(() => far.resume(), wait)
  })
}

/** Forwards the responses of a server after a delay, which is 0 at first. */
export async function lateLink(t: TestContext, endpoint: string) {
  let delay = 0
  return {
    endpoint: await openLink(t, endpoint, (chunk, near) => void setTimeout(() => near.write(chunk), delay)),
    delay: (ms: number) => {
      delay = ms
    },
  }
}

async function openLink(
  t: TestContext,
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
