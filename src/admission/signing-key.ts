// SigningKey and SigningKeyRotation: creates the key pairs that sign direct-cluster tokens (D31).

import type { Admission } from '../api/admission.ts'
import type { ObjectOf } from '../api/kind.ts'
import { timestamp } from '../api/object.ts'
import type { SigningKey, SigningKeyRotation } from '../kinds/signing-key.ts'

type KeyDependencies = {
  readonly now: () => number
  /** Generates a key pair for signing, with the private key as JSON. */
  readonly generateKeyPair: () => {
    readonly publicKey: { readonly [field: string]: string }
    readonly privateKey: string
  }
}

export const signingKeyAdmission = ({
  now,
  generateKeyPair,
}: KeyDependencies): Admission<ObjectOf<typeof SigningKey>> => ({
  admit: async (next, old) => {
    if (old) return { object: next }
    const { signsFrom = timestamp(now()) } = next.spec ?? {}
    return { object: { ...next, spec: { signsFrom, ...generateKeyPair() } } }
  },
})

type RotationDependencies = {
  /** Creates a key that signs tokens from now on. Returns its id. */
  readonly createSigningKey: () => Promise<string>
}

export const signingKeyRotationAdmission = ({
  createSigningKey,
}: RotationDependencies): Admission<ObjectOf<typeof SigningKeyRotation>> => ({
  answer: async (next, { dryRun }) => (dryRun ? next : { ...next, status: { key: await createSigningKey() } }),
})
