// Nobody gives away what they do not hold (D23, D27): the checks on owner, access, team membership, roles and bindings.

import { cut, forbidden, isEnough, mostErrors } from '../api/errors.ts'
import type { Kind, Tools } from '../api/kind.ts'
import type { Resource } from '../api/object.ts'
import type { RuleLike } from '../api/permissions.ts'

type Who = { readonly user?: string | undefined; readonly team?: string | undefined }
type Entry = { readonly verbs?: readonly string[] | undefined; readonly subresources?: readonly string[] | undefined }
type Shared = { readonly owner?: Who | undefined; readonly access?: readonly Entry[] | undefined }

const same = (one: unknown, other: unknown) =>
  one === other || JSON.stringify(one ?? null) === JSON.stringify(other ?? null)
/** As many as a person reads. */
const told = (lacking: readonly string[]) => [
  ...lacking.slice(0, mostErrors).map(cut),
  ...(isEnough(lacking) ? [`and more than these ${mostErrors}`] : []),
]
const nameOf = ({ metadata }: Resource<unknown, unknown>) => metadata.name ?? ''
const targetOf = (kind: Kind, { metadata }: Resource<unknown, unknown>) => ({
  group: kind.group,
  resource: kind.plural,
  namespace: metadata.namespace ?? '',
  name: metadata.name ?? '',
})

/** Whom an object belongs to by default: the user or the team that makes it. */
export const callerAsOwner = ({ caller }: Tools): Who =>
  caller.identity === 'Team'
    ? { team: caller.username.slice('platform:team:'.length) }
    : caller.identity === 'User'
      ? { user: caller.username }
      : {}

/** Setting another owner needs every verb on the object; access entries give only verbs one has on it. */
export async function checkShared(
  kind: Kind,
  next: Resource<Shared, unknown>,
  old: Resource<Shared, unknown> | undefined,
  tools: Tools,
): Promise<void> {
  const owner = next.spec?.owner
  const mine = !old && same(owner, callerAsOwner(tools))
  if (!mine && !same(owner, old?.spec?.owner)) await checkOwnerChange(kind, next, owner, tools)
  if (mine || same(next.spec?.access, old?.spec?.access)) return
  const target = targetOf(kind, next)
  const asked = new Set<string>()
  const lacking: string[] = []
  for (const { verbs = [], subresources = [] } of next.spec?.access ?? [])
    for (const verb of verbs)
      for (const subresource of [undefined, ...subresources]) {
        const words = subresource ? `${verb} ${subresource}` : verb
        if (asked.has(words) || isEnough(lacking)) continue
        asked.add(words)
        if (!(await tools.judge({ verb, target: subresource ? { ...target, subresource } : target })).allowed)
          lacking.push(words)
      }
  if (lacking.length)
    throw forbidden(
      kind,
      nameOf(next),
      `access may give only what its author has on the object; missing: ${told(lacking).join(', ')}`,
    )
}

async function checkOwnerChange(
  kind: Kind,
  next: Resource<unknown, unknown>,
  owner: Who | undefined,
  tools: Tools,
): Promise<void> {
  const all = await tools.judge({ verb: '*', target: targetOf(kind, next) })
  if (!all.allowed) throw forbidden(kind, nameOf(next), 'setting spec.owner needs every verb on the object')
  if (!owner?.team) return
  const team = { group: 'management.platform.sh', resource: 'teams', namespace: '', name: owner.team }
  if (!(await tools.judge({ verb: 'update', target: team })).allowed)
    throw forbidden(kind, nameOf(next), `making team "${owner.team}" the owner needs permission to update that team`)
}

/** 403 with the missing permissions named, as Kubernetes names them. */
export function refuseMissing(
  kind: Kind,
  object: Resource<unknown, unknown>,
  tools: Tools,
  wanted: readonly RuleLike[],
  namespace: string,
): void {
  const lacking = tools.missing(wanted, namespace)
  if (lacking.length === 0) return
  const { username, groups } = tools.caller
  throw forbidden(
    kind,
    nameOf(object),
    `user "${username}" (groups=[${groups.map(group => JSON.stringify(group)).join(' ')}]) is attempting to grant RBAC permissions not currently held:\n${told(lacking).join('\n')}`,
  )
}

type Membership = {
  readonly users?: readonly string[] | undefined
  readonly groups?: readonly string[] | undefined
  readonly clusterRoles?: readonly { readonly name?: string | undefined }[] | undefined
}

/** Whether somebody comes to be in a team, or the team itself to be. */
export const isJoined = (next: Resource<Membership, unknown>, old: Resource<Membership, unknown> | undefined) =>
  !old ||
  (['users', 'groups'] as const).some(field => {
    const before = new Set(old.spec?.[field])
    return next.spec?.[field]?.some(one => !before.has(one)) === true
  })

/** Cluster roles that a team is given must be held by whoever gives them. */
export function checkClusterRoles(
  kind: Kind,
  next: Resource<Membership, unknown>,
  old: Resource<Membership, unknown> | undefined,
  tools: Tools,
): void {
  for (const { name = '' } of next.spec?.clusterRoles ?? []) {
    if (old?.spec?.clusterRoles?.some(one => one.name === name)) continue
    const rules = tools.rulesOfRole('ClusterRole', { namespace: '', name })
    if (!rules) tools.warn(`spec.clusterRoles: cluster role "${name}" does not exist; it counts once it does`)
    refuseMissing(kind, next, tools, rules ?? [everything], '')
  }
}

/** A role that is not there yet may become anything. */
const everything: RuleLike = { verbs: ['*'], apiGroups: ['*'], resources: ['*'] }

type Pull = {
  readonly apiGroup?: string | undefined
  readonly kind?: string | undefined
  readonly secretName?: string | undefined
  readonly secretNamespace?: string | undefined
}

/** A reference shows a secret to the team's clusters: whoever writes it must be able to read the secret (D23). */
export async function checkPullSecrets(
  kind: Kind,
  next: Resource<{ readonly imagePullSecrets?: readonly Pull[] | undefined }, unknown>,
  old: Resource<{ readonly imagePullSecrets?: readonly Pull[] | undefined }, unknown> | undefined,
  tools: Tools,
): Promise<void> {
  for (const [index, one] of (next.spec?.imagePullSecrets ?? []).entries()) {
    if (old?.spec?.imagePullSecrets?.some(other => same(one, other))) continue
    const resource = `${(one.kind ?? 'SharedSecret').toLowerCase()}s`
    const target = {
      group: one.apiGroup ?? kind.group,
      resource,
      namespace: one.secretNamespace || 'default',
      name: one.secretName ?? '',
    }
    if (!(await tools.judge({ verb: 'get', target })).allowed)
      throw forbidden(
        kind,
        nameOf(next),
        `spec.imagePullSecrets[${index}] needs permission to get ${resource} "${target.name}" in the namespace "${target.namespace}"`,
      )
  }
}
