// Issues licenses: signs their terms with the private key of the operator.

import { createPublicKey, type KeyObject, sign } from 'node:crypto'
import type { JsonObject } from '../../api/object.ts'
import { licenseVersion, signedBytes } from './license.ts'
import { keyName } from './license-keys.ts'

export type LicenseTerms = {
  readonly id: string
  readonly holder: string
  readonly features: readonly string[]
  readonly notBefore?: string
  readonly expires: string
}

/** Returns the text of the license file. */
export function issueLicense(terms: LicenseTerms, privateKey: KeyObject): string {
  const spec: JsonObject = { ...terms, features: [...terms.features], key: keyName(createPublicKey(privateKey)) }
  const signature = sign(null, signedBytes(spec), privateKey).toString('base64')
  return `${JSON.stringify({ apiVersion: licenseVersion, kind: 'License', spec, signature }, undefined, 2)}\n`
}
