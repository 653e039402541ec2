// The syncer: follows endpoints and services of the virtual cluster and endpoints of the host, and makes the host follow,
// name by name. What a name needs is decided by plan.ts from both sides; here it is read, written, retried and told.

import type { Kind } from '../../api/kind.ts'
import type { Ref } from '../../api/object.ts'
import type { Resources } from '../../api/resources.ts'
import type { Referent } from '../patch/reference.ts'
import { missingApi } from './api-errors.ts'
import { isAsSent, isConflict, perform, referenceTrouble, troubleOf } from './apply-write.ts'
import { bare, gist, isOnlyCondition, serviceState, slim } from './cache-transforms.ts'
import { type Trouble, TroubleError, withCondition } from './condition.ts'
import { openEvents } from './events.ts'
import { Endpoints, type EndpointsObject, Service, type ServiceObject } from './kinds.ts'
import { type Plan, type PlanTools, planEndpoints, type State, type Write } from './plan.ts'
import { openRewriteBackoff } from './rewrite-backoff.ts'
import { startLanes } from './sharded-queue.ts'
import { virtualRefOf } from './sync-annotations.ts'
import { hostRefOf } from './translate.ts'
import { followCopies } from './write-through-cache.ts'

export type Side = 'virtual' | 'host'

/** What becomes of it is the caller's: metrics, logs. */
export type Observer = {
  /** A write that went through. */
  readonly wrote: (side: Side, verb: Write['verb']) => void
  /** From when a change was seen to when the host had it, in seconds. */
  readonly lag: (seconds: number) => void
  readonly failed: (what: string, error: unknown) => void
  readonly trouble: (ref: Ref, trouble: Trouble) => void
}

export type SyncOptions = PlanTools & {
  readonly virtual: Resources
  readonly host: Resources
  /** Namespaces of the host that are looked at; [''] is all. */
  readonly hostNamespaces: readonly string[]
  /** Brings along what patches refer to; throws Trouble-like errors where it may not. */
  readonly bringAlong?: ((referent: Referent) => Promise<void>) | undefined
  /** Whether troubles are told on the virtual objects, too. */
  readonly tell: boolean
  readonly instance: string
  readonly random: () => number
  /** Milliseconds that never jump, for how long something is ago. */
  readonly ticks: () => number
  readonly observer: Observer
}

export interface EndpointSync {
  /** Both sides were listed. */
  readonly ready: Promise<void>
  /** Everything that was seen is done, or has failed. */
  settled(): Promise<void>
  /** Names that failed at their last try, with why. */
  failures(): readonly { readonly name: string; readonly error: unknown; readonly attempts: number }[]
  states(): ReadonlyMap<State, number>
  /** Everything is looked at again: something that all of it depends on has changed. */
  lookAtAll(): void
  readonly depth: number
  /** What is known of either side, once it is ready. */
  readonly known: {
    virtual(ref: Ref): EndpointsObject | undefined
    host(): Iterable<EndpointsObject>
  }
  stop(): Promise<void>
}

const lanes = 8
/** What patches refer to is not followed: that would need rights on every Secret. It is looked at so often. */
const lookAtReferentsEvery = 30_000
const nameOf = ({ namespace, name }: Ref) => `${namespace}/${name}`
const refOf = (name: string): Ref => {
  const [namespace = '', rest = ''] = name.split('/')
  return { namespace, name: rest }
}
const atOf = ({ metadata: { namespace = '', name = '' } }: EndpointsObject): Ref => ({ namespace, name })

const versionOf = (object: EndpointsObject | undefined) => object?.metadata.resourceVersion

export function startEndpointSync(options: SyncOptions): EndpointSync {
  const { vcluster, observer, now } = options
  const states = new Map<string, State>()
  /** When the oldest change was seen that the host does not have yet. */
  const since = new Map<string, number>()
  /** Who waits for a host object that is not ours to go. */
  const waiting = new Map<string, Set<string>>()
  /** Names that have to be looked at again as they are now. */
  const again = new Set<string>()
  const turns = openRewriteBackoff(options.ticks)
  let isReady = false

  /** Who failed while a side was away need not wait for what its failures earned it, now or the next time. */
  const tryAgain = () => {
    for (const [name, { error }] of work.failing) {
      if (!(error instanceof TroubleError)) work.resetBackoff(name)
      add(name)
    }
  }
  const following = (side: Side, kind: Kind) => (error: unknown) =>
    observer.failed(`following ${side} ${kind.plural}`, missingApi(side, kind, error))
  const virtual = followCopies<EndpointsObject>({
    resources: options.virtual,
    kind: Endpoints,
    namespaces: [''],
    keep: slim,
    changed: (ref, next, before) => {
      if (next && before && isOnlyCondition(next, before)) return
      since.set(nameOf(ref), since.get(nameOf(ref)) ?? options.ticks())
      add(nameOf(ref))
    },
    failed: following('virtual', Endpoints),
    isBack: tryAgain,
  })
  const services = followCopies<ServiceObject>({
    resources: options.virtual,
    kind: Service,
    namespaces: [''],
    keep: gist,
    changed: (ref, next, before) => {
      if (!next || !before || serviceState(next) !== serviceState(before)) add(nameOf(ref))
    },
    failed: following('virtual', Service),
    isBack: tryAgain,
  })
  const host = followCopies<EndpointsObject>({
    resources: options.host,
    kind: Endpoints,
    namespaces: options.hostNamespaces,
    keep: object => (virtualRefOf(object.metadata, vcluster.name) ? slim(object) : bare(object)),
    changed: (ref, next, before) => {
      for (const object of [next, before]) {
        const own = object && virtualRefOf(object.metadata, vcluster.name)
        if (own) add(nameOf(own))
      }
      for (const name of waiting.get(nameOf(ref)) ?? []) add(name)
    },
    failed: following('host', Endpoints),
    isBack: tryAgain,
  })
  const events = openEvents({
    resources: options.virtual,
    instance: options.instance,
    now,
    failed: error => observer.failed('writing an Event', error),
  })
  const work = startLanes({
    lanes,
    work: reconcile,
    random: options.random,
    failed: (name, error) => {
      // Somebody else was faster: nothing is wrong, and the informer is about to tell.
      if (isConflict(error)) return
      states.set(name, 'failed')
      if (!(error instanceof TroubleError)) observer.failed(`syncing ${name}`, error)
    },
  })
  const add = (name: string) => {
    if (isReady) work.add(name)
  }

  const addAll = () => {
    for (const object of virtual.values()) add(nameOf(atOf(object)))
    for (const object of host.values()) {
      const own = virtualRefOf(object.metadata, vcluster.name)
      if (own) add(nameOf(own))
    }
  }
  /** Before all is listed, what is missing may just not be there yet. */
  const ready = Promise.all([virtual.ready, services.ready, host.ready]).then(() => {
    isReady = true
    addAll()
  })

  async function reconcile(name: string): Promise<number | undefined> {
    const early = turns.early(name, versionOf(virtual.get(refOf(name))))
    if (early > 0) return early
    const started = since.get(name)
    since.delete(name)
    try {
      const { host: write, referents, version } = await bringInOrder(name)
      if (write && started !== undefined) observer.lag((options.ticks() - started) / 1000)
      const next = turns.next(name, again.delete(name), version)
      if (next === 0) add(name)
      return next || (referents?.length ? lookAtReferentsEvery : undefined)
    } catch (error) {
      if (started !== undefined) since.set(name, started)
      throw error
    }
  }

  /** With the version of the virtual object that was seen, or left. */
  async function bringInOrder(name: string): Promise<Plan & { readonly version: string | undefined }> {
    const ref = refOf(name)
    const service = services.get(ref)
    const current = virtual.get(ref)
    const hostRef = hostRefOf(ref, vcluster)
    const plan = await planEndpoints(
      { ref, virtual: current, service: service ? serviceState(service) : 'none', host: hostRef && host.get(hostRef) },
      options,
    )
    wait(name, plan)
    let left = plan.first === 'virtual' ? await writeVirtual(ref, plan) : undefined
    await writeHost(ref, plan, current)
    for (const referent of plan.referents ?? []) await bring(referent, ref, current)
    // Last, for it takes the condition away.
    if (plan.first !== 'virtual') left = await writeVirtual(ref, plan)
    else if (plan.state === 'synced') again.add(name) // a condition that may be there goes the next time
    if (plan.state === 'gone') states.delete(name)
    else states.set(name, plan.state)
    if (plan.trouble) await report(ref, current, plan.trouble)
    return { ...plan, version: versionOf(plan.virtual ? left : current) }
  }

  /** Until what is in the way has gone: it is not ours, so nothing else would tell. */
  function wait(name: string, { trouble, hostRef, state }: Plan): void {
    if (!hostRef) return
    const slot = nameOf(hostRef)
    const others = waiting.get(slot)
    const isLeaving = state === 'waiting' && host.get(hostRef)?.metadata.deletionTimestamp !== undefined
    if (isLeaving || trouble?.reason === 'HostObjectForeign') waiting.set(slot, (others ?? new Set()).add(name))
    else if (others?.delete(name) && others.size === 0) waiting.delete(slot)
  }

  async function writeVirtual(ref: Ref, { virtual: write }: Plan): Promise<EndpointsObject | undefined> {
    if (!write) return undefined
    const left = await virtual.write(ref, () => perform(options.virtual, ref, write))
    observer.wrote('virtual', write.verb)
    if (!isAsSent(write, left)) again.add(nameOf(ref))
    return left
  }

  async function writeHost(
    ref: Ref,
    { host: write, hostRef }: Plan,
    current: EndpointsObject | undefined,
  ): Promise<void> {
    if (!write || !hostRef) return
    try {
      const left = await host.write(hostRef, () => perform(options.host, hostRef, write))
      observer.wrote('host', write.verb)
      const isToMark = write.verb === 'create' && options.hostDeletePolicy === 'Propagate'
      if (isToMark || !isAsSent(write, left)) again.add(nameOf(ref))
    } catch (error) {
      const trouble = troubleOf(error, write.verb, { host: hostRef, ref })
      if (trouble) await refuse(ref, current, trouble)
      throw error
    }
  }

  async function bring(referent: Referent, ref: Ref, current: EndpointsObject | undefined): Promise<void> {
    try {
      await options.bringAlong?.(referent)
    } catch (error) {
      const trouble = error instanceof TroubleError ? error.trouble : referenceTrouble(error, referent)
      if (trouble) await refuse(ref, current, trouble)
      throw error
    }
  }

  /** The host said no: the condition says so on the virtual object. */
  async function refuse(ref: Ref, current: EndpointsObject | undefined, trouble: Trouble): Promise<never> {
    const latest = virtual.get(ref) ?? current
    const marked = latest && options.tell ? withCondition(latest, trouble, now()) : latest
    if (marked && marked !== latest)
      await writeVirtual(ref, { state: 'failed', virtual: { verb: 'update', object: marked } })
    return report(ref, current, trouble)
  }

  async function report(ref: Ref, current: EndpointsObject | undefined, trouble: Trouble): Promise<never> {
    observer.trouble(ref, trouble)
    const reason = trouble.reason === 'PatchFailed' ? 'PatchFailed' : 'SyncError'
    if (options.tell)
      await events.tell({ ref, uid: current?.metadata.uid }, reason, `${trouble.reason}: ${trouble.message}`)
    throw new TroubleError(trouble)
  }

  return {
    ready,
    settled: work.idle,
    failures: () => [...work.failing].map(([name, failure]) => ({ name, ...failure })),
    states: () => {
      const counts = new Map<State, number>()
      for (const state of states.values()) counts.set(state, (counts.get(state) ?? 0) + 1)
      return counts
    },
    lookAtAll: addAll,
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
