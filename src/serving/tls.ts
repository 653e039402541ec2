// The certificate of a listener: issued by the server's own CA, or read from files and reloaded when they change.

import { X509Certificate } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { createSecureContext, type SecureContextOptions } from 'node:tls'
import { issueCertificate, type Pair } from './certificate.ts'

export interface CertificateSource {
  readonly current: Pair
  /** Calls back with every new certificate. */
  follow(changed: (pair: Pair) => void): void
  stop(): void
}

const renewBefore = 30 * 24 * 3600 * 1000
const day = 24 * 3600 * 1000

/** Issued by the server's own CA, and renewed a month before it expires. */
export function ownCertificate(authority: Pair, names: readonly string[], now: () => number): CertificateSource {
  // The chain includes the CA, so that new clients can compare its fingerprint.
  const issue = (): Pair => {
    const { certificate, key } = issueCertificate(authority, names, now())
    return { certificate: `${certificate}${authority.certificate}`, key }
  }
  let current = issue()
  let notify: (pair: Pair) => void = () => {}
  const timer = setInterval(() => {
    if (Date.parse(new X509Certificate(current.certificate).validTo) - now() > renewBefore) return
    current = issue()
    notify(current)
  }, day).unref()
  return {
    get current() {
      return current
    },
    follow: changed => {
      notify = changed
    },
    stop: () => clearInterval(timer),
  }
}

export type FileOptions = {
  readonly certificate: string
  readonly key: string
  readonly every?: number
  readonly failed: (error: unknown) => void
}

/** The problems of a certificate or key, with the file name, which OpenSSL's message lacks. */
export function pairProblems({ certificate, key }: Pair, files: Pair): string[] {
  const failing = (options: SecureContextOptions) => {
    try {
      createSecureContext(options)
      return undefined
    } catch (error) {
      return error as { readonly reason?: string }
    }
  }
  const [shown, secret] = [failing({ cert: certificate }), failing({ key })]
  const alone = [
    // For example a certificate whose key is too small: still a certificate, but unusable.
    ...(shown && isCertificate(certificate) ? [`${files.certificate} cannot be used: ${shown.reason}`] : []),
    ...(shown && !isCertificate(certificate) ? [`${files.certificate} does not contain a PEM certificate`] : []),
    ...(secret ? [`${files.key} does not contain a usable key: it must be PEM, without a passphrase`] : []),
  ]
  if (alone.length || !failing({ cert: certificate, key })) return alone
  return [`${files.certificate} and ${files.key} do not match: the certificate was issued for another key`]
}

function isCertificate(text: string): boolean {
  try {
    return Boolean(new X509Certificate(text).raw)
  } catch {
    return false
  }
}

/**
 * A certificate from files. Checks their time and size, which also detects the swapped links of mounted secrets. Ignores a pair that
 * does not match.
 */
export function fileCertificate({ certificate, key, every = 1000, failed }: FileOptions): CertificateSource {
  const stamp = () =>
    [certificate, key].map(file => (({ mtimeMs, size, ino }) => `${mtimeMs}/${size}/${ino}`)(statSync(file))).join()
  const read = (): Pair => {
    const pair = { certificate: readFileSync(certificate, 'utf8'), key: readFileSync(key, 'utf8') }
    const problems = pairProblems(pair, { certificate, key })
    if (problems.length) throw new Error(problems.join('; '))
    return pair
  }
  let seen = stamp()
  let current = read()
  let notify: (pair: Pair) => void = () => {}
  const timer = setInterval(() => {
    try {
      const now = stamp()
      if (now === seen) return
      current = read()
      seen = now
      notify(current)
    } catch (error) {
      failed(error)
    }
  }, every).unref()
  return {
    get current() {
      return current
    },
    follow: changed => {
      notify = changed
    },
    stop: () => clearInterval(timer),
  }
}
