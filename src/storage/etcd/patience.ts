// A client for commands that run once: it repeats requests for half a minute, so that a failing member does not end them.

import { setTimeout as pause } from 'node:timers/promises'
import { status } from '@grpc/grpc-js'
import { type EtcdClient, EtcdError } from './client.ts'
import { EtcdSetupError } from './installation.ts'

const retryMs = 200
/** Long enough for the election of a new etcd leader. */
const limitMs = 30_000

/** Also repeats transactions whose outcome is unknown. Use it only for transactions that may apply twice. */
export function patient(client: EtcdClient): EtcdClient {
  return {
    ...client,
    range: request => repeat(() => client.range(request)),
    txn: request => repeat(() => client.txn(request)),
    compact: revision => repeat(() => client.compact(revision)),
  }
}

async function repeat<T>(send: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + limitMs
  for (;;)
    try {
      return await send()
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error
      if (error.code === status.RESOURCE_EXHAUSTED)
        throw new EtcdSetupError(
          `${error.message}. If etcd has no space left, compact and defragment it or raise its quota, then disarm the alarm`,
          { cause: error },
        )
      if (error.outcome !== 'unknown' && error.code !== status.UNAVAILABLE) throw error
      if (performance.now() > deadline)
        throw new EtcdSetupError(`etcd has no quorum, or does not respond: ${error.message}`, { cause: error })
      await pause(retryMs)
    }
}
