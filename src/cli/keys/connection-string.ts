// Makes the part of a connection string after the key: the server and the CA that the session trusts.

import type { X509Certificate } from 'node:crypto'
import { type Io, UsageError } from '../../host/command.ts'
import { certificatesIn, fetchCertificates, fingerprintOf, type PeerCertificates } from '../login/trust.ts'
import type { Session } from '../session.ts'

/** Call it before the key is created, because it throws if no connection string can work. Empty for other outputs. */
export async function connectionAddress(
  io: Io,
  { server, ca }: Pick<Session, 'server' | 'ca'>,
  output: string,
): Promise<string> {
  if (output !== 'connection') return ''
  if (!ca || !server.startsWith('https:')) return `@${server}`
  const seen = await fetchCertificates(server, io.env)
  const roots = certificatesIn(ca).filter(one => one.checkIssued(one))
  const sent = roots.find(root => seen.chain.some(one => fingerprintOf(one) === fingerprintOf(root)))
  if (sent) return `@${server}#${fingerprintOf(sent)}`
  // A fingerprint alone cannot work: the other side would have nothing to compare it with.
  const signer = roots.find(root => isSignedBy(root, seen))
  if (signer) return `@${server}#ca:${signer.raw.toString('base64url')}`
  throw new UsageError([
    `${server} sends an incomplete chain of certificates, so no connection string can work: add the intermediate certificates to --tls-cert of the server, or use -o value with PLATFORM_SERVER and PLATFORM_CA_FILE`,
  ])
}

const isSignedBy = (root: X509Certificate, { chain }: PeerCertificates) =>
  chain.some(one => one.checkIssued(root) && one.verify(root.publicKey))
