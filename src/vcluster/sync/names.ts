// Names of objects and label keys on the host.

import { createHash } from 'node:crypto'

/** Prefix of the syncer's own labels and annotations. User keys with this prefix are hashed. */
export const METADATA_PREFIX = 'vcluster.platform.sh/'

const LIMIT = 63
const DIGITS = 10

export function hostName(name: string, namespace: string, vcluster: string): string {
  return fit(joined(name, namespace, vcluster))
}

/** The part of the host name that the name itself does not have: the namespace and the virtual cluster, or their hash. */
export function hostNameEnd(name: string, namespace: string, vcluster: string): string {
  const end = joined('', namespace, vcluster)
  const host = hostName(name, namespace, vcluster)
  return host === name + end ? end : host.slice(-DIGITS - 1)
}

/** For kinds without a readable host name: always 14 characters, starting with `v`. */
export function shortName(name: string, namespace: string, vcluster: string): string {
  return `v${base36(digest(joined(name, namespace, vcluster))).slice(0, 13)}`
}

/** Returns the key unchanged unless it has the reserved prefix. */
export function hostLabelKey(key: string, vcluster: string): string {
  if (!key.startsWith(METADATA_PREFIX)) return key
  return METADATA_PREFIX + fit(`label-${vcluster}-x-${digest(key).toString('hex').slice(0, DIGITS)}`)
}

function joined(name: string, namespace: string, vcluster: string): string {
  return `${name}-x-${namespace}-x-${vcluster}`
}

/** Replaces the end of long names by a hash: 52 characters, a dash and 10 digits make 63. */
function fit(text: string): string {
  if (Buffer.byteLength(text) <= LIMIT) return text
  const hash = digest(text).toString('hex').slice(0, DIGITS)
  return `${text.slice(0, LIMIT - DIGITS - 1)}-${hash}`.replaceAll('.-', '-')
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

/** Big-endian, with one leading zero per leading zero byte. */
function base36(bytes: Buffer): string {
  const first = bytes.findIndex(byte => byte !== 0)
  const zeros = first < 0 ? bytes.length : first
  const number = BigInt(`0x0${bytes.toString('hex')}`)
  return '0'.repeat(zeros) + (number === 0n ? '' : number.toString(36))
}
