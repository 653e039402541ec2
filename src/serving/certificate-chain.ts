// Reads certificate chains in PEM, and finds the CA that clients must trust.

import { X509Certificate } from 'node:crypto'

const pem = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

/** Throws if a certificate is invalid. */
export const certificatesIn = (text: string): readonly X509Certificate[] =>
  (text.match(pem) ?? []).map(one => new X509Certificate(one))

const signed = (issuer: X509Certificate, one: X509Certificate) =>
  one.checkIssued(issuer) && one.verify(issuer.publicKey)

/** Follows the signatures from the first certificate to one that signed itself or is in `trusted`. undefined: the chain ends before. */
export function rootOf(
  chain: readonly X509Certificate[],
  trusted: readonly X509Certificate[] = [],
): X509Certificate | undefined {
  const others = new Set([...trusted, ...chain.slice(1)])
  let [current] = chain
  while (current) {
    const below: X509Certificate = current
    if (trusted.includes(below) || signed(below, below)) return below
    current = [...others].find(one => signed(one, below))
    // Each certificate is used once, so that a cycle of signatures ends.
    if (current) others.delete(current)
  }
  return undefined
}

/** The certificate in PEM, with a line break at the end. */
export const pemOf = (certificate: X509Certificate): string => `${certificate.toString().trimEnd()}\n`
