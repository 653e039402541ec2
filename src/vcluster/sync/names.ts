// What things are called on the host: object names and label keys. Translation, references and virtualToHostDNS call these.

import { createHash } from 'node:crypto'

/** Our own annotations and labels begin with this; a user's keys that do are hashed. */
export const MARK = 'vcluster.platform.sh/'

const LIMIT = 63
const DIGITS = 10

export function hostName(name: string, namespace: string, vcluster: string): string {
  return fit(joined(name, namespace, vcluster))
}

/** For kinds that nobody syncs by name: always 14 characters, beginning with `v`. */
export function shortName(name: string, namespace: string, vcluster: string): string {
  return `v${base36(digest(joined(name, namespace, vcluster))).slice(0, 13)}`
}

/** A label key on the host: the user's own, unless it could be taken for one of ours. */
export function hostLabelKey(key: string, vcluster: string): string {
  if (!key.startsWith(MARK)) return key
  return MARK + fit(`label-${vcluster}-x-${digest(key).toString('hex').slice(0, DIGITS)}`)
}

function joined(name: string, namespace: string, vcluster: string): string {
  return `${name}-x-${namespace}-x-${vcluster}`
}

/** What is too long ends in a part of its hash instead: 52 characters, a dash, 10 digits make 63. */
function fit(text: string): string {
  if (Buffer.byteLength(text) <= LIMIT) return text
  const hash = digest(text).toString('hex').slice(0, DIGITS)
  return `${text.slice(0, LIMIT - DIGITS - 1)}-${hash}`.replaceAll('.-', '-')
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

/** Big-endian; as many zeros in front as there are zero bytes. */
function base36(bytes: Buffer): string {
  const first = bytes.findIndex(byte => byte !== 0)
  const zeros = first < 0 ? bytes.length : first
  const number = BigInt(`0x0${bytes.toString('hex')}`)
  return '0'.repeat(zeros) + (number === 0n ? '' : number.toString(36))
}
