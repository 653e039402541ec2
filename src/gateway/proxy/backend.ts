// Defines the backend of a cluster and its errors. Every error names the hop that failed.

import { ApiError } from '../../api/errors.ts'
import type { Request } from '../../serving/exchange.ts'
import type { Upstream } from '../../transport/upstream.ts'
import type { Principal } from '../auth/principal.ts'
import type { ConnectHttp2 } from './http2-connect.ts'

export type Backend = {
  /** As text, such as `cluster prod`. */
  readonly name: string
  /** URL without a trailing slash; may have a path. */
  readonly server: string
  /** Rejects with a message if the gateway has no credentials of its own. */
  now(): Ready | Promise<Ready>
  /** Call after the cluster rejected the credentials. Returns whether the next ones may differ. */
  refuse(): boolean
  /** The reason of a failed request, as text for clients. */
  why(error: Error): string
  /**
   * Returns an Authorization header for the caller. Set if the backend is another gateway, which authenticates the caller itself.
   * The request then has no impersonation headers. Throws ApiError.
   */
  readonly identify?: ((who: Identification) => Promise<string>) | undefined
}

export type Identification = {
  readonly principal: Principal
  readonly request: Request
  readonly isLong: boolean
  /** Whether the backend has just rejected the header of this caller. */
  readonly isAgain: boolean
}

/** The gateway's current credentials for a cluster. */
export type Ready = {
  /** Sends requests over HTTP/1.1. */
  readonly upstream: Pick<Upstream, 'send' | 'renew'>
  readonly authorization: string | undefined
  /** Opens a connection that prefers HTTP/2. Absent without TLS and behind a proxy. */
  readonly connectHttp2?: ConnectHttp2 | undefined
  /** Aborted when these credentials or connections are no longer used. */
  readonly retired?: AbortSignal | undefined
}

/** The backend of a target. `namespace`: of a space. `ended`: aborted when open requests to it must end. */
export type Found = { readonly backend: Backend; readonly namespace?: string; readonly ended?: AbortSignal }

export type Timeouts = {
  /** Milliseconds to connect, and to wait for a response other than a stream. */
  readonly connect: number
  readonly answer: number
  /** Milliseconds for a client to read one chunk of a response other than a stream. */
  readonly take: number
}

type Failure = Error & { readonly code?: string }

/** The request had no effect, so it can be retried. */
export const notReached = ({ name, why }: Backend, error: Failure): ApiError =>
  isAboutCertificates(error.code ?? '')
    ? withCause(error, new ApiError(502, 'BadGateway', `the TLS handshake with ${name} failed: ${why(error)}`))
    : withCause(
        error,
        new ApiError(503, 'ServiceUnavailable', `${name} is unreachable: ${why(error)}`, {
          details: { retryAfterSeconds: 1 },
        }),
      )

/** The cluster reported that itself. */
export const refusedUnread = ({ name }: Backend, error: Failure): ApiError =>
  withCause(
    error,
    new ApiError(
      503,
      'ServiceUnavailable',
      `${name} rejected the request without processing it: it is overloaded or shutting down`,
      {
        details: { retryAfterSeconds: 1 },
      },
    ),
  )

export const brokenOff = ({ name, why }: Backend, error: Failure): ApiError =>
  withCause(
    error,
    new ApiError(
      502,
      'BadGateway',
      `the connection to ${name} failed before it responded: ${why(error)}; it may have processed the request`,
    ),
  )

export const notAgreed = ({ name }: Backend): ApiError =>
  new ApiError(502, 'BadGateway', `${name} rejected the upgrade without a reason`)

export const tooLate = ({ name }: Backend, milliseconds: number): ApiError =>
  new ApiError(
    504,
    'Timeout',
    `${name} did not respond within ${milliseconds / 1000} s; it may have processed the request`,
    {
      details: {},
    },
  )

export const refusedUs = ({ name, identify }: Backend): ApiError =>
  new ApiError(
    502,
    'BadGateway',
    identify
      ? `${name} rejected the token of this server: its issuer must be this server, and its clock must be right`
      : `${name} rejected the credentials of the gateway: ask the operator of the gateway to renew them`,
  )

/** A gateway whose URL leads back here would forward a request forever. */
export const loopDetected = ({ name }: Backend): ApiError =>
  new ApiError(502, 'BadGateway', `the URL of ${name} leads back to a central route: it must be that of a gateway`)

export const noCredentials = ({ name }: Backend, error: Failure): ApiError =>
  withCause(
    error,
    new ApiError(
      502,
      'BadGateway',
      `the gateway has no valid credentials for ${name}: ask the operator of the gateway; its log has the reason`,
    ),
  )

/** The cause is only for operators: it may contain paths, addresses and messages of other programs. */
const withCause = (cause: Error, error: ApiError): ApiError => Object.assign(error, { cause })

export const redirected = ({ name }: Backend): ApiError =>
  new ApiError(502, 'BadGateway', `${name} returned a redirect, which the gateway neither follows nor forwards`)

export const isAboutCertificates = (code: string) =>
  /CERT|SELF_SIGNED|UNABLE_TO_|ERR_TLS|ERR_SSL|EPROTO|HOSTNAME_MISMATCH|INVALID_(CA|PURPOSE)/.test(code)
