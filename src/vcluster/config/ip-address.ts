// Parses IP addresses into bytes and finds the IPv4 addresses that IPv6 addresses embed.

import { isIP, isIPv4 } from 'node:net'

/** Four or sixteen bytes. */
export type Bytes = readonly number[]

/**
 * Returns undefined if the text is not an address. Node rejects octal, hexadecimal and short IPv4 notations. Zone ids are rejected
 * here, because they mean nothing on another machine.
 */
export function parseAddress(text: string): Bytes | undefined {
  if (isIP(text) === 0 || text.includes('%')) return undefined
  return isIPv4(text) ? text.split('.').map(Number) : parseIPv6(text)
}

function parseIPv6(text: string): number[] {
  const plain = text.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, a, b, c, d) => {
    const hex = (high: string, low: string) => ((Number(high) << 8) | Number(low)).toString(16)
    return `${hex(a, b)}:${hex(c, d)}`
  })
  const [head = '', tail] = plain.split('::')
  const bytesOf = (groups: string) =>
    groups
      ? groups.split(':').flatMap(group => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 255])
      : []
  const [left, right] = [bytesOf(head), bytesOf(tail ?? '')]
  return [...left, ...new Array<number>(16 - left.length - right.length).fill(0), ...right]
}

const zeros = (count: number): number[] => new Array<number>(count).fill(0)
const startsWith = (bytes: Bytes, prefix: Bytes) => prefix.every((byte, index) => bytes[index] === byte)
const pick = (bytes: Bytes, ...positions: readonly number[]): Bytes => positions.map(at => bytes[at] as number)
const last = (bytes: Bytes) => pick(bytes, 12, 13, 14, 15)

/** Prefixes after which the last four bytes are an IPv4 address. */
const plainPrefixes: readonly Bytes[] = [
  [...zeros(10), 255, 255], // IPv4-mapped, ::ffff:0:0/96 (RFC 4291, 2.5.5.2)
  zeros(12), // IPv4-compatible, ::/96 (RFC 4291, 2.5.5.1)
  [...zeros(8), 255, 255, 0, 0], // IPv4-translated, ::ffff:0:0:0/96 (RFC 2765, 2.1)
  [0, 0x64, 0xff, 0x9b, ...zeros(8)], // NAT64, 64:ff9b::/96 (RFC 6052, 2.1)
]
const localNat64: Bytes = [0, 0x64, 0xff, 0x9b, 0, 1] // 64:ff9b:1::/48 (RFC 8215)
const sixToFour: Bytes = [0x20, 0x02] // 2002::/16 (RFC 3056)
const teredo: Bytes = [0x20, 0x01, 0, 0] // 2001::/32 (RFC 4380)

/** Every IPv4 address that an IPv6 address may stand for. */
export function embeddedIPv4(bytes: Bytes): readonly Bytes[] {
  if (bytes.length !== 16) return []
  const found = plainPrefixes.filter(prefix => startsWith(bytes, prefix)).map(() => last(bytes))
  if (startsWith(bytes, localNat64)) found.push(...localNat64Readings(bytes))
  if (startsWith(bytes, sixToFour)) found.push(pick(bytes, 2, 3, 4, 5))
  // The address of the server, and of the client with all bits inverted.
  if (startsWith(bytes, teredo))
    found.push(
      pick(bytes, 4, 5, 6, 7),
      last(bytes).map(byte => byte ^ 255),
    )
  if (isIsatap(bytes)) found.push(last(bytes))
  return found
}

/**
 * Operators choose the prefix length within the local-use prefix, and byte 8 is not part of the address (RFC 6052, 2.2).
 * The length is unknown here, so all readings are checked. A wrong one often starts with zeros; 0.0.0.0/8 is never routed.
 */
function localNat64Readings(bytes: Bytes): readonly Bytes[] {
  const readings = [pick(bytes, 6, 7, 9, 10), pick(bytes, 7, 9, 10, 11), pick(bytes, 9, 10, 11, 12), last(bytes)]
  return readings.filter(([first]) => first !== 0)
}

/** An interface identifier of 0000:5efe or 0200:5efe, under any prefix (RFC 5214, 6.1). */
const isIsatap = (bytes: Bytes) =>
  ((bytes[8] as number) & ~3) === 0 && bytes[9] === 0 && bytes[10] === 0x5e && bytes[11] === 0xfe
