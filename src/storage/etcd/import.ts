// Creates an installation in etcd from records, for restores and migrations, and verifies it record by record.

import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { status } from '@grpc/grpc-js'
import { openComparison } from '../comparison.ts'
import { type Files, type Records, type Summary, summarized } from '../records.ts'
import { type Claim, claimPrefix, type PrefixOptions, put } from './claim.ts'
import { EtcdError } from './client.ts'
import { readInstallation } from './export.ts'
import type { RequestOp } from './rpc.generated.ts'
import { type IsConstant, objectOf, sizeProblem, TooLargeError } from './sizes.ts'
import { encodeValue, nonceBytes } from './value.ts'

export type ImportOptions = PrefixOptions & {
  readonly records: Records
  /** The minimum distance between the revision of the records and the first one of the installation. */
  readonly skip: number
  /** The record of the CA; undefined: there is no CA in the files. */
  readonly sealFiles: (files: Files) => Buffer | undefined
  readonly isConstant: IsConstant
  readonly now: () => number
}
/** `offset`: the difference between resourceVersions and revisions of etcd. */
export type Imported = Summary & { readonly offset: number }

/** Throws TooLargeError. Deletes everything again if it fails. */
export async function createInstallation(options: ImportOptions): Promise<Imported> {
  const { client, prefix, records, now } = options
  const claim = await claimPrefix(options)
  try {
    const comparison = openComparison()
    const imported = await fill(claim, { ...options, records: comparison.remember(records) })
    await comparison.check(readInstallation({ client, prefix, offset: imported.offset, now }))
    await startHistory(claim)
    await claim.complete(imported.offset)
    return imported
  } catch (error) {
    // If this fails, too, servers refuse the prefix, and the next attempt deletes the keys.
    await claim.abandon().catch(() => {})
    throw error
  }
}

const maxInFlight = 64
const timesAtOnce = 100

async function fill(claim: Claim, options: ImportOptions): Promise<Imported> {
  const { records, skip, sealFiles, isConstant } = options
  const { keys } = claim
  const nonce = randomBytes(nonceBytes)
  const queue = openQueue(claim)
  const tooLarge: string[] = []
  let times: RequestOp[] = []
  let summary: Summary | undefined
  const whole = summarized(records, found => {
    summary = found
  })
  try {
    for await (const [fields, bytes = new Uint8Array()] of whole) {
      if (fields[0] === 'time') {
        times.push(put(keys.ofTime(fields[1]), Buffer.from(String(fields[2]))))
        if (times.length < timesAtOnce) continue
        await queue.add(times)
        times = []
      } else if (fields[0] === 'object') {
        const { key, value } = objectOf(fields, bytes)
        const encoded = encodeValue(value, nonce)
        const problem = sizeProblem(key, encoded, isConstant)
        if (problem) tooLarge.push(problem)
        // One object in a transaction: within a bucket, a revision names one object.
        else if (tooLarge.length === 0) await queue.add([put(keys.ofObject(key), encoded)])
      }
    }
    await queue.add(times)
  } finally {
    await queue.drain()
  }
  queue.check()
  if (tooLarge.length) throw new TooLargeError(tooLarge)
  const found = summary!
  const authority = sealFiles(found.files)
  if (authority) await claim.write([put(keys.ofRecord('serving-ca'), authority)])
  return { ...found, offset: Math.max(0, found.revision + skip - claim.revision) }
}

/**
 * Compacts etcd, because the history must not begin before the copy: a watch that resumes at an older resourceVersion would miss
 * the deletions before the copy.
 */
async function startHistory({ client, keys }: Claim): Promise<void> {
  const { header } = await client.range({ ...keys.all, countOnly: true })
  await client.compact(header?.revision ?? 0).catch((error: unknown) => {
    // Another program has compacted more.
    if (!(error instanceof EtcdError && error.code === status.OUT_OF_RANGE)) throw error
  })
}

/** Several writes at once. After a failure it accepts no more. */
function openQueue({ write }: Pick<Claim, 'write'>) {
  const running = new Set<Promise<void>>()
  let failure: { readonly error: unknown } | undefined
  const check = () => {
    if (failure) throw failure.error
  }
  return {
    check,
    async add(ops: readonly RequestOp[]): Promise<void> {
      if (ops.length === 0) return
      while (running.size >= maxInFlight) await Promise.race(running)
      check()
      const one = write(ops)
        .catch((error: unknown) => {
          failure ??= { error }
        })
        .finally(() => running.delete(one))
      running.add(one)
    },
    async drain(): Promise<void> {
      await Promise.all(running)
    },
  }
}
