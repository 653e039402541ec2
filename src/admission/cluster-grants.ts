// Checks what a write sends to connected clusters: roles of teams, deliveries of secrets, and changes of a Cluster (D60, D68, D69).

import type { Caller } from '../api/caller.ts'
import { forbidden } from '../api/errors.ts'
import type { ClusterSelection, Grant } from '../api/grant.ts'
import type { Ref, Resource } from '../api/object.ts'
import type { Decision, Question, RuleComparison } from '../api/permissions.ts'
import type { GatedWrite } from '../api/power-gate.ts'
import { pause } from '../api/time-slices.ts'
import { clusterNamesIn, clusterUidsOf, type SelectableCluster, selects } from '../kinds/cluster-selection.ts'
import { type DeliveryCluster, deliverTo } from '../kinds/delivery.ts'
import { pinnedOwner, printOwner } from '../kinds/project-secret-source.ts'
import { teamOfGroup, teamUidsOf } from '../kinds/team-uids.ts'
import { type ActsForDependencies, checkActsFor } from './acts-for-owner.ts'
import { refusal, shown } from './missing-permissions.ts'

/** A role of a connected cluster. `uid`: of the cluster, if it exists and is the one that is meant. */
export type ClusterRoleRef = { readonly cluster: string; readonly role: string; readonly uid?: string | undefined }

/** Secrets and roles for a cluster. `key`: identifies the Secret in the cluster and the delivery that sends it. */
export type Flows = {
  readonly secrets: readonly { readonly key: string; readonly ref: Ref }[]
  readonly roles: readonly { readonly key: string; readonly role: string }[]
}

export type ClusterDependencies = ActsForDependencies & {
  readonly authorize: (caller: Caller, question: Question) => Decision
  readonly compareRules: RuleComparison
  /** All connected clusters that are not being deleted. */
  readonly clusters: () => Iterable<SelectableCluster>
  readonly flowsTo: (cluster: DeliveryCluster) => Flows
  /** Roles of connected clusters that members of a team have, or will have once the cluster exists. */
  readonly clusterRolesOf: (team: string) => readonly ClusterRoleRef[]
}

const group = 'management.platform.sh'
const clusterTarget = (name: string) => ({ group, resource: 'clusters', namespace: '', name })

const mayBind = ({ cluster, role }: ClusterRoleRef): Question => ({
  verb: 'bind',
  target: { group, resource: 'clusters', subresource: 'clusterroles', namespace: '', name: `${cluster}:${role}` },
})

/** Named clusters, whether they exist or not, or all that the selector selects now. Others pass the gate when they are written. */
function selected(
  { clusters }: Pick<ClusterDependencies, 'clusters'>,
  selection: ClusterSelection,
  object: Pick<Resource, 'metadata'>,
): readonly string[] {
  if (selection.names?.length) return selection.names
  const uids = clusterUidsOf(object)
  return [...clusters()].flatMap(cluster => (selects(selection, cluster, uids) ? [cluster.name] : []))
}

type Of<T extends Grant['type']> = Extract<Grant, { readonly type: T }>

/** Giving a role of a connected cluster needs the verb `bind` on it; with a selector also on `*:<role>`. */
export function checkClusterRole(dependencies: ClusterDependencies, check: GatedWrite, grant: Of<'clusterRole'>): void {
  const { role } = grant
  // A selector may select any cluster later.
  const any = grant.clusters.names?.length ? [] : ['*']
  const wanted = [...any, ...selected(dependencies, grant.clusters, check.next)].map(cluster => ({ cluster, role }))
  refuseUnbindable(dependencies, check, wanted, () => false)
}

/** A key or member of a team has its roles in connected clusters. Callers have those of their own teams. */
export function checkTeamClusterRoles(dependencies: ClusterDependencies, check: GatedWrite, team: string): void {
  const wanted = dependencies.clusterRolesOf(team)
  if (wanted.length === 0) return
  const { caller } = check.request
  const idOf = ({ uid, role }: ClusterRoleRef) => `${uid}:${role}`
  const teams = caller.groups.flatMap(name => teamOfGroup(name) ?? [])
  const effective = teams.flatMap(one => dependencies.clusterRolesOf(one).filter(({ uid }) => uid !== undefined))
  const held = new Set(effective.map(idOf))
  const isHeld = (one: ClusterRoleRef) => one.uid !== undefined && caller.scope === undefined && held.has(idOf(one))
  refuseUnbindable(dependencies, check, wanted, isHeld)
}

function refuseUnbindable(
  { authorize }: ClusterDependencies,
  check: GatedWrite,
  wanted: readonly ClusterRoleRef[],
  isHeld: (one: ClusterRoleRef) => boolean,
): void {
  const { caller } = check.request
  const missing = wanted.filter(one => !isHeld(one) && !authorize(caller, mayBind(one)).allowed)
  if (missing.length)
    throw refusal(
      check,
      `roles of connected clusters require the verb bind on clusters/clusterroles "<cluster>:<role>"; missing: ${shown(missing.map(({ cluster, role }) => `${cluster}:${role}`)).join(', ')}`,
    )
}

/**
 * The caller and the owner of the secret must both be allowed to deliver to each cluster. The server later asks only about the owner, so
 * callers must be allowed to act for the owner.
 */
export function checkDeliver(
  dependencies: ClusterDependencies,
  check: GatedWrite,
  grant: Of<'deliver'>,
  mayRead: boolean,
): void {
  const { authorize, callerOf } = dependencies
  const { kind, next, request } = check
  const { owner } = grant
  if (!mayRead) throw refusal(check, 'spec.deliver requires permission to get the secret')
  const isOwned = Boolean(owner.user || owner.team)
  if (!isOwned)
    request.warn('spec.owner: the secret has no owner, so nothing is delivered; the owner must be able to deliver it')
  const as = isOwned ? callerOf(pinnedOwner(owner, teamUidsOf(next))) : undefined
  if (isOwned) checkActsFor(dependencies, check, { owner, field: 'spec.deliver' })
  const missing: string[] = []
  for (const name of selected(dependencies, grant.clusters, next)) {
    const who = [
      ...(authorize(request.caller, deliverTo(name)).allowed ? [] : [`user "${request.caller.username}"`]),
      ...(isOwned && !(as && authorize(as, deliverTo(name)).allowed) ? [`the owner, ${printOwner(owner)}`] : []),
    ]
    if (who.length) missing.push(`"${name}" for ${who.join(' and ')}`)
  }
  if (missing.length)
    throw forbidden(
      kind,
      next.metadata.name ?? '',
      `spec.deliver requires the verb deliver on clusters; missing on ${shown(missing).join(', ')}`,
    )
}

const everything = [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }]
/** How many secrets are checked between two looks at the clock. */
const pieceOf = 64

/** Everything that begins to flow to the cluster because of this write: `get` on each secret, `bind` on each role (D68). */
export async function checkCluster(
  dependencies: ClusterDependencies,
  check: GatedWrite,
  grant: Of<'cluster'>,
): Promise<void> {
  const { authorize, compareRules, flowsTo } = dependencies
  const { kind, old, request } = check
  const { caller } = request
  if ((await compareRules(caller, everything, '')).hasAll) return
  const before = old && kind.grants?.(old).find(one => one.type === 'cluster')
  const isOtherGateway = JSON.stringify(before?.gateway ?? {}) !== JSON.stringify(grant.gateway)
  // A gateway gets tokens of users, and acts as them in the cluster.
  if (
    isOtherGateway &&
    grant.gateway.url &&
    !authorize(caller, { verb: 'impersonate', target: clusterTarget(grant.name) }).allowed
  )
    throw refusal(
      check,
      `spec.gateway requires the verb impersonate on clusters "${grant.name}", because the gateway acts as users in the cluster`,
    )
  const uid = old?.metadata.uid ?? ''
  const now = flowsTo({ ...grant, uid })
  const was = before && !isOtherGateway ? flowsTo({ ...before, uid }) : { secrets: [], roles: [] }
  const known = new Set([...was.secrets.map(({ key }) => key), ...was.roles.map(({ key }) => `role ${key}`)])
  refuseUnbindable(
    dependencies,
    check,
    now.roles.filter(({ key }) => !known.has(`role ${key}`)).map(({ role }) => ({ cluster: grant.name, role })),
    () => false,
  )
  let count = 0
  const missing: string[] = []
  for (const { key, ref } of now.secrets) {
    if (known.has(key)) continue
    if (++count % pieceOf === 0) await pause()
    if (!authorize(caller, { verb: 'get', target: { group, resource: 'projectsecrets', ...ref } }).allowed)
      missing.push(ref.namespace)
  }
  // Not the names: the caller may not see these secrets.
  if (missing.length)
    throw refusal(
      check,
      `the change sends secrets to the cluster that user "${caller.username}" may not get, in the namespaces ${shown([...new Set(missing)]).join(', ')}`,
    )
}

export type ClusterPins = {
  /** The uid of a cluster that exists and is not being deleted. */
  readonly clusterUid: (name: string) => string | undefined
}

/**
 * Which clusters the names mean (D68). A name that stays keeps its cluster. After the cluster was created again, it means the new one only
 * if the caller may grant that.
 */
export async function clusterUidsFor(
  { clusterUid }: ClusterPins,
  { after, stored }: { readonly after: readonly Grant[]; readonly stored: { readonly [name: string]: string } },
  isAllowed: (grants: readonly Grant[]) => Promise<boolean>,
): Promise<{ readonly [name: string]: string }> {
  const uids: { [name: string]: string } = {}
  for (const name of clusterNamesIn(after)) {
    const [now, before] = [clusterUid(name), Object.hasOwn(stored, name) ? stored[name] : undefined]
    const isStale = before !== undefined && now !== undefined && before !== now
    const naming = isStale ? after.filter(grant => clusterNamesIn([grant]).includes(name)) : []
    const uid = isStale && (await isAllowed(naming)) ? now : (before ?? now)
    if (uid !== undefined) uids[name] = uid
  }
  return uids
}
