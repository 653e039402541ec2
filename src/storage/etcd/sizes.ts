// Finds objects that are too large for etcd, before anything is written.

import { Buffer } from 'node:buffer'
import { describeKey, type Fields, type Records, revisionOf } from '../records.ts'
import type { Key } from '../store.ts'
import { maxBytes } from './txn.ts'
import { ciphertextBytes, encodeValue, nonceBytes } from './value.ts'

/** Whether the objects of a bucket never change, such as versions of secrets. */
export type IsConstant = (bucket: string) => boolean

type ObjectFields = Extract<Fields, readonly ['object', ...unknown[]]>

/** The value of an object without its revision. Throws if the revision is not in the gap. */
export function objectOf([, id, bucket, namespace, name, , gap]: ObjectFields, bytes: Uint8Array) {
  const key: Key = { bucket, namespace, name }
  const digits = String(revisionOf(id))
  const [start, end] = [bytes.subarray(0, gap), bytes.subarray(gap + digits.length)]
  if (Buffer.from(bytes.subarray(gap, gap + digits.length)).toString() !== digits)
    throw new Error(`${describeKey(key)}: the data belongs to another revision`)
  return { key, value: { text: Buffer.concat([start, end]), gap } }
}

/** Objects that etcd cannot store, or a later change of them. */
export class TooLargeError extends Error {
  readonly objects: readonly string[]
  constructor(objects: readonly string[]) {
    super(`${objects.length} ${objects.length === 1 ? 'object is' : 'objects are'} too large for etcd`)
    this.objects = objects
  }
}

/** Reads all records. Throws TooLargeError. Returns the number of objects. */
export async function checkSizes(records: Records, isConstant: IsConstant): Promise<number> {
  const tooLarge: string[] = []
  let objects = 0
  for await (const [fields, bytes = new Uint8Array()] of records) {
    if (fields[0] !== 'object') continue
    const { key, value } = objectOf(fields, bytes)
    const problem = sizeProblem(key, encodeValue(value, Buffer.alloc(nonceBytes)), isConstant)
    if (problem) tooLarge.push(problem)
    objects++
  }
  if (tooLarge.length) throw new TooLargeError(tooLarge)
  return objects
}

/** A change of a secret also stores the previous ciphertext. */
export function sizeProblem(key: Key, encoded: Buffer, isConstant: IsConstant): string | undefined {
  const size = encoded.length + (isConstant(key.bucket) ? 0 : ciphertextBytes(encoded))
  return size <= maxBytes ? undefined : `${describeKey(key)}: ${size} bytes in a change, at most ${maxBytes}`
}
