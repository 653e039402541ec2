// Opens the installation at a prefix of etcd: checks the versions of the members, and creates or reads the record of the installation.

import { Buffer } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { EtcdClient } from './client.ts'
import type { Keys } from './keys.ts'
import { Compare_CompareResult, Compare_CompareTarget, type KeyValue, type ResponseHeader } from './rpc.generated.ts'
import { versionProblem } from './version.ts'

export type Installation = {
  readonly id: string
  /** resourceVersions are etcd's revisions plus this number. It is not 0 after a migration. */
  readonly offset: number
  readonly clusterId: string
  /** When the record was created, and last changed: etcd's revisions. */
  readonly createRevision: number
  readonly modRevision: number
  /** etcd's revision when the record was read. */
  readonly newest: number
}

/** Without an offset, a migration or restore into the prefix is incomplete. */
type Stored = { readonly format: number; readonly id: string; readonly offset?: number | undefined }

const format = 1
const connectMs = 10_000

/** A problem with etcd, its address or its contents, in a message for the operator. */
export class EtcdSetupError extends Error {}

export async function openInstallation(options: {
  readonly client: EtcdClient
  readonly keys: Keys
  readonly endpoints: readonly string[]
  readonly prefix: string
  readonly allowUnsafeVersion?: boolean | undefined
  readonly mayCreate?: boolean | undefined
  readonly offset?: ((revision: number) => number) | undefined
}): Promise<Installation> {
  const { client, keys, prefix, allowUnsafeVersion = false } = options
  const clusterId = await checkMembers(client, allowUnsafeVersion)
  const key = keys.ofRecord('installation')
  const { kvs, header } = await client.range({ key }).catch((error: Error) => {
    throw new EtcdSetupError(`etcd has no quorum, or does not respond: ${error.message}`, { cause: error })
  })
  const [stored] = kvs
  if (stored) return installationIn(stored, prefix, clusterId, header)
  if (options.mayCreate === false)
    throw new EtcdSetupError(
      `the prefix ${prefix} of etcd holds no installation. Set --etcd-prefix to the one of the replicas`,
    )
  await requireNoKeys(client, keys, prefix)
  const fresh = encodeRecord(randomUUID(), options.offset?.((header?.revision ?? 0) + 1) ?? 0)
  const isFree = { result: Compare_CompareResult.EQUAL, target: Compare_CompareTarget.CREATE, key, createRevision: 0 }
  // Of several replicas that start at once, one creates the record. The outcome is read back, whatever the response.
  await client
    .txn({
      compare: [isFree],
      success: [{ requestPut: { key, value: fresh, lease: 0 } }],
      failure: [],
    })
    .catch(() => {})
  const again = await client.range({ key })
  const [created] = again.kvs
  if (!created) throw new EtcdSetupError('etcd did not store the record of the installation; start again')
  return installationIn(created, prefix, clusterId, again.header)
}

const installationIn = (
  { value, createRevision, modRevision }: KeyValue,
  prefix: string,
  clusterId: string,
  header: ResponseHeader | undefined,
): Installation => ({
  ...readRecord(value, prefix),
  clusterId,
  createRevision,
  modRevision,
  newest: header?.revision ?? modRevision,
})

/** Without an offset, servers refuse the prefix. */
export const encodeRecord = (id: string, offset?: number): Buffer =>
  Buffer.from(JSON.stringify({ format, id, offset } satisfies Stored))

/** Throws if the record is of another program or incomplete. */
export function readRecord(value: Buffer, prefix: string): Pick<Installation, 'id' | 'offset'> {
  const { id, offset } = parseRecord(value, prefix)
  if (offset === undefined)
    throw new EtcdSetupError(
      `a migration or restore into the prefix ${prefix} of etcd did not finish. Run it again, or delete the keys: etcdctl del --prefix ${prefix}/`,
    )
  return { id, offset }
}

export function parseRecord(value: Buffer, prefix: string): Stored {
  const stored = parse(value)
  if (!stored)
    throw new EtcdSetupError(`the record of the installation below the prefix ${prefix} of etcd cannot be read`)
  if (stored.format !== format)
    throw new EtcdSetupError(
      `the data below the prefix ${prefix} of etcd has format ${stored.format}, but this version of platform supports format ${format}: use a newer version`,
    )
  return stored
}

function parse(value: Buffer): Stored | undefined {
  try {
    const { format: stored, id, offset } = JSON.parse(value.toString()) as Partial<Stored>
    const isValid = Number.isInteger(stored) && typeof id === 'string'
    return isValid && (offset === undefined || Number.isSafeInteger(offset))
      ? { format: stored!, id: id!, offset }
      : undefined
  } catch {
    return undefined
  }
}

export async function requireNoKeys(client: Pick<EtcdClient, 'range'>, keys: Keys, prefix: string): Promise<void> {
  const { count } = await client.range({ ...keys.all, countOnly: true })
  if (count > 0)
    throw new EtcdSetupError(
      `the prefix ${prefix} of etcd holds ${count} keys that are not of this program. Choose another one with --etcd-prefix`,
    )
}

/** Waits for the first member that responds, and checks the versions of all that do. */
export async function checkMembers(client: EtcdClient, allowUnsafeVersion: boolean): Promise<string> {
  const deadline = performance.now() + connectMs
  for (;;) {
    const answers = await client.statuses()
    const up = answers.flatMap(({ endpoint, status }) => (status instanceof Error ? [] : [{ endpoint, status }]))
    const problems = up.flatMap(({ endpoint, status }) => {
      const problem = allowUnsafeVersion ? undefined : versionProblem(status.version)
      return problem ? [`${endpoint}: ${problem}`] : []
    })
    if (problems.length) throw new EtcdSetupError(problems.join('\n'))
    const clusterIds = new Set(up.map(({ status }) => status.header?.clusterId ?? '0'))
    if (clusterIds.has('0'))
      throw new EtcdSetupError(
        'the endpoint is not etcd (its cluster has no id). Programs such as kine do not support the transactions that this engine needs',
      )
    if (clusterIds.size > 1) throw new EtcdSetupError('the endpoints belong to different etcd clusters')
    const [clusterId] = clusterIds
    if (clusterId !== undefined) return clusterId
    if (performance.now() > deadline) {
      const reasons = answers.map(({ status }) => (status as Error).message)
      throw new EtcdSetupError(
        `no etcd endpoint responds. Check --etcd-endpoints, --etcd-ca, --etcd-cert and --etcd-key.\n${reasons.join('\n')}`,
      )
    }
    await pause(300)
  }
}
