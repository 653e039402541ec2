// Generates the key pair of a signing key.

import { generateKeyPairSync } from 'node:crypto'

/** ES256. The private key is JSON, to be encrypted. */
export function generateKeyPair() {
  const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return {
    publicKey: pair.publicKey.export({ format: 'jwk' }) as { [field: string]: string },
    privateKey: JSON.stringify(pair.privateKey.export({ format: 'jwk' })),
  }
}
