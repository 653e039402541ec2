// Leader election with a Lease, so that only one of several instances works.

import { ApiError, isNotFound } from '../api/errors.ts'
import type { Json, Ref, Resource } from '../api/object.ts'
import type { Resources } from '../api/resources.ts'
import { Lease } from './kubernetes-kinds.ts'

export type LeaseOptions = {
  readonly resources: Resources
  readonly at: Ref
  readonly identity: string
  readonly now: () => number
  /** Monotonic clock in milliseconds. */
  readonly ticks: () => number
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>
  /** Called after acquiring the lease. The signal aborts when the lease is lost; the next attempt waits until `lead` returns. */
  readonly lead: (signal: AbortSignal) => Promise<void>
  readonly failed: (error: unknown) => void
}

const leaseDurationMs = 15_000
const renewEvery = 5_000
/** Stops leading well before others may acquire the lease. */
const renewDeadline = 10_000

type Spec = {
  readonly holderIdentity?: string
  readonly leaseDurationSeconds?: number
  readonly acquireTime?: string
  readonly renewTime?: string
  readonly leaseTransitions?: number
}
type LeaseObject = Resource<Spec>

/**
 * Resolves after `signal` aborts and the lease is released. Measures the expiry of another holder's lease with the local clock, never
 * with the times in the lease, because clocks may differ.
 */
export async function holdLease(options: LeaseOptions, signal: AbortSignal): Promise<void> {
  const { resources, at, identity, now, ticks, wait, failed } = options
  let seen: { readonly version: string; readonly tick: number } | undefined

  /** Acquires or renews the lease. Returns whether it is ours. */
  async function tryAcquire(): Promise<boolean> {
    const current = await read()
    if (!current) {
      await resources.create(Lease, at.namespace, leaseFor(undefined))
      return true
    }
    const version = current.metadata.resourceVersion ?? ''
    const { holderIdentity, leaseDurationSeconds = leaseDurationMs / 1000 } = current.spec ?? {}
    if (seen?.version !== version) seen = { version, tick: ticks() }
    const isExpired = !holderIdentity || ticks() - seen.tick > leaseDurationSeconds * 1000
    if (holderIdentity !== identity && !isExpired) return false
    await resources.update(Lease, at, leaseFor(current))
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

  function leaseFor(current: LeaseObject | undefined, holder = identity): Json {
    const { acquireTime, leaseTransitions = 0, holderIdentity } = current?.spec ?? {}
    const time = new Date(now()).toISOString().replace('Z', '000Z') // microseconds, as Kubernetes has them
    const isNew = holderIdentity !== holder
    const spec = {
      holderIdentity: holder,
      leaseDurationSeconds: holder ? leaseDurationMs / 1000 : 1,
      acquireTime: isNew ? time : (acquireTime ?? time),
      renewTime: time,
      leaseTransitions: isNew && current ? leaseTransitions + 1 : leaseTransitions,
    }
    const metadata = current?.metadata ?? at
    return { apiVersion: Lease.apiVersion, kind: Lease.kind, metadata, spec } as unknown as Json
  }

  /** Leads until the renewal fails or the signal aborts. */
  async function lead(): Promise<void> {
    const ending = new AbortController()
    const stop = () => ending.abort()
    signal.addEventListener('abort', stop)
    const leading = options.lead(ending.signal).finally(stop)
    let renewed = ticks()
    while (!ending.signal.aborted) {
      await wait(renewEvery, ending.signal)
      if (ending.signal.aborted) break
      const requested = ticks()
      const renewing = tryAcquire().catch(error => {
        failed(error)
        return undefined
      })
      // A request may hang for longer than the lease is valid, so give up at the deadline.
      const late = wait(Math.max(0, renewed + renewDeadline - requested), ending.signal).then(() => undefined)
      const mine = await Promise.race([renewing, late])
      if (mine) renewed = requested
      if (mine === false || ticks() - renewed >= renewDeadline) stop()
    }
    signal.removeEventListener('abort', stop)
    await leading
  }

  while (!signal.aborted) {
    const mine = await tryAcquire().catch(error => {
      if (!(error instanceof ApiError) || error.code !== 409) failed(error)
      return false
    })
    if (mine) await lead()
    else await wait(renewEvery / 2, signal)
  }
  const current = await read().catch(() => undefined)
  if (current?.spec?.holderIdentity === identity) await resources.update(Lease, at, leaseFor(current, '')).catch(failed)
}
