// Waits on a random loopback port for the browser to return with a one-time code (RFC 8252).

import { hash, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Callback = {
  /** undefined: the person refused. */
  readonly code: string | undefined
  /** Resolves when the connection of the browser has ended. */
  readonly gone: Promise<void>
  /** Shows the result in the browser, and waits until it has the page or is gone. */
  answer(isSuccess: boolean): Promise<void>
}

export type CallbackListener = {
  readonly port: number
  /** The first request to /callback with the state, and a code or a denial. All other requests get 404. */
  readonly received: Promise<Callback>
  close(): void
}

export async function listenForCallback(state: string): Promise<CallbackListener> {
  const { promise: received, resolve } = Promise.withResolvers<Callback>()
  let isReceived = false
  const server = createServer((request, response) => {
    const found = isReceived ? undefined : resultIn(request, port, state)
    if (!found) {
      send(response, 404, 'Not found')
      return
    }
    isReceived = true
    // The browser may leave before the answer.
    const { promise: gone, resolve: end } = Promise.withResolvers<void>()
    response.once('close', end)
    resolve({
      ...found,
      gone,
      answer(isSuccess) {
        if (found.code === undefined) send(response, 200, 'The sign-in was cancelled', 'You can close this window.')
        else if (isSuccess)
          send(response, 200, 'You are signed in', 'You can close this window and return to the terminal.')
        else send(response, 400, 'The sign-in failed', 'The terminal shows the reason. You can close this window.')
        return gone
      },
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    port,
    received,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** A page of another site knows neither the state nor, after a change of its DNS records, the right Host. */
function resultIn(
  { method, url = '', headers }: IncomingMessage,
  port: number,
  state: string,
): Pick<Callback, 'code'> | undefined {
  const [path, query = ''] = url.split('?', 2)
  if (method !== 'GET' || path !== '/callback' || headers.host !== `127.0.0.1:${port}`) return undefined
  const given = new URLSearchParams(query)
  if (!isSame(given.get('state') ?? '', state)) return undefined
  const code = given.get('code')
  if (code) return { code }
  return given.get('error') === 'access_denied' ? { code: undefined } : undefined
}

const digest = (text: string) => Buffer.from(hash('sha256', text, 'hex'))
const isSame = (one: string, other: string) => timingSafeEqual(digest(one), digest(other))

function send(response: ServerResponse, code: number, title: string, text = ''): void {
  response.writeHead(code, {
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'; base-uri 'none'",
    'Cache-Control': 'no-store',
    'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
    Connection: 'close',
  })
  response.end(
    `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title}</title><h1>${title}</h1><p>${text}</p></html>\n`,
  )
}
