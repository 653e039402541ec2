// The token behind an access key that a machine got at /auth/token, as the server records it on the object (D67).
// Only the server writes this annotation (D26).

import type { Resource } from '../api/object.ts'

/** On a key that was exchanged for a token of an external issuer. */
export const machineAnnotation = 'platform.sh/issuer'

/**
 * Seconds that the server keeps the key after its expiry. Pipelines create many, so this is shorter than for other keys. It is longer than
 * the clocks of gateways may differ: the deletion of a key that may still have valid tokens writes a revocation.
 */
export const machineKeyKeptFor = 600

/** The entry of auth.yaml that accepted the token. The key ends when the entry no longer accepts it. */
export type MachineRecord = {
  /** Name of the entry. */
  readonly name: string
  /** URL of the issuer. */
  readonly url: string
  /** The audiences of the token that the entry had. */
  readonly audiences: readonly string[]
  /** Of the rules, the mapping and the scope of the entry. */
  readonly stamp: string
  readonly uid?: string
  readonly extra?: { readonly [key: string]: readonly string[] }
}

export function machineRecordOf({ metadata }: Pick<Resource, 'metadata'>): MachineRecord | undefined {
  const written = metadata.annotations?.[machineAnnotation]
  return written === undefined ? undefined : (JSON.parse(written) as MachineRecord)
}

/** Every machine of an entry has this group, so that one revocation ends all of its direct-cluster tokens. */
export const issuerGroup = (name: string): string => `platform:issuer:${name}`
