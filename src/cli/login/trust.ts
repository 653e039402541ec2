// Whether a server is the one that is meant, before any key goes to it: looks at its certificates and at nothing else. login.ts and session.ts ask.

import { X509Certificate } from 'node:crypto'
import type { DetailedPeerCertificate, TLSSocket } from 'node:tls'
import { ApiError } from '../../api/errors.ts'
import { UsageError } from '../../host/command.ts'
import { whyNot } from '../../transport/connection-error.ts'
import { connectorTo } from '../../transport/connector.ts'
import { proxyFor } from '../../transport/proxy.ts'
import { proxyEnv, proxyNote } from '../proxy-env.ts'

type Env = { readonly [name: string]: string | undefined }
export type Seen = {
  /** The machine's own authorities vouch for it. */
  readonly isTrusted: boolean
  /** From the server's own certificate to the last that it sent. */
  readonly chain: readonly X509Certificate[]
}

const within = 10_000

/** https://host:port, without anything behind it. Plain http for this machine alone: keys would be read on the way. */
export function serverOf(text: string): string {
  const url = /^[a-z]+:\/\//i.test(text) ? text : `https://${text}`
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (!parsed?.hostname || !/^https?:$/.test(parsed.protocol))
    throw new UsageError(['the server must be a URL such as https://plane.example:8443'])
  const has = tooMuchIn(parsed)
  if (has.length) throw new UsageError([`the address has ${has.join(', and ')}: the server is ${parsed.origin} alone`])
  const isHere = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(parsed.hostname)
  if (parsed.protocol === 'http:' && !isHere)
    throw new UsageError([`${parsed.origin} is not encrypted: a key would be readable on the way; use https://`])
  return parsed.origin
}

/** What has no meaning behind or before a server's name. A password is not repeated, nor what may hold one. */
const tooMuchIn = ({ username, password, pathname, search, hash }: URL): string[] => [
  ...(username || password ? ['a user or password in it, which nobody would be asked for'] : []),
  ...(/^\/*$/.test(pathname) ? [] : [`a path, "${pathname}"`]),
  ...(search ? ['a query'] : []),
  ...(hash ? ['a fragment'] : []),
]

/** Connects without sending a request, through the proxy that requests will use, and looks at the certificates of the handshake. */
export async function lookAt(server: string, env: Env): Promise<Seen> {
  try {
    const proxy = proxyFor({ server }, proxyEnv(env, server))
    const socket = (await connectorTo({ server, insecure: true }, proxy)(within)) as TLSSocket
    const seen = { isTrusted: socket.authorized, chain: chainOf(socket.getPeerCertificate(true)) }
    socket.destroy()
    return seen
  } catch (error) {
    if (error instanceof UsageError) throw error
    const message = `cannot reach ${server}${whyNot(error as Error, server)}${proxyNote(env, server)}`
    const failed = isNoTls(error) ? untrusted(message) : new ApiError(503, 'ServiceUnavailable', message)
    throw Object.assign(failed, { cause: error })
  }
}

function chainOf(first: DetailedPeerCertificate): X509Certificate[] {
  const chain: X509Certificate[] = []
  const seen = new Set<string>()
  for (
    let one: DetailedPeerCertificate | undefined = first;
    one?.raw && !seen.has(one.fingerprint256);
    one = one.issuerCertificate
  ) {
    seen.add(one.fingerprint256)
    chain.push(new X509Certificate(one.raw))
  }
  return chain
}

export const fingerprintOf = (certificate: X509Certificate) =>
  `sha256:${certificate.fingerprint256.replaceAll(':', '').toLowerCase()}`

/** A certificate that can vouch for others, or for itself alone. */
const isAuthority = (one: X509Certificate) => one.ca || one.checkIssued(one)

/** What a person is asked to trust; undefined where the server sends its own certificate and nobody's above it. */
export const authorityIn = ({ chain }: Seen) => chain.findLast(isAuthority)

const notTrusted = 'Untrusted'

/** One rule wherever it shows: exit code 7, and whoever answers there is not somebody who is away. */
export const untrusted = (message: string) => new ApiError(503, notTrusted, message)
/** Somebody answered, and not with TLS as it should be: the proof of who it is failed. */
export const isNoTls = (error: unknown) =>
  error instanceof Error && /^(ERR_SSL_|ERR_TLS_|EPROTO$)/.test((error as NodeJS.ErrnoException).code ?? '')
export const isUntrusted = (error: ApiError) => error.status.reason === notTrusted

/** Throws where the server has no certificate with this fingerprint. */
export function withFingerprint(seen: Seen, server: string, wanted: string): X509Certificate {
  const expected = readFingerprint(wanted)
  const found = seen.chain.filter(isAuthority).find(one => fingerprintOf(one) === expected)
  if (found) return found
  const shown = authorityIn(seen)
  throw untrusted(
    `${server} is not the server that was meant: its CA is ${shown ? fingerprintOf(shown) : 'not sent along'}, expected ${expected}; nothing was sent to it`,
  )
}

/** With or without `sha256:` and colons, or the whole line of `openssl x509 -fingerprint -sha256`. Throws UsageError. */
export function readFingerprint(text: string): string {
  const plain = text
    .toLowerCase()
    .trim()
    .replace(/^sha256(:| fingerprint=)/, '')
    .replaceAll(':', '')
  if (/^[0-9a-f]{64}$/.test(plain)) return `sha256:${plain}`
  throw new UsageError([
    'the fingerprint of a CA is sha256: and 64 hexadecimal digits, as the server prints it at its first start',
  ])
}

const pem = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

/** Throws UsageError where a file has no certificate in it. With a fingerprint, the one that has it: both must hold. */
export function certificateIn(text: string, from: string, wanted?: string): string {
  const expected = wanted === undefined ? undefined : readFingerprint(wanted)
  const all = certificatesIn(text)
  if (!all.length) throw new UsageError([`${from} is no certificate in PEM form (-----BEGIN CERTIFICATE-----)`])
  if (expected === undefined) return text
  const found = all.find(one => fingerprintOf(one) === expected)
  if (found) return found.toString()
  throw untrusted(
    `${from} is not the CA that was meant: it has ${all.map(fingerprintOf).join(', ')}, expected ${expected}; nothing was sent`,
  )
}

function certificatesIn(text: string): X509Certificate[] {
  try {
    return (text.match(pem) ?? []).map(one => new X509Certificate(one))
  } catch {
    return []
  }
}
