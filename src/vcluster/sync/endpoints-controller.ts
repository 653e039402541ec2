// Reconciles Endpoints or EndpointSlices: watches both clusters, plans each object with plan.ts, applies the writes and retries failures.

import type { Kind } from '../../api/kind.ts'
import type { Ref } from '../../api/object.ts'
import type { Resources } from '../../api/resources.ts'
import { startShardedQueue } from '../../reconcile/sharded-queue.ts'
import { missingApi } from './api-errors.ts'
import { isAsSent, isConflict, perform, syncFailureOf } from './apply-write.ts'
import { openBlockedObjects } from './blocked-objects.ts'
import { bare, isOnlyCondition, serviceState, serviceSummary, withoutManagedFields } from './cache-transforms.ts'
import { type SyncFailure, SyncFailureError, withCondition, withUnresolved } from './condition.ts'
import type { EndpointSync } from './endpoint-sync.ts'
import { openEvents } from './events.ts'
import { hostRefOf } from './host-ref.ts'
import { hostServiceProblem } from './host-service.ts'
import { Service, type ServiceObject, type SyncedObject } from './kinds.ts'
import { type Plan, type PlanTools, planObject, type State, type Write } from './plan.ts'
import { openUnresolvedReport, type SyncReference, syncReferences, withReferences } from './resolve-references.ts'
import { openRewriteBackoff } from './rewrite-backoff.ts'
import { virtualRefOf } from './sync-annotations.ts'
import { openWriteThroughCache } from './write-through-cache.ts'

export type Side = 'virtual' | 'host'

/** Callbacks for metrics and logs. */
export type Observer = {
  /** A successful write. */
  readonly wrote: (side: Side, verb: Write['verb']) => void
  /** Seconds from observing a change to writing it to the host. */
  readonly lag: (seconds: number) => void
  readonly failed: (what: string, error: unknown) => void
  readonly syncFailure: (ref: Ref, syncFailure: SyncFailure) => void
}

export type Trace = <T>(
  name: string,
  attributes: { readonly [name: string]: string },
  work: () => Promise<T>,
) => Promise<T>

export type SyncOptions = PlanTools & {
  readonly virtual: Resources
  readonly host: Resources
  /** Host namespaces to watch; [''] means all. */
  readonly hostNamespaces: readonly string[]
  readonly syncReference?: SyncReference | undefined
  /** Milliseconds between two checks of referenced objects, and of the host's Services of slices; default: 30 seconds. */
  readonly pollReferencesEvery?: number | undefined
  /** Whether to report failures on the virtual objects. */
  readonly reportToTenant: boolean
  readonly instance: string
  readonly random: () => number
  /** Monotonic clock in milliseconds. */
  readonly ticks: () => number
  /** Runs the sync of an object as a trace; absent: tracing is off. */
  readonly trace?: Trace | undefined
  readonly observer: Observer
}

const shards = 8
/** Referenced objects and Services of the host are polled, because a watch would need more permissions. */
const defaultPoll = 30_000
const nameOf = ({ namespace, name }: Ref) => `${namespace}/${name}`
const refOf = (name: string): Ref => {
  const [namespace = '', rest = ''] = name.split('/')
  return { namespace, name: rest }
}
const atOf = ({ metadata: { namespace = '', name = '' } }: Pick<SyncedObject, 'metadata'>): Ref => ({ namespace, name })
const versionOf = (object: SyncedObject | undefined) => object?.metadata.resourceVersion

export function startEndpointSync(options: SyncOptions): EndpointSync {
  const { synced, vcluster, observer, now, pollReferencesEvery = defaultPoll, trace } = options
  const { kind } = synced
  const states = new Map<string, State>()
  /** Time of the oldest observed change that the host does not have yet. */
  const since = new Map<string, number>()
  const blocked = openBlockedObjects()
  /** Objects that need another pass. */
  const again = new Set<string>()
  const backoff = openRewriteBackoff(options.ticks)
  let isReady = false

  /** After a reconnect, retries failed objects without the back-off that the outage caused. */
  const retryFailed = () => {
    for (const [name, { error }] of work.failing) {
      if (!(error instanceof SyncFailureError)) work.resetBackoff(name)
      add(name)
    }
  }
  const watchFailed = (side: Side, kind: Kind) => (error: unknown) =>
    observer.failed(`watch ${side} ${kind.plural}`, missingApi(side, kind, error))
  const virtual = openWriteThroughCache<SyncedObject>({
    resources: options.virtual,
    kind,
    namespaces: [''],
    keep: withoutManagedFields,
    changed: (ref, next, before) => {
      if (next && before && isOnlyCondition(next, before)) return
      since.set(nameOf(ref), since.get(nameOf(ref)) ?? options.ticks())
      add(nameOf(ref))
    },
    failed: watchFailed('virtual', kind),
    onReconnect: retryFailed,
  })
  const services = openWriteThroughCache<ServiceObject>({
    resources: options.virtual,
    kind: Service,
    namespaces: [''],
    keep: serviceSummary,
    changed: (ref, next, before) => {
      if (!next || !before || serviceState(next) !== serviceState(before)) addOf(ref)
    },
    failed: watchFailed('virtual', Service),
    onReconnect: retryFailed,
  })
  const host = openWriteThroughCache<SyncedObject>({
    resources: options.host,
    kind,
    namespaces: options.hostNamespaces,
    keep: object => (virtualRefOf(object.metadata, vcluster.name) ? withoutManagedFields(object) : bare(object)),
    changed: (ref, next, before) => {
      for (const object of [next, before]) {
        const own = object && virtualRefOf(object.metadata, vcluster.name)
        if (own) add(nameOf(own))
      }
      for (const name of blocked.waitingFor(ref)) add(name)
    },
    failed: watchFailed('host', kind),
    onReconnect: retryFailed,
  })
  const events = openEvents({
    kind,
    resources: options.virtual,
    instance: options.instance,
    now,
    failed: error => observer.failed('write Event', error),
  })
  const reportUnresolved = openUnresolvedReport({
    events: options.reportToTenant ? events : undefined,
    log: observer.syncFailure,
  })
  const work = startShardedQueue({
    shards,
    work: name =>
      trace ? trace(`sync ${kind.kind}`, { 'platform.resource': kind.plural }, () => reconcile(name)) : reconcile(name),
    random: options.random,
    failed: (name, error) => {
      // Another client was faster: the informer will deliver the change.
      if (isConflict(error)) return
      states.set(name, 'failed')
      if (!(error instanceof SyncFailureError)) observer.failed(`sync ${name}`, error)
    },
  })
  const add = (name: string) => {
    if (isReady) work.add(name)
  }

  /** Adds the objects of a service. */
  const addOf = (service: Ref) => {
    if (synced.hasNameOfService) return add(nameOf(service))
    for (const object of virtual.values())
      if (object.metadata.namespace === service.namespace && synced.serviceOf(object) === service.name)
        add(nameOf(atOf(object)))
  }
  const addAll = () => {
    for (const object of virtual.values()) add(nameOf(atOf(object)))
    for (const object of host.values()) {
      const own = virtualRefOf(object.metadata, vcluster.name)
      if (own) add(nameOf(own))
    }
  }
  /** Before the lists are complete, a missing object may only be late. */
  const ready = Promise.all([virtual.ready, services.ready, host.ready]).then(() => {
    isReady = true
    addAll()
  })

  async function reconcile(name: string): Promise<number | undefined> {
    const remaining = backoff.remaining(name, versionOf(virtual.get(refOf(name))))
    if (remaining > 0) return remaining
    const started = since.get(name)
    since.delete(name)
    try {
      const { host: write, state, referencedObjects, version } = await applyPlan(name)
      if (write && started !== undefined) observer.lag((options.ticks() - started) / 1000)
      const next = backoff.next(name, again.delete(name), version)
      if (next === 0) add(name)
      const isPolled = referencedObjects?.length || (state === 'synced' && !synced.hasNameOfService)
      return next || (isPolled ? pollReferencesEvery : undefined)
    } catch (error) {
      if (started !== undefined) since.set(name, started)
      throw error
    }
  }

  /** Also returns the version of the virtual object that was read or written. */
  async function applyPlan(name: string): Promise<Plan & { readonly version: string | undefined }> {
    const ref = refOf(name)
    const current = virtual.get(ref)
    const service = current && services.get({ ...ref, name: synced.serviceOf(current) ?? '' })
    const hostRef = hostRefOf(ref, vcluster)
    const state = service ? serviceState(service) : 'none'
    const isAdded = service !== undefined && state === 'plain' && !synced.hasNameOfService
    const serviceProblem = isAdded ? await hostServiceProblem(atOf(service), options) : undefined
    const there = hostRef && host.get(hostRef)
    const plan = await planObject({ ref, virtual: current, service: state, serviceProblem, host: there }, options)
    const isLeaving = plan.state === 'waiting' && hostRef && host.get(hostRef)?.metadata.deletionTimestamp !== undefined
    const isForeign = plan.syncFailure?.reason === 'HostObjectForeign'
    if (hostRef && plan.hostRef) blocked.set(name, hostRef, isLeaving === true || isForeign)
    let left = plan.first === 'virtual' ? await writeVirtual(ref, plan) : undefined
    await writeHost(ref, plan, current)
    const references = await syncReferences(plan, options.syncReference)
    const { unresolved, error } = references
    await reportUnresolved({ ref, uid: current?.metadata.uid, message: unresolved })
    if (error instanceof SyncFailureError) await refuse(ref, current, error.syncFailure, unresolved)
    if (error !== undefined) throw error
    const next = options.reportToTenant ? withReferences(plan, references, { current, now: now() }) : plan
    // Last, because it removes the condition.
    if (plan.first !== 'virtual') left = await writeVirtual(ref, next)
    else if (plan.state === 'synced') again.add(name) // the next pass removes the condition
    if (plan.state === 'gone') states.delete(name)
    else states.set(name, plan.state)
    if (plan.syncFailure) await report(ref, current, plan.syncFailure)
    return { ...plan, version: versionOf(next.virtual ? left : current) }
  }

  async function writeVirtual(ref: Ref, { virtual: write }: Plan): Promise<SyncedObject | undefined> {
    if (!write) return undefined
    const left = await virtual.write(ref, () => perform({ to: options.virtual, kind }, ref, write))
    observer.wrote('virtual', write.verb)
    if (!isAsSent(write, left)) again.add(nameOf(ref))
    return left
  }

  async function writeHost(ref: Ref, { host: write, hostRef }: Plan, current: SyncedObject | undefined): Promise<void> {
    if (!write || !hostRef) return
    try {
      const left = await host.write(hostRef, () => perform({ to: options.host, kind }, hostRef, write))
      observer.wrote('host', write.verb)
      const needsHostUid = write.verb === 'create' && options.hostDeletePolicy === 'Propagate'
      if (needsHostUid || !isAsSent(write, left)) again.add(nameOf(ref))
    } catch (error) {
      const syncFailure = syncFailureOf(error, write.verb, { host: hostRef, ref })
      if (syncFailure) await refuse(ref, current, syncFailure)
      throw error
    }
  }

  /** Sets the condition on the virtual object when the host rejects a write. */
  async function refuse(
    ref: Ref,
    current: SyncedObject | undefined,
    syncFailure: SyncFailure,
    unresolved?: string,
  ): Promise<never> {
    const latest = virtual.get(ref) ?? current
    const mark = (object: SyncedObject) => {
      const failed = withCondition(object, syncFailure, now())
      return unresolved === undefined ? failed : withUnresolved(failed, unresolved, now())
    }
    const marked = latest && options.reportToTenant ? mark(latest) : latest
    if (marked && marked !== latest)
      await writeVirtual(ref, { state: 'failed', virtual: { verb: 'update', object: marked } })
    return report(ref, current, syncFailure)
  }

  async function report(ref: Ref, current: SyncedObject | undefined, syncFailure: SyncFailure): Promise<never> {
    observer.syncFailure(ref, syncFailure)
    const reason = syncFailure.reason === 'PatchFailed' ? 'PatchFailed' : 'SyncError'
    if (options.reportToTenant)
      await events.record({ ref, uid: current?.metadata.uid }, reason, `${syncFailure.reason}: ${syncFailure.message}`)
    throw new SyncFailureError(syncFailure)
  }

  return {
    ready,
    settled: work.idle,
    failures: () => [...work.failing].map(([name, failure]) => ({ kind: kind.kind, name, ...failure })),
    states: () => {
      const counts = new Map<State, number>()
      for (const state of states.values()) counts.set(state, (counts.get(state) ?? 0) + 1)
      return counts
    },
    resyncAll: addAll,
    known: { virtual: virtual.get, host: host.values },
    get depth() {
      return work.depth
    },
    async stop() {
      for (const one of [virtual, services, host]) one.stop()
      await work.stop()
    },
  }
}
