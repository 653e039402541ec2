// Of several syncers of one virtual cluster one works: whoever holds the Lease on the host. bin/sync.ts starts it.

import { ApiError } from '../../api/errors.ts'
import type { Json, Ref, Resource } from '../../api/object.ts'
import type { Resources } from '../../api/resources.ts'
import { isNotFound } from './api-errors.ts'
import { Lease } from './kinds.ts'

export type LeaseOptions = {
  readonly resources: Resources
  readonly at: Ref
  readonly identity: string
  readonly now: () => number
  /** Milliseconds that never jump, for how long something is ago. */
  readonly ticks: () => number
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>
  /** Called when the lease is ours. The signal ends when it is not any more; it is waited for before anyone tries again. */
  readonly lead: (signal: AbortSignal) => Promise<void>
  readonly failed: (error: unknown) => void
}

const counts = 15_000
const renewEvery = 5_000
/** Given up so long before others may take it. */
const giveUpAfter = 10_000

type Spec = {
  readonly holderIdentity?: string
  readonly leaseDurationSeconds?: number
  readonly acquireTime?: string
  readonly renewTime?: string
  readonly leaseTransitions?: number
}
type LeaseObject = Resource<Spec>

/**
 * Resolves once `signal` ends, having let the lease go. Whether another's lease is over is judged by how long it was seen
 * unchanged here, never by the times in it: clocks may be apart.
 */
export async function holdLease(options: LeaseOptions, signal: AbortSignal): Promise<void> {
  const { resources, at, identity, now, ticks, wait, failed } = options
  let seen: { readonly version: string; readonly tick: number } | undefined

  /** Whether it is ours now. */
  async function take(): Promise<boolean> {
    const current = await read()
    if (!current) {
      await resources.create(Lease, at.namespace, written(undefined))
      return true
    }
    const version = current.metadata.resourceVersion ?? ''
    const { holderIdentity, leaseDurationSeconds = counts / 1000 } = current.spec ?? {}
    if (seen?.version !== version) seen = { version, tick: ticks() }
    const isOver = !holderIdentity || ticks() - seen.tick > leaseDurationSeconds * 1000
    if (holderIdentity !== identity && !isOver) return false
    await resources.update(Lease, at, written(current))
    return true
  }

  async function read(): Promise<LeaseObject | undefined> {
    try {
      return (await resources.get(Lease, at)).object as LeaseObject
    } catch (error) {
      if (isNotFound(error)) return undefined
      throw error
    }
  }

  function written(current: LeaseObject | undefined, holder = identity): Json {
    const { acquireTime, leaseTransitions = 0, holderIdentity } = current?.spec ?? {}
    const time = new Date(now()).toISOString().replace('Z', '000Z') // microseconds, as Kubernetes has them
    const isNew = holderIdentity !== holder
    const spec = {
      holderIdentity: holder,
      leaseDurationSeconds: holder ? counts / 1000 : 1,
      acquireTime: isNew ? time : (acquireTime ?? time),
      renewTime: time,
      leaseTransitions: isNew && current ? leaseTransitions + 1 : leaseTransitions,
    }
    const metadata = current?.metadata ?? at
    return { apiVersion: Lease.apiVersion, kind: Lease.kind, metadata, spec } as unknown as Json
  }

  /** Leads until it cannot renew any more, or is told to stop. */
  async function lead(): Promise<void> {
    const ending = new AbortController()
    const stop = () => ending.abort()
    signal.addEventListener('abort', stop)
    const leading = options.lead(ending.signal).finally(stop)
    let renewed = ticks()
    while (!ending.signal.aborted) {
      await wait(renewEvery, ending.signal)
      if (ending.signal.aborted) break
      const asked = ticks()
      const taking = take().catch(error => {
        failed(error)
        return undefined
      })
      // No answer is an answer, too: whoever waits for one may wait for longer than the lease counts.
      const late = wait(renewed + giveUpAfter - asked, ending.signal).then(() => undefined)
      const mine = await Promise.race([taking, late])
      if (mine) renewed = asked
      if (mine === false || ticks() - renewed >= giveUpAfter) stop()
    }
    signal.removeEventListener('abort', stop)
    await leading
  }

  while (!signal.aborted) {
    const mine = await take().catch(error => {
      if (!(error instanceof ApiError) || error.code !== 409) failed(error)
      return false
    })
    if (mine) await lead()
    else await wait(renewEvery / 2, signal)
  }
  const current = await read().catch(() => undefined)
  if (current?.spec?.holderIdentity === identity) await resources.update(Lease, at, written(current, '')).catch(failed)
}
