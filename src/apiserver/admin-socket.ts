// The Unix socket in the data directory for commands on the host. The permission of the file is the authorization.

import { once } from 'node:events'
import { chmodSync, rmSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { ApiError } from '../api/errors.ts'
import type { Json } from '../api/object.ts'
import type { EmergencyKey } from './emergency-key.ts'

// Not imported: see src/serving/listener.ts.
const { createServer } = process.getBuiltinModule('node:http')

const within = 5000
const maxBody = 4096
const drainWithin = 1000

export const adminSocketIn = (directory: string) => join(directory, 'admin.sock')

/** The operating system limits the path of a socket: 108 bytes on Linux, 104 on others, with a zero at the end. */
export const isTooLong = (path: string) => Buffer.byteLength(path) > (process.platform === 'linux' ? 107 : 103)

type Options = {
  readonly directory: string
  readonly issue: (body: Json) => Promise<EmergencyKey>
  readonly log: Logger
}

/** Without the socket, the server runs and warns. Returns the function that closes it. */
export async function openAdminSocket({ directory, issue, log }: Options): Promise<() => Promise<void>> {
  const path = adminSocketIn(directory)
  const unavailable = (reason: string) => {
    log.warn({ file: path, reason }, 'emergency keys are not available')
    return async () => {}
  }
  if (isTooLong(path)) return unavailable('the path is too long for a socket; use a shorter data directory')
  if (await isLive(path)) return unavailable('another server uses the socket')
  const limits = {
    maxHeaderSize: 8192,
    headersTimeout: within,
    requestTimeout: within,
    connectionsCheckingInterval: 500,
  }
  const server = createServer(limits, (request, response) => void respond(request, response))
  server.maxConnections = 16
  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [status, body] = await answer(request).then(
      key => [201, key] as const,
      error => {
        if (error instanceof ApiError) return [error.code, { message: error.message }] as const
        log.error({ err: error }, 'issuing an emergency key failed')
        return [500, { message: 'internal error; see the log of the server' }] as const
      },
    )
    response.writeHead(status, { 'Content-Type': 'application/json', Connection: 'close' }).end(JSON.stringify(body))
  }
  async function answer(request: IncomingMessage): Promise<EmergencyKey> {
    if (request.url !== '/emergency-key') throw new ApiError(404, 'NotFound', 'unknown path')
    if (request.method !== 'POST') throw new ApiError(405, 'MethodNotAllowed', 'use POST')
    return issue(await bodyOf(request))
  }
  try {
    rmSync(path, { force: true })
    // The socket must not be open to others even for a moment. Node binds it before listen() returns.
    const umask = process.umask(0o177)
    try {
      server.listen(path)
    } finally {
      process.umask(umask)
    }
    await once(server, 'listening')
    chmodSync(path, 0o600)
  } catch (error) {
    server.close()
    return unavailable((error as Error).message)
  }
  return async () => {
    const timer = setTimeout(() => server.closeAllConnections(), drainWithin)
    await new Promise(resolve => server.close(resolve))
    clearTimeout(timer)
  }
}

/** A killed server leaves its socket, which accepts no connection. */
async function isLive(path: string): Promise<boolean> {
  const socket = connect(path)
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

async function bodyOf(request: IncomingMessage): Promise<Json> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size <= maxBody) chunks.push(chunk)
    else if (size > 16 * maxBody) break
  }
  if (size > maxBody) throw new ApiError(413, 'RequestEntityTooLarge', `the body has more than ${maxBody} bytes`)
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8')) as Json
  } catch {
    throw new ApiError(400, 'BadRequest', 'the body is not JSON')
  }
}
