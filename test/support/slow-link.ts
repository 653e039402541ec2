// A TCP proxy that forwards the answers of a server at a limited speed.

import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { TestContext } from 'node:test'

/** Returns the address of the link. It closes with the test. */
export async function slowLink(t: TestContext, endpoint: string, bytesPerMs: number): Promise<string> {
  const { hostname, port } = new URL(endpoint)
  const server = createServer(near => {
    const far = connect(Number(port), hostname)
    near.pipe(far)
    far.on('data', chunk => {
      near.write(chunk)
      credit(chunk.length, far)
    })
    for (const [a, b] of [
      [near, far],
      [far, near],
    ] as const) {
      a.on('error', () => b.destroy())
      a.on('close', () => b.destroy())
    }
  })
  let free = performance.now()
  const credit = (bytes: number, far: Socket) => {
    free = Math.max(free, performance.now()) + bytes / bytesPerMs
    const wait = free - performance.now()
    if (wait < 2) return
    far.pause()
    setTimeout(() => far.resume(), wait)
  }
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
