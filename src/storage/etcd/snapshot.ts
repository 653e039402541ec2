// Reads all values of a key range at one revision, in pages of bounded size.

import { Buffer } from 'node:buffer'
import type { EtcdClient } from './client.ts'
import type { KeyRange } from './keys.ts'
import type { KeyValue } from './rpc.generated.ts'

/**
 * Values have up to a megabyte, so the number of keys in a page follows from the size of the last page. Large pages are faster,
 * because etcd counts the remaining keys for each.
 */
const [pageBytes, minKeys, maxKeys, pageMs] = [4 * 2 ** 20, 16, 1000, 30_000]

export async function* readSnapshot(
  client: Pick<EtcdClient, 'range'>,
  { key: start, rangeEnd }: KeyRange,
  revision: number,
): AsyncGenerator<readonly KeyValue[]> {
  let key = start
  for (let limit = 256; ; ) {
    const { kvs, more } = await client.range({ key, rangeEnd, revision, limit }, pageMs)
    yield kvs
    const last = kvs.at(-1)
    if (!more || !last) return
    key = Buffer.concat([last.key, Buffer.of(0)])
    const bytes = kvs.reduce((sum, { value }) => sum + value.length, 0)
    limit = Math.min(maxKeys, limit * 4, Math.max(minKeys, Math.floor((pageBytes * kvs.length) / (bytes + 1))))
  }
}
