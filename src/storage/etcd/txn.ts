// Builds the transaction of a commit, and reads from its response why etcd rejected it.

import { Buffer } from 'node:buffer'
import { refusal } from '../compare-and-swap.ts'
import { type Op, StoreError } from '../store.ts'
import type { Keys } from './keys.ts'
import {
  type Compare,
  Compare_CompareResult,
  Compare_CompareTarget,
  type RequestOp,
  type TxnRequest,
  type TxnResponse,
} from './rpc.generated.ts'
import { encodeValue, type Nonce } from './value.ts'

/** etcd rejects requests over 1.5 MiB. The rest is for keys and comparisons (D72). */
export const maxBytes = Math.floor(1.4 * 2 ** 20)

/** A key that must have been created at a revision: the leader key, while its owner is the leader. */
export type Fence = { readonly key: Buffer; readonly createRevision: number }

export type TxnOptions = {
  readonly keys: Keys
  readonly offset: number
  readonly nonce: Nonce
  /** The record of the installation, and its revision: nothing is written into another installation. */
  readonly installation: { readonly key: Buffer; readonly modRevision: number }
  readonly fence?: Fence | undefined
}

export function txnOf(ops: readonly Op[], { keys, offset, nonce, installation, fence }: TxnOptions): TxnRequest {
  const success = ops.flatMap(op => changeOf(op, keys.ofObject(op.key), nonce) ?? [])
  const size = success.reduce((sum, op) => sum + (op.requestPut?.value.length ?? 0), 0)
  if (size > maxBytes)
    throw new StoreError('tooLarge', `the write has ${size} bytes, and etcd stores at most ${maxBytes} at once`)
  const compare = ops.flatMap(op => comparisonOf(op, keys.ofObject(op.key), offset) ?? [])
  const guards: Compare[] = [
    { result: Compare_CompareResult.EQUAL, target: Compare_CompareTarget.MOD, ...installation },
    ...(fence ? [{ result: Compare_CompareResult.EQUAL, target: Compare_CompareTarget.CREATE, ...fence }] : []),
  ]
  const failure = [...ops.map(op => keys.ofObject(op.key)), ...guards.map(({ key }) => key)].map(lookUp)
  return { compare: [...guards, ...compare], success, failure }
}

function changeOf(op: Op, key: Buffer, nonce: Nonce): RequestOp | undefined {
  if (op.type === 'check') return undefined
  return op.type === 'put'
    ? { requestPut: { key, value: encodeValue(op.value, nonce), lease: 0 } }
    : { requestDeleteRange: { key, rangeEnd: none } }
}

const none = Buffer.alloc(0)

function comparisonOf({ type, expect }: Op, key: Buffer, offset: number): Compare | undefined {
  const { EQUAL, GREATER } = Compare_CompareResult
  const target = Compare_CompareTarget.MOD
  if (expect !== undefined) return { result: EQUAL, target, key, modRevision: expect === 0 ? 0 : expect - offset }
  return type === 'delete' ? { result: GREATER, target, key, modRevision: 0 } : undefined
}

const lookUp = (key: Buffer): RequestOp => ({
  requestRange: { key, rangeEnd: none, limit: 0, revision: 0, keysOnly: true, countOnly: false },
})

/** Why a transaction was rejected. */
export function rejectionOf(ops: readonly Op[], { responses }: TxnResponse, options: TxnOptions): StoreError {
  const { offset, installation, fence } = options
  const found = responses.map(({ responseRange }) => responseRange?.kvs[0])
  if (found[ops.length]?.modRevision !== installation.modRevision)
    return new StoreError('unavailable', 'the installation in etcd was deleted or replaced')
  if (fence && found[ops.length + 1]?.createRevision !== fence.createRevision)
    return new StoreError('notLeader', 'this replica no longer runs the controllers')
  for (const [index, op] of ops.entries()) {
    const kv = found[index]
    const error = refusal(op, kv && { revision: kv.modRevision + offset })
    if (error) return error
  }
  return new StoreError('conflict', 'etcd rejected the write, but every precondition holds')
}
