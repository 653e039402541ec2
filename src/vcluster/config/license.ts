// Verifies license files, which are signed with Ed25519 and list the allowed enterprise features.

import { createPublicKey, verify } from 'node:crypto'
import { canonical, decode } from '../../api/codec.ts'
import { DecodeError } from '../../api/json-reader.ts'
import { isObject, type Json, type JsonObject } from '../../api/object.ts'
import { plain, quoted } from '../../host/sanitize.ts'

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

/** SPKI in base64, by name. */
export type PublicKeys = { readonly [name: string]: string }

/** The keys of the program. Their private keys are not in this repository. */
const ownKeys: PublicKeys = { 'platform-2026': 'MCowBQYDK2VwAyEAbktaHIO/WA0HVoSGIfMVZ0UFVfd/ASW8nfImIh3Ixa0=' }

const maxBytes = 16 * 1024
/** Tolerated clock difference for notBefore. */
const clockSkew = 24 * 3600 * 1000
export const patchesFeature = 'vcluster.patches'
export const knownFeatures: readonly string[] = [patchesFeature]
export const licenseVersion = 'license.platform.sh/v1'

/** Stable codes, which messages contain and docs/SYNCER.md lists. */
export type LicenseCode =
  | 'LicenseMissing'
  | 'LicenseDamaged'
  | 'LicenseUnknownKey'
  | 'LicenseUnknownFeature'
  | 'LicenseFeatureMissing'
  | 'LicenseNotYetValid'
  | 'LicenseExpired'

export class LicenseError extends Error {
  readonly code: LicenseCode
  constructor(code: LicenseCode, message: string) {
    super(message)
    this.code = code
  }
}

export type LicenseProblem = { readonly code: LicenseCode; readonly message: string }

const damaged = (message: string) => new LicenseError('LicenseDamaged', message)

/** Throws LicenseError. Also reads licenses outside their validity period, which `licenseProblem` reports. */
export function readLicense(bytes: Uint8Array, trusted: PublicKeys = {}): License {
  if (bytes.length > maxBytes) throw damaged(`the file is larger than ${maxBytes} bytes`)
  const { spec, signature } = shapeOf(bytes)
  const license = licenseOf(spec)
  const keys = new Map([...Object.entries(trusted), ...Object.entries(ownKeys)])
  const key = keys.get(license.key)
  if (key === undefined)
    throw new LicenseError(
      'LicenseUnknownKey',
      `it is signed with the unknown key ${quoted(plain(license.key))}; pass the public key of the issuer with --license-trust FILE`,
    )
  const publicKey = createPublicKey({ key: Buffer.from(key, 'base64'), format: 'der', type: 'spki' })
  if (!verify(null, signedBytes(spec), publicKey, Buffer.from(signature, 'base64')))
    throw damaged('invalid signature: the file was changed, or signed with another key')
  return license
}

/** The signed bytes. The first line makes the signature useless in any other context. */
export const signedBytes = (spec: Json): Buffer => Buffer.from(`${licenseVersion}\n${canonical(spec)}`)

/** Returns why a feature is not allowed now, or undefined if it is. */
export function licenseProblem(license: License | undefined, feature: string, now: number): LicenseProblem | undefined {
  if (!license)
    return {
      code: 'LicenseMissing',
      message: 'pass a license with --license FILE or PLATFORM_LICENSE; examples/development.license is for evaluation',
    }
  if (!license.features.includes(feature))
    return {
      code: 'LicenseFeatureMissing',
      message: `license ${license.id} does not include ${feature} (features: ${license.features.join(', ') || 'none'})`,
    }
  return periodProblem(license, now)
}

/** Like `licenseProblem`, but for any known feature. */
export function anyFeatureProblem(license: License, now: number): LicenseProblem | undefined {
  const unknown = unknownFeatures(license)
  if (unknown.length && unknown.length === license.features.length)
    return {
      code: 'LicenseUnknownFeature',
      message: `license ${license.id} has only features that this version does not know: ${unknown.join(', ')}`,
    }
  return license.features.length ? periodProblem(license, now) : licenseProblem(license, patchesFeature, now)
}

const unknownFeatures = ({ features }: License) => features.filter(one => !knownFeatures.includes(one))

function periodProblem({ id, notBefore, expires }: License, now: number): LicenseProblem | undefined {
  if (notBefore !== undefined && Date.parse(notBefore) - clockSkew > now)
    return { code: 'LicenseNotYetValid', message: `license ${id} is not valid before ${notBefore}` }
  if (expires !== undefined && Date.parse(expires) <= now)
    return { code: 'LicenseExpired', message: `license ${id} expired at ${expires}` }
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
    if (error instanceof DecodeError) throw damaged(`not valid JSON: ${error.message}`)
    throw error
  }
  if (!isObject(value) || value.apiVersion !== licenseVersion || value.kind !== 'License')
    throw damaged('expected apiVersion license.platform.sh/v1 and kind License')
  const { spec, signature } = value
  if (!isObject(spec) || typeof signature !== 'string') throw damaged('spec or signature is missing')
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
  if (problems.length) throw damaged(problems.join(', '))
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
