// The garbage collector: dependents follow their owners (D11), foreground and orphan deletions come to an end, and
// objects whose grace period is over are removed (D10).

import { ignoreNotFound, isUndecryptable } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import type { JsonObject, OwnerReference, Ref, Resource } from '../api/object.ts'
import type { Resources } from '../api/resources.ts'
import { forEachInSlices } from '../api/time-slices.ts'
import { mentions } from '../reconcile/document-words.ts'
import { type Informer, startInformer } from '../reconcile/informer.ts'
import { startLoop } from '../reconcile/work-queue.ts'
import { reachableFrom } from './reachability.ts'

const day = 24 * 3600 * 1000

type Node = {
  readonly kind: Kind
  readonly ref: Ref
  readonly uid: string
  readonly resourceVersion: string | undefined
  readonly owners: readonly OwnerReference[]
  readonly finalizers: readonly string[]
  readonly deletionTimestamp: string | undefined
}

export type GarbageCollector = { readonly ready: Promise<void>; idle(): Promise<void>; stop(): Promise<void> }

export type GarbageCollectorOptions = {
  readonly resources: Resources
  readonly kinds: readonly Kind[]
  readonly now: () => number
  readonly failed: (what: string, error: unknown) => void
}

export function startGarbageCollector({ resources, kinds, now, failed }: GarbageCollectorOptions): GarbageCollector {
  const nodes = new Map<string, Node>()
  const dependents = new Map<string, Set<string>>()
  const stored = kinds.filter(kind => kind.stored)
  const reasons: Reasons = { resources, kinds: stored, nodes, dependents, now }
  const loop = startLoop({
    reconcile: uid => reconcile(reasons, uid),
    failed: (uid, error) => {
      // A lost race is tried again like any failure, and is none to tell of.
      if ((error as { code?: number }).code !== 409) failed(`garbage collection of ${uid}`, error)
    },
  })

  const changed = (next: Node | undefined, before: Node | undefined) => {
    if (before && before.uid !== next?.uid) {
      nodes.delete(before.uid)
      for (const { uid } of before.owners) forget(dependents, uid, before.uid)
      for (const uid of dependents.get(before.uid) ?? []) loop.add(uid)
      for (const { uid } of before.owners) loop.add(uid) // an owner may have waited for this one
    }
    if (!next) return
    for (const { uid } of before?.owners ?? []) forget(dependents, uid, next.uid)
    nodes.set(next.uid, next)
    for (const { uid } of next.owners) dependents.set(uid, (dependents.get(uid) ?? new Set()).add(next.uid))
    for (const { uid } of [...next.owners, ...(before?.owners ?? [])]) loop.add(uid)
    if (next.owners.length || next.deletionTimestamp) loop.add(next.uid)
  }

  const informers: Informer<Node>[] = stored.map(kind =>
    startInformer({
      resources,
      kind,
      // Other objects have no owner and are not being deleted. Whether they exist, and own something, is checked when it matters.
      counts: mentions('ownerReferences', 'finalizers', 'deletionTimestamp'),
      keep: object => nodeOf(kind, object),
      changed: (_, next, before) => changed(next, before),
      deleted: ({ metadata: { uid = '' } }) => {
        for (const one of dependents.get(uid) ?? []) loop.add(one)
      },
      listed: () => {
        for (const uid of nodes.keys()) loop.add(uid)
      },
      failed: error => failed(`watching ${kind.plural}`, error),
    }),
  )
  const ready = Promise.all(informers.map(informer => informer.ready)).then(() => {
    // Absence of an owner means something only once every kind has been listed.
    reasons.complete = true
    for (const uid of nodes.keys()) loop.add(uid)
  })
  return {
    ready,
    idle: () => loop.idle(),
    async stop() {
      for (const informer of informers) informer.stop()
      await loop.stop()
    },
  }
}

type Reasons = {
  readonly resources: Resources
  readonly kinds: readonly Kind[]
  readonly nodes: ReadonlyMap<string, Node>
  readonly dependents: ReadonlyMap<string, ReadonlySet<string>>
  readonly now: () => number
  complete?: boolean
}

function nodeOf(kind: Kind, { metadata }: Resource): Node {
  return {
    kind,
    ref: { namespace: metadata.namespace ?? '', name: metadata.name ?? '' },
    uid: metadata.uid ?? '',
    resourceVersion: metadata.resourceVersion,
    owners: metadata.ownerReferences ?? [],
    finalizers: metadata.finalizers ?? [],
    deletionTimestamp: metadata.deletionTimestamp,
  }
}

function forget(dependents: Map<string, Set<string>>, owner: string, uid: string): void {
  const set = dependents.get(owner)
  set?.delete(uid)
  if (set?.size === 0) dependents.delete(owner)
}

async function reconcile(state: Reasons, uid: string): Promise<number | undefined> {
  const node = state.nodes.get(uid)
  if (!node || !state.complete) return undefined
  if (node.deletionTimestamp !== undefined) return finish(state, node, node.deletionTimestamp)
  if (node.owners.length) await collect(state, node)
  return undefined
}

/** A deletion under way: its policy first, then its time. */
async function finish(state: Reasons, node: Node, deletionTimestamp: string): Promise<number | undefined> {
  const below = [...(state.dependents.get(node.uid) ?? [])].flatMap(uid => state.nodes.get(uid) ?? [])
  if (node.finalizers.includes('orphan')) {
    // One that could not be released would be collected as soon as its owner is gone: that keeps the owner here.
    await forEachInSlices(below, one => release(state, one, [node.uid]))
    await unlock(state, node, 'orphan')
  } else if (node.finalizers.includes('foregroundDeletion')) {
    const waiting = below.filter(one => one.owners.some(owner => owner.uid === node.uid && owner.blockOwnerDeletion))
    const remaining = below.filter(one => one.deletionTimestamp === undefined)
    await forEachInSlices(remaining, one => collect(state, one, node.uid))
    // A dependent that also owns this object, or waits for it, would wait forever. This breaks the cycle.
    const owners = reachableFrom(node.uid, uid => state.nodes.get(uid)?.owners.map(owner => owner.uid) ?? [])
    if (waiting.every(one => owners.has(one.uid))) await unlock(state, node, 'foregroundDeletion')
  } else if (node.finalizers.length === 0) {
    const left = Date.parse(deletionTimestamp) - state.now()
    // Timers do not reach further than 24 days; a look a day is enough.
    if (left > 0) return Math.min(left, day)
    await state.resources
      .delete(node.kind, node.ref, { gracePeriodSeconds: 0, preconditions: { uid: node.uid } })
      .catch(ignoreNotFound)
  }
  return undefined
}

/** Deletes a dependent none of whose owners is left; takes lost owners out of one that has others. */
async function collect(state: Reasons, known: Node, going?: string): Promise<void> {
  // The cache may be stale, and a deletion cannot be undone, so the current object decides.
  const node = await current(state, known)
  if (!node) return
  const lost: OwnerReference[] = []
  for (const owner of node.owners) if (owner.uid === going || (await isLost(state, node, owner))) lost.push(owner)
  if (lost.length === 0) return
  if (lost.length < node.owners.length)
    return release(
      state,
      node,
      lost.map(owner => owner.uid),
    )
  // Going down with an owner that waits: whatever depends on this one is waited for as well.
  const propagationPolicy = going !== undefined && state.dependents.has(node.uid) ? 'Foreground' : 'Background'
  const policy = node.finalizers.some(one => one === 'orphan' || one === 'foregroundDeletion')
    ? {}
    : ({ propagationPolicy } as const)
  const preconditions = { uid: node.uid, resourceVersion: node.resourceVersion ?? '' }
  await state.resources.delete(node.kind, node.ref, { ...policy, preconditions }).catch(ignoreNotFound)
}

/** Only kinds served here can be missed; an owner in another namespace cannot be one. */
async function isLost(state: Reasons, node: Node, owner: OwnerReference): Promise<boolean> {
  const kind = state.kinds.find(one => one.kind === owner.kind && one.apiVersion === owner.apiVersion)
  if (!kind) return false
  const there = state.nodes.get(owner.uid)
  if (there) return there.kind.namespaced && there.ref.namespace !== node.ref.namespace
  const ref = { namespace: kind.namespaced ? node.ref.namespace : '', name: owner.name }
  return (await load(state, kind, ref))?.uid !== owner.uid
}

/** The node as it is now; undefined when it is gone, or another object has its name. */
async function current(state: Reasons, { kind, ref, uid }: Node): Promise<Node | undefined> {
  const node = await load(state, kind, ref)
  return node?.uid === uid ? node : undefined
}

async function load(state: Reasons, kind: Kind, ref: Ref): Promise<Node | undefined> {
  const document = await state.resources.get(kind, ref).catch(ignoreNotFound)
  return document && nodeOf(kind, document.object)
}

async function release(state: Reasons, known: Node, owners: readonly string[]): Promise<void> {
  const node = await current(state, known)
  const references = node?.owners.filter(one => !owners.includes(one.uid)) ?? []
  if (!node || references.length === node.owners.length) return
  await change(state, node, { ownerReferences: references.length ? references : null })
}

async function unlock(state: Reasons, node: Node, finalizer: string): Promise<void> {
  const finalizers = node.finalizers.filter(one => one !== finalizer)
  await change(state, node, { finalizers: finalizers.length ? finalizers : null }).catch(error => {
    // An object that does not decrypt cannot be updated, but it can be deleted (D28): another policy removes the finalizer.
    if (!isUndecryptable(error)) throw error
    const preconditions = { uid: node.uid, resourceVersion: node.resourceVersion ?? '' }
    return state.resources
      .delete(node.kind, node.ref, { propagationPolicy: 'Background', preconditions })
      .then(() => {}, ignoreNotFound)
  })
}

/** At exactly this version: after a concurrent write the object is checked again. */
async function change(state: Reasons, { kind, ref, resourceVersion = '' }: Node, metadata: JsonObject): Promise<void> {
  const body = { metadata: { ...metadata, resourceVersion } }
  await state.resources
    .patch(kind, ref, { type: 'merge', body }, { fieldManager: 'garbage-collector' })
    .catch(ignoreNotFound)
}
