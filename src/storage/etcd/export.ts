// Reads an installation in etcd as records at one revision, for backups and migrations.

import type { Buffer } from 'node:buffer'
import { status } from '@grpc/grpc-js'
import { cachedEntry } from '../entry.ts'
import { describeKey, type Files, idOf, type StoredRecord } from '../records.ts'
import type { Key, Value } from '../store.ts'
import { type EtcdClient, EtcdError } from './client.ts'
import { keysBelow } from './keys.ts'
import { readSnapshot } from './snapshot.ts'
import { decodeValue } from './value.ts'

export type ReadOptions = {
  readonly client: Pick<EtcdClient, 'range'>
  readonly prefix: string
  readonly offset: number
  /** The files in the record of the CA, which is encrypted. */
  readonly openFiles?: ((record: Buffer) => Files) | undefined
  readonly now: () => number
}

/** Reads one revision, while replicas write. */
export async function* readInstallation(options: ReadOptions): AsyncGenerator<StoredRecord> {
  try {
    yield* recordsOf(options)
  } catch (error) {
    if (!(error instanceof EtcdError && error.code === status.OUT_OF_RANGE)) throw error
    throw new Error('etcd compacted the revision before it was read completely. Retry, on a faster connection', {
      cause: error,
    })
  }
}

async function* recordsOf({ client, prefix, offset, openFiles, now }: ReadOptions): AsyncGenerator<StoredRecord> {
  const keys = keysBelow(prefix)
  const { kvs, header } = await client.range({ key: keys.ofRecord('serving-ca') })
  const newest = header?.revision ?? 0
  const time = now()
  yield [['begin', newest + offset, time]]
  if (openFiles && kvs[0])
    for (const [name, bytes] of Object.entries(openFiles(kvs[0].value))) yield [['file', name], bytes]
  let objects = 0
  const slots = new Map<number, number>()
  for await (const page of readSnapshot(client, keys.objects, newest))
    for (const { key: stored, modRevision, value } of page) {
      const key = keys.objectOf(stored)!
      const revision = modRevision + offset
      const slot = slots.get(revision) ?? 0
      slots.set(revision, slot + 1)
      const { text, gap } = cachedEntry(key, revision, decoded(key, value), undefined)
      yield [['object', idOf(revision, slot), key.bucket, key.namespace, key.name, 0, gap, time], text]
      objects++
    }
  for await (const page of readSnapshot(client, keys.times, newest))
    for (const { key, value } of page) yield [['time', keys.timeOf(key)!, Number(value.toString())]]
  yield [['end', objects]]
}

function decoded(key: Key, value: Buffer): Value {
  try {
    return decodeValue(value)
  } catch (error) {
    throw new Error(`${describeKey(key)}: ${(error as Error).message}`, { cause: error })
  }
}
