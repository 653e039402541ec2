// Free ports for programs that need a fixed port. Everything else listens on 0.

import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer } from 'node:net'

// Below the range of outgoing connections, whose ports any client may take between finding and using one.
const [first, last] = [10_000, 32_000]

/**
 * A port that stays ours until this process ends, though nothing listens on it yet: the UDP port of the same number is
 * held meanwhile, which keeps other test processes from choosing it too.
 */
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
