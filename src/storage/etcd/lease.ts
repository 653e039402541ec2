// Holds the lease of this replica in etcd. Keys that are bound to it disappear when the replica is gone.

import { randomInt } from 'node:crypto'
import type { EtcdClient } from './client.ts'
import { openSleep } from './sleep.ts'

export type ReplicaLease = {
  /** Undefined while etcd does not confirm it. */
  readonly id: number | undefined
  /** Called when there is a new lease, and when it is lost. */
  onChange(listener: () => void): void
  /** Revokes the lease, which deletes its keys. */
  stop(): Promise<void>
}

const leaseSeconds = 6
const [renewMs, retryMs, grantMs] = [1500, 200, 1000]

export function openLease(client: Pick<EtcdClient, 'grantLease' | 'keepLeaseAlive' | 'revokeLease'>): ReplicaLease {
  const listeners: (() => void)[] = []
  const { sleep, wake } = openSleep()
  let id: number | undefined
  let stopped = false

  function change(next: number | undefined): void {
    id = next
    for (const listener of listeners) listener()
  }

  /** Resolves when the lease cannot be renewed in time. */
  async function hold(lease: number, grantedAt: number): Promise<void> {
    let renewedAt = grantedAt
    let wait = renewMs
    while (!stopped) {
      await sleep(wait)
      if (stopped || performance.now() - renewedAt > (leaseSeconds - 1) * 1000) return
      const sentAt = performance.now()
      const left = await client.keepLeaseAlive(lease).catch(() => undefined)
      if (left === 0) return
      if (left !== undefined) renewedAt = sentAt
      wait = left === undefined ? retryMs : renewMs
    }
  }

  async function run(): Promise<void> {
    while (!stopped) {
      const made = randomInt(1, 2 ** 47)
      const sentAt = performance.now()
      try {
        await client.grantLease(made, leaseSeconds)
      } catch {
        await sleep(grantMs)
        continue
      }
      change(made)
      await hold(made, sentAt)
      if (!stopped) change(undefined)
    }
  }

  const running = run()
  return {
    get id() {
      return id
    },
    onChange: listener => void listeners.push(listener),
    async stop() {
      stopped = true
      wake()
      await running
      if (id !== undefined) await client.revokeLease(id).catch(() => {})
      id = undefined
    },
  }
}
