// Verifies license files, which are signed with Ed25519 and list the allowed enterprise features.

import { createPublicKey, verify } from 'node:crypto'
import { canonical, decode } from '../../api/codec.ts'
import { DecodeError } from '../../api/json-reader.ts'
import { isObject, type Json, type JsonObject } from '../../api/object.ts'

export type License = {
  readonly id: string
  readonly holder: string
  readonly features: readonly string[]
  /** For evaluation only; causes a warning at every start. */
  readonly development: boolean
  readonly notBefore?: string
  readonly expires?: string
  /** Name of the signing key. */
  readonly key: string
}

/** SPKI in base64, by name. The private keys are not in this repository. */
export type PublicKeys = { readonly [name: string]: string }

const ownKeys: PublicKeys = { 'platform-2026': 'MCowBQYDK2VwAyEAbktaHIO/WA0HVoSGIfMVZ0UFVfd/ASW8nfImIh3Ixa0=' }

const maxBytes = 16 * 1024
/** Tolerated clock difference for notBefore. */
const clockSkew = 24 * 3600 * 1000
export const patchesFeature = 'vcluster.patches'

export class LicenseError extends Error {}

/** Throws LicenseError. Also reads licenses outside their validity period, which `licenseProblem` reports. */
export function readLicense(bytes: Uint8Array, keys: PublicKeys = ownKeys): License {
  if (bytes.length > maxBytes) throw new LicenseError(`the file is larger than ${maxBytes} bytes`)
  const { spec, signature } = shapeOf(bytes)
  const license = licenseOf(spec)
  const key = Object.hasOwn(keys, license.key) ? keys[license.key] : undefined
  if (key === undefined) throw new LicenseError(`it is signed with the unknown key "${license.key}"`)
  const publicKey = createPublicKey({ key: Buffer.from(key, 'base64'), format: 'der', type: 'spki' })
  if (!verify(null, signedBytes(spec), publicKey, Buffer.from(signature, 'base64')))
    throw new LicenseError('invalid signature: the file was changed, or signed with another key')
  return license
}

/** The signed bytes. The first line makes the signature useless in any other context. */
export const signedBytes = (spec: Json): Buffer => Buffer.from(`license.platform.sh/v1\n${canonical(spec)}`)

/** Returns why a feature is not allowed now, or undefined if it is. */
export function licenseProblem(license: License | undefined, feature: string, now: number): string | undefined {
  if (!license)
    return 'pass a license with --license FILE or PLATFORM_LICENSE; examples/development.license is for evaluation'
  if (!license.features.includes(feature))
    return `license ${license.id} does not include ${feature} (features: ${license.features.join(', ') || 'none'})`
  if (license.notBefore !== undefined && Date.parse(license.notBefore) - clockSkew > now)
    return `license ${license.id} is not valid before ${license.notBefore}`
  if (license.expires !== undefined && Date.parse(license.expires) <= now)
    return `license ${license.id} expired at ${license.expires}`
  return undefined
}

/** Returns a warning for the start of a program. */
export function licenseWarning(license: License, now: number): string | undefined {
  if (license.development)
    return `license ${license.id} is a development license: for evaluation only, not for production`
  const days = license.expires === undefined ? undefined : (Date.parse(license.expires) - now) / 86_400_000
  if (days !== undefined && days < 30)
    return `license ${license.id} expires at ${license.expires}, in ${Math.max(0, Math.floor(days))} days`
  return undefined
}

function shapeOf(bytes: Uint8Array): { readonly spec: JsonObject; readonly signature: string } {
  let value: Json
  try {
    value = decode(bytes).value
  } catch (error) {
    if (error instanceof DecodeError) throw new LicenseError(`not valid JSON: ${error.message}`)
    throw error
  }
  if (!isObject(value) || value.apiVersion !== 'license.platform.sh/v1' || value.kind !== 'License')
    throw new LicenseError('expected apiVersion license.platform.sh/v1 and kind License')
  const { spec, signature } = value
  if (!isObject(spec) || typeof signature !== 'string') throw new LicenseError('spec or signature is missing')
  return { spec, signature }
}

function licenseOf(spec: JsonObject): License {
  const { id, holder, features, development = false, notBefore, expires, key } = spec
  const isTime = (value: unknown) =>
    value === undefined || (typeof value === 'string' && !Number.isNaN(Date.parse(value)))
  const problems = [
    ...Object.entries({ id, holder, key }).map(
      ([name, value]) => typeof value !== 'string' && `${name} must be a string`,
    ),
    (!Array.isArray(features) || features.some(one => typeof one !== 'string')) && 'features must be a list of strings',
    typeof development !== 'boolean' && 'development must be true or false',
    ...Object.entries({ notBefore, expires }).map(([name, value]) => !isTime(value) && `${name} must be a time`),
  ].filter(problem => problem !== false)
  if (problems.length) throw new LicenseError(problems.join(', '))
  return {
    id,
    holder,
    features,
    development,
    key,
    ...(notBefore ? { notBefore } : {}),
    ...(expires ? { expires } : {}),
  } as License
}
