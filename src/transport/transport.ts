// `fetch` for a cluster, with the TLS settings, credentials and time limits of its kubeconfig.

import type { Readable } from 'node:stream'
import { ApiError } from '../api/errors.ts'
import type { Access } from './cluster-config.ts'
import { abortedRequest, defaultCa, describeFailure, noAnswerWithin } from './connection-error.ts'
import { openCredentials } from './credentials.ts'
import { openBody, streamedResponse, wholeResponse } from './response.ts'
import type { Call, ResponseHead, Upstream } from './upstream.ts'
import { openUpstreams } from './upstreams.ts'

export type Transport = {
  readonly server: string
  readonly namespace: string
  /** Rejects with an ApiError: 503 if the server is unreachable, 401 if there are no credentials. */
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>
  /** Ends every connection. */
  close(): void
}

export type TransportOptions = {
  readonly env: { readonly [name: string]: string | undefined }
  readonly now: () => number
  /** Milliseconds until a response begins. */
  readonly answerWithin?: number
  /** Milliseconds without data after which a body counts as broken. */
  readonly quietFor?: number
  /** The largest response other than a watch, in bytes; default: any. A larger one rejects with 422. */
  readonly maxBytes?: number
  /** The most connections at a time; default 32. A watch occupies one. */
  readonly connections?: number
  /** The name of the setting with the CA, for error messages. */
  readonly caIs?: string
}

export function openTransport(access: Access, options: TransportOptions): Transport {
  const {
    env,
    now,
    answerWithin = 30_000,
    quietFor = 300_000,
    maxBytes = Number.POSITIVE_INFINITY,
    caIs = defaultCa,
    connections = 32,
  } = options
  const credentials = openCredentials(access, { env, now })
  const upstreams = openUpstreams(access, env, connections)

  async function once(url: string, init: RequestInit): Promise<Response> {
    const { upstream, authorization } = await credentials
      .now()
      .then(identity => ({ upstream: upstreams.to(url, identity), authorization: identity.authorization }))
      .catch(error => {
        throw new ApiError(401, 'Unauthorized', (error as Error).message)
      })
    const headers = {
      ...(init.headers as { [name: string]: string }),
      ...(authorization ? { Authorization: authorization } : {}),
    }
    return send(url, { ...init, headers }, { upstream, answerWithin, quietFor, maxBytes, caIs })
  }

  return {
    server: access.server,
    namespace: access.namespace,
    async fetch(url, init) {
      const response = await once(url, init)
      if (response.status !== 401 || !credentials.mayChange) return response
      await response.body?.cancel()
      credentials.refuse()
      return once(url, init)
    },
    close: upstreams.destroy,
  }
}

type SendOptions = {
  readonly upstream: Upstream
  readonly answerWithin: number
  readonly quietFor: number
  readonly maxBytes: number
  readonly caIs: string
}

function send(url: string, init: RequestInit, options: SendOptions): Promise<Response> {
  const { upstream, answerWithin, quietFor, maxBytes, caIs } = options
  const { origin, host, pathname, search } = new URL(url)
  const { body, signal, method = 'GET', headers } = init
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let left = maxBytes
    let head: ResponseHead | undefined
    let stream: Readable | undefined
    const settle = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
    }
    let call: Call | undefined
    const fail = (error: Error) => {
      settle()
      call?.drop()
      if (stream) stream.destroy(error)
      else reject(error)
    }
    const abort = () => fail(abortedRequest(signal?.reason))
    const quiet = () => fail(unreachable(origin, new Error(`no data for ${quietFor / 1000} s`), caIs))
    let timer = setTimeout(() => fail(unreachable(origin, noAnswerWithin(answerWithin), caIs)), answerWithin)
    call = upstream.send(
      {
        method,
        path: `${pathname}${search}`,
        headers: ['Host', host, ...Object.entries(headers as { [name: string]: string }).flat()],
        body: typeof body === 'string' ? body : undefined,
        connectWithin: answerWithin,
      },
      {
        head(answer) {
          head = answer
          clearTimeout(timer)
          timer = setTimeout(quiet, quietFor)
          if (!isWatch(url) || answer.status !== 200) return
          stream = openBody(call as Call)
          resolve(streamedResponse(answer, stream))
        },
        data(chunk) {
          timer.refresh()
          if (stream) {
            if (!stream.push(chunk)) call?.pause()
            return
          }
          left -= chunk.length
          if (left < 0) return fail(tooLarge(url, maxBytes))
          chunks.push(chunk)
        },
        end() {
          settle()
          if (stream) return void stream.push(null)
          // undici frees the connection one turn later. A caller that sends another request at once would open a second one.
          const done = () =>
            resolve(
              wholeResponse(head as ResponseHead, chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)),
            )
          queueMicrotask(() => setImmediate(done))
        },
        failed: error => fail(unreachable(origin, error, caIs)),
      },
    )
    if (signal?.aborted) abort()
    else signal?.addEventListener('abort', abort)
  })
}

const isWatch = (url: string) => /[?&]watch=(true|1)(&|$)/.test(url)

const tooLarge = (url: string, maxBytes: number) =>
  new ApiError(422, 'Invalid', `the response of ${new URL(url).origin} is larger than ${maxBytes} bytes (${url})`)

const unreachable = (origin: string, error: Error, caIs: string) =>
  Object.assign(
    new ApiError(503, 'ServiceUnavailable', `cannot reach ${origin}${describeFailure(error, origin, caIs)}`),
    {
      cause: error,
    },
  )
