// Defines the format of access keys: `plat_`, 256 random bits in base62, and a checksum that detects typos (D12).

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const pattern = /^plat_[0-9A-Za-z]{49}$/
const keyPrefix = 'plat_'

export function makeKey(random: (bytes: number) => Uint8Array): string {
  let number = 0n
  for (const byte of random(32)) number = (number << 8n) | BigInt(byte)
  const body = base62(number, 43)
  return `${keyPrefix}${body}${checksum(body)}`
}

/** Whether a generated key has a wrong checksum. Keys chosen by the caller have none. */
export function isMistyped(key: string): boolean {
  return key.startsWith(keyPrefix) && !(pattern.test(key) && checksum(key.slice(5, 48)) === key.slice(48))
}

const checksum = (body: string) => base62(BigInt(crc32(body)), 6)

function base62(number: bigint, width: number): string {
  let text = ''
  for (let rest = number; text.length < width; rest /= 62n) text = alphabet[Number(rest % 62n)] + text
  return text
}

/** CRC-32 as in zip and Ethernet. Not from node:zlib, because this module also runs in browsers. */
function crc32(text: string): number {
  let crc = 0xffffffff
  for (let index = 0; index < text.length; index++) {
    crc ^= text.charCodeAt(index)
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0)
  }
  return (crc ^ 0xffffffff) >>> 0
}
