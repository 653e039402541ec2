// The health of the etcd engine: whether writes work, whether reads are recent, and whether the cluster is still the same one.

import { status } from '@grpc/grpc-js'
import { StoreError } from '../store.ts'
import type { EtcdClient, EtcdError } from './client.ts'
import { AlarmType } from './rpc.generated.ts'

export type StorageHealth = {
  /** Why writes fail, or reads are outdated. */
  readonly failure: string | undefined
  /** Why reads may miss revocations. */
  readonly outdated: string | undefined
  /** Why the replica must be restarted. */
  readonly broken: string | undefined
  /** Throws, from now on always, if a response is from another cluster. */
  checkCluster(clusterId: string): void
  /** Throws, from now on always, if a linearizable read is older than what was delivered. */
  checkRevision(revision: number, delivered: number): void
  /** Nothing is served any more. Returns the reason. */
  end(reason: string): string
  noteWatchError(error: Error): void
  /** The error of a rejected write. */
  rejected(error: EtcdError): StoreError
  works(): void
  /** Confirms regularly, so that an idle replica knows whether it is recent. */
  start(confirm: () => Promise<void>): void
  stop(): void
}

/** A replica that etcd has not confirmed for so long may not serve (revocations must work within 5 s). */
const maxUnconfirmedMs = 5000
const confirmEveryMs = 1000

export function openStorageHealth(options: {
  readonly client: Pick<EtcdClient, 'alarms'>
  readonly clusterId: string
  readonly confirmedAt: () => number
  readonly reportFailure: ((failure: string | undefined) => void) | undefined
}): StorageHealth {
  const { client, clusterId, confirmedAt, reportFailure } = options
  let broken: string | undefined
  let rejecting: string | undefined
  let watchError: string | undefined
  let reported: string | undefined
  let timer: NodeJS.Timeout | undefined

  const breakWith = (reason: string): never => {
    broken = reason
    report()
    throw new StoreError('unavailable', reason)
  }
  const outdated = () => {
    if (broken !== undefined) return broken
    const age = performance.now() - confirmedAt()
    return age <= maxUnconfirmedMs ? undefined : `etcd has not confirmed this replica for ${Math.floor(age / 1000)} s`
  }
  const failure = () => outdated() ?? rejecting
  const report = () => {
    const reason = failure()
    // The log also gets the error, which has addresses.
    const text = reason !== undefined && watchError !== undefined ? `${reason} (${watchError})` : reason
    if ((reason === undefined) !== (reported === undefined)) reportFailure?.(text)
    reported = reason
  }

  async function checkAlarms(): Promise<void> {
    const alarms = await client.alarms()
    if (!alarms.some(({ alarm }) => alarm !== AlarmType.NO_ALARM)) rejecting = undefined
  }

  return {
    get failure() {
      return failure()
    },
    get outdated() {
      return outdated()
    },
    get broken() {
      return broken
    },
    checkCluster(id) {
      if (broken !== undefined) throw new StoreError('unavailable', broken)
      if (id !== clusterId)
        breakWith(
          `the endpoints belong to another etcd cluster than at the start (${id}, not ${clusterId}). Restart every replica after a restore of etcd`,
        )
    },
    checkRevision(revision, delivered) {
      if (broken !== undefined) throw new StoreError('unavailable', broken)
      if (revision < delivered)
        breakWith(
          `etcd went back from revision ${delivered} to ${revision}: it was restored from an older backup. Restore it with --bump-revision and --mark-compacted, then restart every replica`,
        )
    },
    end(reason) {
      broken = reason
      report()
      return reason
    },
    noteWatchError(error) {
      watchError = error.message
      report()
    },
    rejected(error) {
      if (error.code === status.RESOURCE_EXHAUSTED) {
        rejecting = `${error.message}. If etcd has no space left (alarm NOSPACE), compact and defragment it or raise its quota, then disarm the alarm`
        report()
      }
      return new StoreError('unavailable', rejecting ?? error.message)
    },
    works() {
      if (rejecting === undefined) return
      rejecting = undefined
      report()
    },
    start(confirm) {
      timer = setInterval(() => {
        confirm()
          .then(() => {
            watchError = undefined
          })
          .catch((error: Error) => {
            watchError = error.message
          })
          .finally(report)
        if (rejecting !== undefined) void checkAlarms().then(report, () => {})
      }, confirmEveryMs).unref()
    },
    stop: () => clearInterval(timer),
  }
}
