// The format of a backup: the records of a store at one revision, as an encrypted stream. It is the same for all engines.

import { openStream, sealStream } from './encrypted-stream.ts'
import type { RingKey } from './key-ring.ts'
import type { Fields, Records, StoredRecord } from './records.ts'

const PIECE = 256 * 1024

export const writeBackup = (
  records: Records,
  key: RingKey,
  random: (size: number) => Uint8Array,
): AsyncGenerator<Buffer> => sealStream(pieces(records), key, random)

/** A record: the size of its fields, the size of its bytes, then both. A piece has many records. */
async function* pieces(records: Records): AsyncGenerator<Buffer> {
  let parts: Uint8Array[] = []
  let size = 0
  for await (const [fields, bytes = new Uint8Array()] of records) {
    const json = Buffer.from(JSON.stringify(fields))
    const sizes = Buffer.alloc(8)
    sizes.writeUInt32BE(json.length, 0)
    sizes.writeUInt32BE(bytes.length, 4)
    parts.push(sizes, json, bytes)
    size += 8 + json.length + bytes.length
    if (size < PIECE) continue
    yield Buffer.concat(parts)
    parts = []
    size = 0
  }
  if (size > 0) yield Buffer.concat(parts)
}

/** Throws if the backup was changed, or if no key of the ring encrypted it. */
export async function* readBackup(
  source: AsyncIterable<Uint8Array>,
  keys: readonly RingKey[],
): AsyncGenerator<StoredRecord> {
  for await (const piece of openStream(source, keys)) yield* recordsIn(piece)
}

/** The records of a decrypted piece. Throws if it does not have the form that `pieces` writes. */
export function* recordsIn(piece: Buffer): Generator<readonly [Fields, Buffer]> {
  for (let at = 0; at < piece.length; ) {
    const [json, bytes] = [piece.readUInt32BE(at), piece.readUInt32BE(at + 4)]
    const start = at + 8 + json
    if (start + bytes > piece.length) throw new Error('the record is longer than its chunk')
    yield [fieldsIn(piece.toString('utf8', at + 8, start)), piece.subarray(start, start + bytes)]
    at = start + bytes
  }
}

/** Hides the parser's own message, which would quote the decrypted text. */
function fieldsIn(json: string): Fields {
  try {
    return JSON.parse(json) as Fields
  } catch {
    throw new Error('the fields of the record are not JSON')
  }
}
