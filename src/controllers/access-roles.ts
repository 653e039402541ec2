// Generates roles and bindings for `access` entries and the cluster roles of teams, and restores them (D26).
// They are informational: the authorizer reads the object itself, so they grant nothing. They are deleted with their object.

import { ignoreNotFound, isUndecryptable } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import type { Resource } from '../api/object.ts'
import type { Document, Resources } from '../api/resources.ts'
import { forEachInSlices, pause } from '../api/time-slices.ts'
import { accessApplied, accessFailed, accessPending, conditionOf, generatedFrom } from '../kinds/object-conditions.ts'
import { mirrorLabel } from '../kinds/rbac.ts'
import { latin1, mentions } from '../reconcile/document-words.ts'
import { startInformer } from '../reconcile/informer.ts'
import { startLoop } from '../reconcile/work-queue.ts'
import { generatedKinds, type Owner, planRoles, type Write } from './role-plan.ts'
import { writeConditions, writeFirstConditions } from './write-conditions.ts'

export type AccessRolesOptions = {
  readonly resources: Resources
  /** Kinds whose objects have owners and access entries. */
  readonly kinds: readonly Kind[]
  readonly now: () => number
  readonly failed: (what: string, error: unknown) => void
}

/** `source`: what the roles are generated from. `isOpen`: the conditions do not say yet that they exist. */
type Followed = { readonly source: string; readonly isOpen: boolean; readonly isBare: boolean }

/** An earlier version stored objects without conditions. A large store gets them slowly, so that other writes are not delayed. */
const firstConditionsEvery = 20

/** The writes of one object in one turn. An object that needs more waits for the other large ones. */
const maxWrites = 10

/** Writes of a large object. `writes` is undefined after a failure: the rest is planned again. */
type Plan = { readonly owner: Owner; state: State; writes: Iterator<Write> | undefined }

export function startAccessRoles({ resources, kinds, now, failed }: AccessRolesOptions): {
  readonly ready: Promise<void>
  idle(): Promise<void>
  stop(): Promise<void>
} {
  const queued = new Map<string, Owner>()
  const plans = new Map<string, Plan>()

  let handOvers = 0

  /** A failure is in the conditions, and the loop tries again. */
  const reporting = async <T>(owner: Owner, { isCurrent }: State, work: () => Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      await writeConditions(resources, owner, { findings: [accessFailed(message)], isCurrent, now })
      throw error
    }
  }

  /** Hands an object that needs many writes to `large`. */
  const reconcile = async (slot: string, owner: Owner): Promise<void> => {
    const state = await stateOf(resources, owner)
    if (!state) return
    const isDone = await reporting(owner, state, async () => {
      const writes = await planRoles(resources, owner, state.object)
      if (!writes) return false
      if (writes.length > maxWrites) {
        plans.set(slot, { owner, state, writes: writes.values() })
        handOvers++
        large.add(slot)
        return false
      }
      await forEachInSlices(writes, async write => void (await write()))
      return true
    })
    if (isDone && conditionOf(state.object, 'AccessApplied')?.status !== 'True')
      await writeConditions(resources, owner, { findings: [accessApplied], isCurrent: state.isCurrent, now })
  }

  const small = startLoop({
    reconcile: async slot => {
      // `large` adds the object again when its plan ends.
      if (plans.has(slot)) return undefined
      const one = queued.get(slot)
      if (one) await reconcile(slot, one)
      if (queued.get(slot) === one) queued.delete(slot)
      return undefined
    },
    failed: (slot, error) => failed(`generating the roles of ${slot}`, error),
  })

  // A loop of its own, in which large objects take turns. They delay neither small objects nor each other.
  const large = startLoop({
    reconcile: async slot => {
      const plan = plans.get(slot)
      if (!plan) return undefined
      const state = await stateOf(resources, plan.owner)
      const isDone = !state || (await reporting(plan.owner, state, () => writeSome(resources, plan, state)))
      if (!isDone) return void large.add(slot)
      plans.delete(slot)
      handOvers++
      add(plan.owner) // completes the object, or notices what changed meanwhile
      return undefined
    },
    failed: (slot, error) => failed(`generating the roles of ${slot}`, error),
  })
  const bare = new Map<string, Owner>()
  const firstConditions = startLoop({
    reconcile: async () => {
      const [next] = bare
      if (next) {
        bare.delete(next[0])
        await writeFirstConditions(resources, next[1], now).catch(error => {
          // A damaged object is not written, and others go first after a failure.
          if (isUndecryptable(error)) return
          bare.set(...next)
          throw error
        })
      }
      return bare.size > 0 ? firstConditionsEvery : undefined
    },
    failed: (_, error) => failed('writing the first conditions of an object', error),
  })
  const add = (owner: Owner | undefined) => {
    if (!owner) return
    const slot = slotOf(owner)
    queued.set(slot, owner)
    small.add(slot)
  }
  const objects = kinds.map(kind =>
    startInformer({
      resources,
      kind,
      counts: isFollowed,
      keep: followed,
      failed: error => failed(`watching ${kind.plural}`, error),
      changed: (ref, next, before) => {
        const owner = { kind, ref }
        if (next?.isBare) {
          bare.set(slotOf(owner), owner)
          if (bare.size === 1) firstConditions.add('next')
        } else if (next?.isOpen || (next?.source ?? '') !== (before?.source ?? '')) add(owner)
      },
    }),
  )
  // Somebody may edit or delete what was generated.
  const generated = generatedKinds.map(kind =>
    startInformer({
      resources,
      kind,
      counts: mentions(mirrorLabel),
      keep: object => ownerIn(kinds, object),
      failed: error => failed(`watching ${kind.plural}`, error),
      changed: (_, next, before) => {
        add(next)
        if (!next) add(before)
      },
    }),
  )
  const informers = [...objects, ...generated]
  return {
    ready: Promise.all(informers.map(informer => informer.ready)).then(() => {}),
    async idle() {
      for (let seen = -1; seen !== handOvers; ) {
        seen = handOvers
        await Promise.all([small.idle(), large.idle(), firstConditions.idle()])
      }
    },
    async stop() {
      for (const informer of informers) informer.stop()
      await Promise.all([small.stop(), large.stop(), firstConditions.stop()])
    },
  }
}

const slotOf = ({ kind, ref }: Owner) => `${kind.plural}/${ref.namespace}/${ref.name}`

/** By the bytes: most objects have no access entries, and their conditions say all there is to say. */
function isFollowed(document: Document): boolean {
  if (hasEntries(document)) return true
  const text = latin1(document.json)
  return text.includes(pending) || !text.includes(appliedType)
}
const hasEntries = mentions('access', 'clusterRoles')
/** Without their first quotes, because a search for a quote stops at every word. */
const pending = `${accessPending}"`
const appliedType = 'type":"AccessApplied"'

function followed(object: Resource): Followed {
  const applied = conditionOf(object, 'AccessApplied')
  if (object.metadata.deletionTimestamp) return { source: '', isOpen: false, isBare: false }
  const source = generatedFrom(object.spec)
  return {
    source: source && `${object.metadata.uid} ${source}`,
    isOpen: applied?.reason === accessPending,
    isBare: applied === undefined,
  }
}

/** The object that a generated role or binding belongs to. */
function ownerIn(kinds: readonly Kind[], { metadata }: Resource): Owner | undefined {
  const reference = metadata.ownerReferences?.find(one => one.controller === true)
  const kind = kinds.find(one => one.kind === reference?.kind && one.apiVersion === reference.apiVersion)
  return kind && { kind, ref: { namespace: metadata.namespace ?? '', name: reference?.name ?? '' } }
}

/** The state of an object that roles are generated from. */
type State = { readonly object: Resource; readonly isCurrent: (other: Resource) => boolean }

/** undefined: the object does not exist, or the garbage collector deletes its roles. */
async function stateOf(resources: Resources, { kind, ref }: Owner): Promise<State | undefined> {
  const object = await resources.get(kind, ref).then(document => document.object, ignoreNotFound)
  if (!object || object.metadata.deletionTimestamp) return undefined
  const source = generatedFrom(object.spec)
  const isCurrent = (other: Resource) =>
    other.metadata.uid === object.metadata.uid && generatedFrom(other.spec) === source
  return { object, isCurrent }
}

/** True: everything is written. */
async function writeSome(resources: Resources, plan: Plan, state: State): Promise<boolean> {
  const isValid = plan.writes && plan.state.isCurrent(state.object)
  const writes = isValid ? plan.writes : (await planRoles(resources, plan.owner, state.object))?.values()
  plan.state = state
  plan.writes = undefined
  for (let count = 0; count < maxWrites; count++) {
    await pause()
    const next = writes?.next()
    if (!next || next.done) return true
    await next.value()
  }
  plan.writes = writes
  return false
}
