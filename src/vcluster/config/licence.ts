// Verifies licence files, which are signed with Ed25519 and list the allowed enterprise features.

import { createPublicKey, verify } from 'node:crypto'
import { canonical, decode } from '../../api/codec.ts'
import { DecodeError } from '../../api/json-reader.ts'
import { isObject, type Json, type JsonObject } from '../../api/object.ts'

export type Licence = {
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

export class LicenceError extends Error {}

/** Throws LicenceError. Also reads licences outside their validity period, which `licenceProblem` reports. */
export function readLicence(bytes: Uint8Array, keys: PublicKeys = ownKeys): Licence {
  if (bytes.length > maxBytes) throw new LicenceError(`the file is larger than ${maxBytes} bytes`)
  const { spec, signature } = shapeOf(bytes)
  const licence = licenceOf(spec)
  const key = Object.hasOwn(keys, licence.key) ? keys[licence.key] : undefined
  if (key === undefined) throw new LicenceError(`it is signed with the unknown key "${licence.key}"`)
  const publicKey = createPublicKey({ key: Buffer.from(key, 'base64'), format: 'der', type: 'spki' })
  if (!verify(null, signedBytes(spec), publicKey, Buffer.from(signature, 'base64')))
    throw new LicenceError('invalid signature: the file was changed, or signed with another key')
  return licence
}

/** The signed bytes. The first line makes the signature useless in any other context. */
export const signedBytes = (spec: Json): Buffer => Buffer.from(`license.platform.sh/v1\n${canonical(spec)}`)

/** Returns why a feature is not allowed now, or undefined if it is. */
export function licenceProblem(licence: Licence | undefined, feature: string, now: number): string | undefined {
  if (!licence)
    return 'pass a licence with --license FILE or PLATFORM_LICENSE; examples/development.license is for evaluation'
  if (!licence.features.includes(feature))
    return `licence ${licence.id} does not include ${feature} (features: ${licence.features.join(', ') || 'none'})`
  if (licence.notBefore !== undefined && Date.parse(licence.notBefore) - clockSkew > now)
    return `licence ${licence.id} is not valid before ${licence.notBefore}`
  if (licence.expires !== undefined && Date.parse(licence.expires) <= now)
    return `licence ${licence.id} expired at ${licence.expires}`
  return undefined
}

/** Returns a warning for the start of a program. */
export function licenceWarning(licence: Licence, now: number): string | undefined {
  if (licence.development)
    return `licence ${licence.id} is a development licence: for evaluation only, not for production`
  const days = licence.expires === undefined ? undefined : (Date.parse(licence.expires) - now) / 86_400_000
  if (days !== undefined && days < 30)
    return `licence ${licence.id} expires at ${licence.expires}, in ${Math.max(0, Math.floor(days))} days`
  return undefined
}

function shapeOf(bytes: Uint8Array): { readonly spec: JsonObject; readonly signature: string } {
  let value: Json
  try {
    value = decode(bytes).value
  } catch (error) {
    if (error instanceof DecodeError) throw new LicenceError(`not valid JSON: ${error.message}`)
    throw error
  }
  if (!isObject(value) || value.apiVersion !== 'license.platform.sh/v1' || value.kind !== 'License')
    throw new LicenceError('expected apiVersion license.platform.sh/v1 and kind License')
  const { spec, signature } = value
  if (!isObject(spec) || typeof signature !== 'string') throw new LicenceError('spec or signature is missing')
  return { spec, signature }
}

function licenceOf(spec: JsonObject): Licence {
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
  if (problems.length) throw new LicenceError(problems.join(', '))
  return {
    id,
    holder,
    features,
    development,
    key,
    ...(notBefore ? { notBefore } : {}),
    ...(expires ? { expires } : {}),
  } as Licence
}
