// Free ports for programs that need a fixed port. All others listen on port 0.

import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer } from 'node:net'

// Below the range of outgoing connections, which could take a port between the search and its use.
const [first, last] = [10_000, 32_000]

/** Reserves a port until this process ends. It holds the UDP port of the same number, so that other test processes do not choose it. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = first + Math.floor(Math.random() * (last - first))
    if ((await isHeld(port)) && (await nobodyListens(port))) return port
  }
}

const isHeld = (port: number) => {
  const token = createSocket('udp4')
  token.bind({ port, address: '127.0.0.1', exclusive: true }).unref()
  return succeeds(token)
}

async function nobodyListens(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1')
  if (!(await succeeds(server))) return false
  server.close()
  await once(server, 'close')
  return true
}

const succeeds = (one: NodeJS.EventEmitter) =>
  once(one, 'listening').then(
    () => true,
    () => false,
  )
