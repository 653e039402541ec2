// The enterprise gate: a licence file, signed with Ed25519, says which features may be used. Nothing else is gated.

import { createPublicKey, verify } from 'node:crypto'
import { canonical, decode } from '../../api/codec.ts'
import { DecodeError } from '../../api/json-reader.ts'
import { isObject, type Json, type JsonObject } from '../../api/object.ts'

export type Licence = {
  readonly id: string
  readonly holder: string
  readonly features: readonly string[]
  /** Made for trying things out; says so at every start. */
  readonly development: boolean
  readonly notBefore?: string
  readonly expires?: string
  /** Which key signed it. */
  readonly key: string
}

/** SPKI in base64, by name. The private halves are nowhere in this repository. */
export type PublicKeys = { readonly [name: string]: string }

const ownKeys: PublicKeys = { 'platform-2026': 'MCowBQYDK2VwAyEAbktaHIO/WA0HVoSGIfMVZ0UFVfd/ASW8nfImIh3Ixa0=' }

const mostBytes = 16 * 1024
/** Clocks may be apart by so much before a new licence is refused. */
const slack = 24 * 3600 * 1000
export const patchesFeature = 'vcluster.patches'

export class LicenceError extends Error {}

/** Throws LicenceError. A licence that is expired, or not valid yet, is read all the same: `whyNot` tells. */
export function readLicence(bytes: Uint8Array, keys: PublicKeys = ownKeys): Licence {
  if (bytes.length > mostBytes) throw new LicenceError(`it has more than ${mostBytes} bytes`)
  const { spec, signature } = shapeOf(bytes)
  const licence = licenceOf(spec)
  const key = Object.hasOwn(keys, licence.key) ? keys[licence.key] : undefined
  if (key === undefined)
    throw new LicenceError(`it is signed with the key "${licence.key}", which this program does not know`)
  const publicKey = createPublicKey({ key: Buffer.from(key, 'base64'), format: 'der', type: 'spki' })
  if (!verify(null, signedBytes(spec), publicKey, Buffer.from(signature, 'base64')))
    throw new LicenceError('its signature does not fit: it was changed after it was signed, or signed with another key')
  return licence
}

/** What is signed. The first line keeps a signature from meaning anything elsewhere. */
export const signedBytes = (spec: Json): Buffer => Buffer.from(`license.platform.sh/v1\n${canonical(spec)}`)

/** Why a feature may not be used at this time; undefined: it may. */
export function whyNot(licence: Licence | undefined, feature: string, now: number): string | undefined {
  if (!licence)
    return 'give a licence with --license FILE or PLATFORM_LICENSE; examples/development.license is one for trying things out'
  if (!licence.features.includes(feature))
    return `the licence ${licence.id} has ${licence.features.join(', ') || 'no features'}, and not ${feature}`
  if (licence.notBefore !== undefined && Date.parse(licence.notBefore) - slack > now)
    return `the licence ${licence.id} counts from ${licence.notBefore} on`
  if (licence.expires !== undefined && Date.parse(licence.expires) <= now)
    return `the licence ${licence.id} ended at ${licence.expires}`
  return undefined
}

/** What whoever starts a program with it should read. */
export function licenceWarning(licence: Licence, now: number): string | undefined {
  if (licence.development)
    return `the licence ${licence.id} is a development licence: it is for trying things out, not for production`
  const days = licence.expires === undefined ? undefined : (Date.parse(licence.expires) - now) / 86_400_000
  if (days !== undefined && days < 30)
    return `the licence ${licence.id} ends at ${licence.expires}, in ${Math.max(0, Math.floor(days))} days`
  return undefined
}

function shapeOf(bytes: Uint8Array): { readonly spec: JsonObject; readonly signature: string } {
  let value: Json
  try {
    value = decode(bytes).value
  } catch (error) {
    if (error instanceof DecodeError) throw new LicenceError(`it is no JSON: ${error.message}`)
    throw error
  }
  if (!isObject(value) || value.apiVersion !== 'license.platform.sh/v1' || value.kind !== 'License')
    throw new LicenceError('it must say apiVersion license.platform.sh/v1 and kind License')
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
      ([name, value]) => typeof value !== 'string' && `${name} must be a text`,
    ),
    (!Array.isArray(features) || features.some(one => typeof one !== 'string')) && 'features must be a list of texts',
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
