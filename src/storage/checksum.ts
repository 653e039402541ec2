// The checksum of every record, over its key, revision and bytes, which detects flipped bits.

import { crc32 } from 'node:zlib'

/** CRC-32 detects every change within four neighbouring bytes. Authenticated encryption detects deliberate changes (D28). */
export function sumOf(fields: readonly (string | number)[], bytes?: Uint8Array | null): number {
  const head = crc32(JSON.stringify(fields))
  return bytes ? crc32(bytes, head) : head
}
