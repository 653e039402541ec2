// The actor of the next step: one of the attackers' secrets, sometimes with impersonation.

import type { Credential, Principal } from './credentials.ts'
import { usernameOf } from './drafts.ts'
import type { Stage } from './generator-context.ts'
import { impersonated } from './impersonation.ts'
import type { Known } from './model.ts'
import { type KindInfo, kinds, teamGroup } from './objects.ts'
import { scopeBits } from './scopes.ts'
import type { Family, Impersonation, Step } from './step.ts'
import {
  administrator,
  atoms,
  type Bits,
  bothBits,
  builtIn,
  hasBit,
  impersonatedGroups,
  names,
  noBits,
  userObjects,
} from './universe.ts'

export type Actor = {
  readonly secret: string
  readonly credential: Credential | undefined
  readonly principal: Principal | undefined
  readonly as?: Impersonation
}

/** Credentials that these attacks need. */
const needed: { readonly [danger in Family]?: (credential: Credential) => boolean } = {
  machines: one => one.isMachine,
  'scoped-sharing': one => one.scope !== undefined,
  lifetime: one => one.newKeysEnd !== Number.POSITIVE_INFINITY,
  sessions: one => one.login !== undefined,
}

export function chooseActor({ chance, prover, enabled, prepared }: Stage): Actor | undefined {
  const { coalition, credentials, rights } = prover
  const alive = [...coalition].filter(one => credentials.endOf(one) !== undefined)
  const isNeeded = needed[chance.pick([...prepared])]
  const useful = isNeeded && chance.is(0.6) ? alive.filter(one => isNeeded(credentials.of(one) as Credential)) : []
  // Sometimes tries a secret that no longer works.
  const secret = chance.is(0.97) ? chance.any(useful.length ? useful : alive) : chance.any([...coalition])
  if (secret === undefined) return undefined
  const credential = credentials.of(secret)
  const plain = { secret, credential, principal: credential?.principal }
  if (!credential || !enabled.has('impersonation') || chance.is(0.5)) return plain
  const bits = bothBits(rights.bitsOf(credential.principal), scopeBits(credential.scope))
  const allowed = (resource: string) =>
    atoms.flatMap(({ verb, resource: on, name }, index) =>
      verb === 'impersonate' && on === resource && hasBit(bits, index) ? [name] : [],
    )
  // Also tries impersonation without permission.
  const users = allowed('users')
  const wanted = users.length ? users : chance.is(0.03) ? [...names.users, administrator] : []
  const user = chance.any(wanted)
  if (user === undefined) return plain
  const groups = chance.weighted([
    [5, chance.some(allowed('groups'), 1)],
    [2, chance.some(teamGroups, 1)],
    [1, chance.some(impersonatedGroups, 1)],
  ])
  const as = { user, groups: groups.map(group => (chance.is(0.5) ? withUsername(group) : group)) }
  return { ...plain, principal: impersonated(prover, as), as }
}

const teamGroups = names.teams.map(team => `${teamGroup}${team}`)
/** A team by its username, where it can have one (D23). */
const withUsername = (group: string) =>
  group.startsWith(teamGroup) ? `${teamGroup}${usernameOf(group.slice(teamGroup.length))}` : group

/** Everything an actor may do. */
export function bitsOf({ prover }: Stage, { credential, principal }: Actor): Bits {
  if (!credential || !principal) return noBits()
  return bothBits(prover.rights.bitsOf(principal), scopeBits(credential.scope))
}

export const isScoped = ({ credential }: Actor): boolean => credential?.scope !== undefined
/** Whether the actor's credential expires by itself. */
export const isBounded = ({ credential }: Actor): boolean =>
  credential !== undefined && credential.newKeysEnd !== Number.POSITIVE_INFINITY

export type Part = Partial<Step> & Pick<Step, 'kind' | 'name' | 'method' | 'what'>

export function stepOf({ chance, prover, enabled }: Stage, { secret, as }: Actor, { query = [], ...part }: Part): Step {
  const isRead = part.method === 'get'
  const validation = chance.weighted([
    [8, []],
    [1, ['fieldValidation=Ignore']],
    [1, ['fieldValidation=Warn']],
  ] as const)
  return {
    actor: 'attacker',
    secret,
    namespace: '',
    sub: '',
    dryRun: !isRead && chance.is(0.05),
    ...(enabled.has('sessions') && chance.is(0.05) ? { cookie: prover.server.cookie } : {}),
    ...(as ? { as } : {}),
    query: isRead ? query : [...query, ...validation],
    ...part,
  }
}

/** A step with impersonation counts as that attack, unless it counts as another. */
export const tagged = ({ as }: Actor, danger: Family | undefined): { danger?: Family } =>
  danger ? { danger } : as ? { danger: 'impersonation' } : {}

const pools: { readonly [plural: string]: readonly string[] } = {
  teams: names.teams,
  sharedsecrets: names.secrets,
  projectsecrets: names.secrets,
  ownedaccesskeys: names.keys,
  users: userObjects,
  clusters: names.clusters,
  clusterroles: names.clusterRoles,
  clusterrolebindings: names.clusterBindings,
  roles: names.roles,
  rolebindings: names.bindings,
}

/** The names and namespaces of objects of a kind. */
export const namesOf = ({ plural }: KindInfo): readonly string[] => pools[plural] ?? []
export const namespacesOf = (kind: KindInfo): readonly string[] =>
  !kind.namespaced ? [''] : kind === kinds.ProjectSecret ? names.projects : names.namespaces

/** Steps never target generated names and those of mirrors, so that a seed always gives the same run. */
export const isInPool = ({ kind, name }: Known): boolean => namesOf(kind).includes(name) || name === builtIn

const rebornKinds = new Map<KindInfo, Family>([
  [kinds.Team, 'team-names'],
  [kinds.SharedSecret, 'secret-names'],
  [kinds.Cluster, 'clusters'],
])
/** Kinds whose names are still referenced after an object is deleted. */
export const reborn = (kind: KindInfo): Family | undefined => rebornKinds.get(kind)
