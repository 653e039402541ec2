// Checks the certificates of a server before any key is sent to it.

import { X509Certificate } from 'node:crypto'
import type { DetailedPeerCertificate, TLSSocket } from 'node:tls'
import { ApiError } from '../../api/errors.ts'
import { UsageError } from '../../host/command.ts'
import { describeFailure } from '../../transport/connection-error.ts'
import { connectorTo } from '../../transport/connector.ts'
import { proxyFor } from '../../transport/proxy.ts'
import { proxyEnv, proxyNote } from '../proxy-env.ts'

type Env = { readonly [name: string]: string | undefined }
export type PeerCertificates = {
  /** Whether a CA of this machine signed the certificate. */
  readonly isTrusted: boolean
  /** From the server's own certificate to the last one it sent. */
  readonly chain: readonly X509Certificate[]
}

const timeoutMs = 10_000

/** Returns the origin. Allows plain http only for loopback addresses, because the key would be readable on the network. */
export function serverOf(text: string): string {
  const url = /^[a-z]+:\/\//i.test(text) ? text : `https://${text}`
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (!parsed?.hostname || !/^https?:$/.test(parsed.protocol))
    throw new UsageError(['the server must be a URL such as https://plane.example:8443'])
  const has = extraParts(parsed)
  if (has.length) throw new UsageError([`the server URL contains ${has.join(' and ')}: use ${parsed.origin}`])
  const isLoopback = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(parsed.hostname)
  if (parsed.protocol === 'http:' && !isLoopback)
    throw new UsageError([`${parsed.origin} is not encrypted: use https://, or others on the network can read the key`])
  return parsed.origin
}

/** Parts that a server URL must not have. Never repeats a password, or a query that may contain one. */
const extraParts = ({ username, password, pathname, search, hash }: URL): string[] => [
  ...(username || password ? ['a user or password'] : []),
  ...(/^\/*$/.test(pathname) ? [] : [`the path "${pathname}"`]),
  ...(search ? ['a query'] : []),
  ...(hash ? ['a fragment'] : []),
]

/** Connects without sending a request, through the proxy that requests will use, and reads the certificates of the handshake. */
export async function fetchCertificates(server: string, env: Env): Promise<PeerCertificates> {
  try {
    const proxy = proxyFor({ server }, proxyEnv(env, server))
    const socket = (await connectorTo({ server, insecure: true }, proxy)(timeoutMs)) as TLSSocket
    const seen = { isTrusted: socket.authorized, chain: chainOf(socket.getPeerCertificate(true)) }
    socket.destroy()
    return seen
  } catch (error) {
    if (error instanceof UsageError) throw error
    const message = `cannot reach ${server}${describeFailure(error as Error, server)}${proxyNote(env, server)}`
    const failed = isTlsFailure(error) ? untrusted(message) : new ApiError(503, 'ServiceUnavailable', message)
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

/** A CA or a self-signed certificate. */
const isAuthority = (one: X509Certificate) => one.ca || one.checkIssued(one)

/** The certificate to trust; undefined if the server sends no CA. */
export const authorityIn = ({ chain }: PeerCertificates) => chain.findLast(isAuthority)

const notTrusted = 'Untrusted'

/** Exit code 7, like an unreachable server, but never retried and never replaced by cached secrets. */
export const untrusted = (message: string) => new ApiError(503, notTrusted, message)
/** The server responded, but the TLS handshake failed, so its identity is unproven. */
export const isTlsFailure = (error: unknown) =>
  error instanceof Error && /^(ERR_SSL_|ERR_TLS_|EPROTO$)/.test((error as NodeJS.ErrnoException).code ?? '')
export const isUntrusted = (error: ApiError) => error.status.reason === notTrusted

/** Throws if the server sends no CA with this fingerprint. */
export function withFingerprint(seen: PeerCertificates, server: string, wanted: string): X509Certificate {
  const expected = readFingerprint(wanted)
  const found = seen.chain.filter(isAuthority).find(one => fingerprintOf(one) === expected)
  if (found) return found
  const shown = authorityIn(seen)
  throw untrusted(
    `cannot trust ${server}: its CA is ${shown ? fingerprintOf(shown) : 'missing'}, expected ${expected}; nothing was sent`,
  )
}

/** Accepts `sha256:` and colons, or the output of `openssl x509 -fingerprint -sha256`. Throws UsageError. */
export function readFingerprint(text: string): string {
  const plain = text
    .toLowerCase()
    .trim()
    .replace(/^sha256(:| fingerprint=)/, '')
    .replaceAll(':', '')
  if (/^[0-9a-f]{64}$/.test(plain)) return `sha256:${plain}`
  throw new UsageError([
    'the fingerprint of a CA must be sha256: and 64 hexadecimal digits, as the server prints it at its first start',
  ])
}

const pem = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

/** Throws UsageError if the text has no certificate. With a fingerprint, returns only the certificate that matches it. */
export function certificateIn(text: string, from: string, wanted?: string): string {
  const expected = wanted === undefined ? undefined : readFingerprint(wanted)
  const all = certificatesIn(text)
  if (!all.length) throw new UsageError([`${from} contains no PEM certificate (-----BEGIN CERTIFICATE-----)`])
  if (expected === undefined) return text
  const found = all.find(one => fingerprintOf(one) === expected)
  if (found) return found.toString()
  throw untrusted(
    `cannot trust ${from}: it contains ${all.map(fingerprintOf).join(', ')}, expected ${expected}; nothing was sent`,
  )
}

/** Empty if a certificate is invalid. */
export function certificatesIn(text: string): X509Certificate[] {
  try {
    return (text.match(pem) ?? []).map(one => new X509Certificate(one))
  } catch {
    return []
  }
}
