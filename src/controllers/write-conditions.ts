// Writes conditions from controllers: only if they change, and only about the state that the controller saw (D23).

import { ApiError, ignoreNotFound } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import type { Json, JsonObject, Ref, Resource } from '../api/object.ts'
import type { Resources } from '../api/resources.ts'
import { conditionOf, type Finding, withConditions, withObserved } from '../kinds/object-conditions.ts'
import { ClusterRole, mirrorLabel } from '../kinds/rbac.ts'
import { Team } from '../kinds/team.ts'
import { localRoles } from '../kinds/team-cluster-roles.ts'

type Owner = { readonly kind: Kind; readonly ref: Ref }

type Update = {
  readonly findings: readonly Finding[]
  /** Whether the findings are about this state of the object. */
  readonly isCurrent: (object: Resource) => boolean
  readonly now: () => number
}

export const writeConditions = (resources: Resources, owner: Owner, { findings, isCurrent, now }: Update) =>
  rewriteStatus(resources, owner, async object =>
    isCurrent(object) && !(isObserved(object) && findings.every(one => isNoted(object, one)))
      ? withConditions(object, findings, now())
      : undefined,
  )

/** The first conditions of an object that an earlier version stored. */
export const writeFirstConditions = (resources: Resources, owner: Owner, now: () => number) =>
  rewriteStatus(resources, owner, async object => {
    if (conditionOf(object, 'AccessApplied')) return undefined
    const missingRoles = owner.kind === Team ? await missingRolesOf(resources, object) : undefined
    return withObserved(object, object, { now: now(), missingRoles })
  })

/** Clients such as Flux wait for an object whose newest generation is not observed. */
const isObserved = ({ metadata, status }: Resource) =>
  metadata.generation === undefined || status?.['observedGeneration'] === metadata.generation

/** Without the message: an error that repeats with other words is not a change. */
function isNoted(object: Resource, { type, status, reason, message }: Finding): boolean {
  const stored = conditionOf(object, type)
  return (
    stored?.status === status && stored.reason === reason && (type === 'AccessApplied' || stored.message === message)
  )
}

/** The cluster roles of a team that do not exist. Generated roles grant nothing, so they do not count. */
export async function missingRolesOf(resources: Resources, team: Resource): Promise<readonly string[]> {
  const missing: string[] = []
  for (const name of localRoles(team.spec)) {
    const role = await resources.get(ClusterRole, { namespace: '', name }).then(({ object }) => object, ignoreNotFound)
    const isThere = role && !role.metadata.deletionTimestamp && role.metadata.labels?.[mirrorLabel] === undefined
    if (!isThere) missing.push(name)
  }
  return missing
}

const maxAttempts = 5

export async function rewriteStatus(
  resources: Resources,
  { kind, ref }: Owner,
  change: (object: Resource) => Promise<Resource | undefined>,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const object = await resources.get(kind, ref).then(document => document.object, ignoreNotFound)
    const next = object && !object.metadata.deletionTimestamp ? await change(object) : undefined
    if (!next) return
    const { resourceVersion = '' } = next.metadata
    const body = { metadata: { resourceVersion }, status: next.status as unknown as JsonObject } as Json
    try {
      const options = { fieldManager: 'object-conditions', subresource: 'status' } as const
      return void (await resources.patch(kind, ref, { type: 'merge', body }, options))
    } catch (error) {
      if (error instanceof ApiError && error.code === 404) return
      if (!(error instanceof ApiError) || error.code !== 409 || attempt === maxAttempts) throw error
    }
  }
}
