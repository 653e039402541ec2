// Objects: the server's own changes are limited, only it writes reserved labels, and scoped keys grant nothing (D11, D25, D26).

import type { Known } from './model.ts'
import {
  clusterPins,
  kinds,
  loginPin,
  mirrorLabel,
  type Obj,
  pullPins,
  reserved,
  teamPins,
  type Words,
} from './objects.ts'
import type { Prover } from './prover.ts'
import type { Change, Outcome } from './step.ts'
import { Violation } from './violation.ts'

const day = 24 * 3600 * 1000
const same = (one: unknown, other: unknown) => JSON.stringify(one ?? null) === JSON.stringify(other ?? null)

export function checkObjects(prover: Prover, changes: readonly Change[], outcome: Outcome | undefined): void {
  for (const change of changes) {
    const { type, before, after, cause } = change
    const { kind, name } = (after ?? before) as Known
    if (kind === kinds.TokenRevocation) continue
    if (outcome?.step.dryRun && outcome.accepted)
      throw new Violation('objects', `a dry run changed ${kind.kind} "${name}"`)
    if (cause !== 'server') checkWriter(change, outcome as Outcome)
    else if (
      before &&
      !before.byServer &&
      (type === 'deleted' ? !mayVanish(prover, before) : !mayDiffer(before, after as Known))
    )
      throw new Violation('objects', `the server ${type} ${kind.kind} "${name}", which is not its own`)
  }
}

/** The effect of a request on the object it names. */
function checkWriter({ before, after }: Change, { step, before: known }: Outcome): void {
  if (after) {
    const now = reservedIn(after.object)
    const was = before ? reservedIn(before.object) : {}
    const isOwnLogin = !before && now[loginPin] !== undefined && now[loginPin] === known.credential?.login
    const pins = [teamPins, pullPins, clusterPins, ...(isOwnLogin ? [loginPin] : [])]
    const key = Object.keys(now).find(one => now[one] !== was[one] && !pins.includes(one))
    if (key && !after.byServer)
      throw new Violation(
        'objects',
        `${step.what} set "${key}" on ${after.kind.kind} "${after.name}", which only the server may`,
      )
  }
  if (!before || !after || same(before.object.metadata.ownerReferences, after.object.metadata.ownerReferences)) return
  if (!known.deletes)
    throw new Violation(
      'objects',
      `${step.what} changed the owners of ${after.kind.kind} "${after.name}" without the right to delete it`,
    )
}

function reservedIn({ metadata: { labels = {}, annotations = {} } }: Obj): Words {
  const own = (words: Words) => Object.entries(words).filter(([key]) => key.startsWith(reserved))
  return Object.fromEntries([...own(labels), ...own(annotations)])
}

/** Objects disappear after a requested deletion, after all their owners, a day after they expired, or with their User. */
function mayVanish({ model, credentials, server, signIns }: Prover, gone: Known): boolean {
  const { deletionTimestamp, ownerReferences = [] } = gone.object.metadata
  if (deletionTimestamp !== undefined) return true
  if (ownerReferences.length && ownerReferences.every(({ uid }) => isLost(model.uids.get(uid), gone))) return true
  if (signIns.hasEnded(gone)) return true
  return gone.kind === kinds.OwnedAccessKey && isExpired(gone, credentials.keyEnd(gone), server.now())
}

/** Only the server knows when a sliding key was last used, so it may have expired any time after its first lifetime. */
function isExpired({ object: { metadata, spec = {} } }: Known, end: number, now: number): boolean {
  const first = Date.parse(metadata.creationTimestamp ?? '') + (spec.ttl ?? Number.POSITIVE_INFINITY) * 1000
  return (spec.ttlAfterLastActivity ? Math.min(first, end) : end) + day <= now
}

/** An owner that is deleted, is being deleted, or is in another namespace, where it is not valid. */
const isLost = (owner: Known | undefined, { namespace }: Known) =>
  owner === undefined ||
  owner.object.metadata.deletionTimestamp !== undefined ||
  (owner.namespace !== '' && owner.namespace !== namespace)

/** Status and bookkeeping, aggregated rules, copied data, and the traces of garbage collection. */
function mayDiffer(before: Known, after: Known): boolean {
  return before.uid === after.uid && same(contentOf(before), contentOf(after))
}

function contentOf({ object: { metadata, spec, status: _, ...rest } }: Known): unknown {
  const { labels = {}, annotations = {}, name, namespace } = metadata
  const own = (words: Words) => Object.fromEntries(Object.entries(words).filter(([key]) => !key.startsWith(reserved)))
  const isMirror = labels[mirrorLabel] !== undefined
  const { rules: __, ...others } = rest
  // Every write encrypts data again.
  // A key follows the next sign-in of its user (D66).
  const { data: ___, parent: ____, sharedSecretRef: ref, ...fields } = spec ?? {}
  return {
    name,
    namespace,
    isMirror,
    labels: own(labels),
    annotations: own(annotations),
    ...(rest.aggregationRule ? others : rest),
    spec: fields,
    ...(ref ? { ref: [ref.name, ref.namespace] } : {}),
  }
}

/** Objects that grant permissions: scoped keys cannot write them. */
const powerOf = ({ spec = {}, status = {}, rules, aggregationRule, roleRef, subjects }: Obj) => {
  const {
    owner,
    access: entries = [],
    users,
    groups,
    clusterRoles,
    imagePullSecrets,
    deliver,
    disabled,
    projects,
    gateway,
  } = spec
  const access = entries.filter(one => one.verbs.length && (one.users?.length || one.teams?.length))
  const all = {
    owner,
    access,
    users,
    groups,
    clusterRoles,
    imagePullSecrets,
    deliver,
    // A disabled cluster gets nothing.
    ...(disabled ? {} : { projects, gateway }),
    rules,
    aggregationRule,
    roleRef,
    subjects,
    isEnabled: spec.disabled === true ? [] : [true],
    identities: status['identities'],
  }
  // An empty list grants the same as no list, and so does an entry without subjects.
  return Object.fromEntries(Object.entries(all).filter(([, value]) => !Array.isArray(value) || value.length > 0))
}

export function checkScopedKeys({ step, before: { scope }, changes }: Outcome): void {
  if (scope === undefined) return
  for (const { before, after, cause } of changes) {
    if (cause === 'server' || !after || after.kind === kinds.OwnedAccessKey) continue
    const isPower = after.kind.group.startsWith('rbac.') || after.kind === kinds.User
    if (!before && !isPower) continue
    if (before && same(powerOf(before.object), powerOf(after.object))) continue
    throw new Violation(
      'scoped keys',
      `${step.what} of ${after.kind.kind} "${after.name}" by a scoped key was accepted`,
    )
  }
}
