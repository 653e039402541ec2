// Describes why a server is unreachable: the server itself, its certificate, or a proxy.

/** The error code if a proxy does not open a tunnel. */
export const proxyRefused = 'ERR_PROXY_REFUSED'

type Failure = Error & {
  readonly code?: string
  /** The address of the connection attempt, which is the proxy's if there is one. */
  readonly port?: number
  readonly address?: string
  readonly hostname?: string
  /** The status of a proxy's rejection. */
  readonly status?: number
}

/** The default name of the setting with the CA. */
export const defaultCa = 'certificate-authority-data'
const notTrusted = (caIs: string) => `its certificate is not trusted: ${caIs} must contain the CA that signed it`

/** The error code of a reset on a connection with a request in flight. upstream.ts sets it. */
export const brokenConnection = 'ERR_CONNECTION_RESET'
const brokenOff = ['ECONNRESET', 'EPIPE', brokenConnection, 'UND_ERR_SOCKET']

const causes: { readonly [code: string]: string | ((caIs: string) => string) } = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  EPIPE: 'connection reset',
  [brokenConnection]: 'connection reset',
  UND_ERR_SOCKET: 'connection reset',
  ENOTFOUND: 'unknown host name',
  EAI_AGAIN: 'the host name cannot be resolved at the moment',
  ETIMEDOUT: 'connection timed out',
  EHOSTUNREACH: 'no route to host',
  ENETUNREACH: 'network is unreachable',
  DEPTH_ZERO_SELF_SIGNED_CERT: notTrusted,
  SELF_SIGNED_CERT_IN_CHAIN: notTrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: notTrusted,
  UNABLE_TO_GET_ISSUER_CERT: notTrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: notTrusted,
  CERT_SIGNATURE_FAILURE: caIs => `its certificate is not trusted: the CA in ${caIs} did not sign it`,
  CERT_HAS_EXPIRED: 'its certificate has expired, or the clock of this machine is wrong',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet, or the clock of this machine is wrong',
  ERR_TLS_CERT_ALTNAME_INVALID: caIs =>
    `its certificate is for another host name: ${caIs === defaultCa ? 'use that name, or set tls-server-name' : 'use that name'}`,
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: 'it requires a client certificate',
}

/** Why a connection failed, as a code. `causes` has the messages. */
export type ConnectionProblem = 'untrusted-ca' | 'wrong-certificate' | 'timeout' | 'aborted' | 'other'

const noAnswer = 'ERR_NO_ANSWER'

/** The error for a server that does not respond in time. */
export const noAnswerWithin = (milliseconds: number): Error =>
  Object.assign(new Error(`no response within ${milliseconds / 1000} s`), { code: noAnswer })

/** The error of a request that its caller aborted. */
export const abortedRequest = (reason: unknown): Error =>
  Object.assign(new Error('the request was aborted', { cause: reason }), { name: 'AbortError', code: 'ABORT_ERR' })

/** Accepts an error of Node, or an error with such a cause. */
export function connectionProblem(error: unknown): ConnectionProblem {
  const { code = '', cause } = (error ?? {}) as { readonly code?: unknown; readonly cause?: unknown }
  if (typeof code !== 'string' || !(code in causes || code === noAnswer || code.startsWith('HPE_')))
    return cause === undefined ? 'other' : connectionProblem(cause)
  if (code === 'ETIMEDOUT' || code === noAnswer) return 'timeout'
  if (brokenOff.includes(code) || code.startsWith('HPE_')) return 'aborted'
  if (['CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID', 'ERR_TLS_CERT_ALTNAME_INVALID'].includes(code))
    return 'wrong-certificate'
  return causes[code] === notTrusted || code === 'CERT_SIGNATURE_FAILURE' ? 'untrusted-ca' : 'other'
}

/** undefined: an unknown code. */
export function causeOf({ code = '' }: { readonly code?: string }, caIs = defaultCa): string | undefined {
  const cause = causes[code]
  return typeof cause === 'function' ? cause(caIs) : cause
}

/** Begins with `: `, or with the proxy in between. */
export function describeFailure(error: Failure, server: string, caIs = defaultCa): string {
  if (error.code === proxyRefused)
    return `: the proxy rejected the connection with status ${error.status}${error.status === 407 ? ` Proxy Authentication Required${hint}` : ''}`
  const why = /wrong version number|packet length too long|record overflow/.test(error.message)
    ? 'the port does not speak TLS; it may serve plain HTTP (http://)'
    : (causeOf(error, caIs) ?? ofTls(error) ?? error.message)
  return `${proxyOf(error, server)}: ${why}`
}

/** OpenSSL's message has the reason between its own source positions. */
function ofTls({ message }: Failure): string | undefined {
  const [, reason] = /:error:[0-9A-F]+:[^:]*:[^:]*:([^:]+):/.exec(message) ?? []
  return reason === undefined ? undefined : `the TLS handshake failed: ${reason}`
}

const hint = '; set the proxy credentials with HTTPS_PROXY=http://USER:PASSWORD@HOST:PORT'

function proxyOf({ port, address, hostname }: Failure, server: string): string {
  const own = new URL(server)
  if (port !== undefined && String(port) !== (own.port || (own.protocol === 'https:' ? '443' : '80')))
    return ` through the proxy ${address ?? hostname}:${port}`
  return hostname !== undefined && hostname !== own.hostname ? ` through the proxy ${hostname}` : ''
}
