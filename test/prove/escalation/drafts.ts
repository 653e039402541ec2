// New objects of every kind, chosen randomly from small pools.

import { clusterRule, clusterSpec, delivery, labelsOf, remoteRole } from './cluster-drafts.ts'
import type { Stage } from './generator-context.ts'
import {
  type AccessEntry,
  apiVersionOf,
  type KindInfo,
  kinds,
  type Obj,
  type Owner,
  ours,
  type PolicyRule,
  type PullSecret,
  rbac,
  type Selector,
  type Spec,
  type Subject,
} from './objects.ts'
import { atoms, type Bits, builtIn, hasBit, names, usernameOfObject, userObjects } from './universe.ts'

/** A rule that the actor has. */
function heldRule({ chance }: Stage, holds: Bits): PolicyRule | undefined {
  const atom = chance.any(atoms.filter((one, index) => hasBit(holds, index) && one.path === ''))
  if (!atom) return undefined
  const { verb, group, resource, sub, name } = atom
  return {
    verbs: [verb],
    apiGroups: [group],
    resources: [sub ? `${resource}/${sub}` : resource],
    ...(name ? { resourceNames: [name] } : {}),
  }
}

/** Rules with few permissions. Impersonation is an attack of its own. */
export function smallRule(stage: Stage): PolicyRule {
  const { chance, enabled, holds } = stage
  const { pick, some, is } = chance
  const held = holds && is(0.6) ? heldRule(stage, holds) : undefined
  if (held) return held
  const verbs = () => [...new Set([pick(['get', 'update', 'patch', 'create', 'delete']), ...some(['get', 'list'], 1)])]
  const on = (group: string, resources: readonly string[], all: readonly string[]): PolicyRule => ({
    verbs: is(0.08) ? ['*'] : verbs(),
    apiGroups: [group],
    resources: [...new Set([pick(resources), ...some(resources, 1)])],
    ...(is(0.4) ? { resourceNames: [pick(all)] } : {}),
  })
  if (enabled.has('impersonation') && is(0.05))
    return { verbs: ['impersonate'], apiGroups: [''], resources: ['users'], resourceNames: [pick(names.users)] }
  if (enabled.has('clusters') && is(0.15)) return clusterRule(stage)
  return pick([
    () => on(ours, ['sharedsecrets', 'sharedsecrets/history', 'sharedsecrets/status'], names.secrets),
    // Every subresource of the kind, which is more than the object itself.
    () => ({
      verbs: ['get', 'update', 'patch', 'delete'],
      apiGroups: [ours],
      resources: ['sharedsecrets', 'sharedsecrets/*'],
    }),
    () => on(ours, ['projectsecrets', 'projectsecrets/history'], names.secrets),
    () => on(ours, ['teams', 'teams/status'], names.teams),
    () => on(ours, ['users', 'users/link'], userObjects),
    () => on(rbac, ['clusterroles', 'roles'], names.clusterRoles),
    () => on(rbac, ['clusterrolebindings', 'rolebindings'], names.clusterBindings),
  ])()
}

/** The label that aggregated roles select. */
export const aggregationLabel = 'agg'

export function selector({ chance }: Stage): Selector {
  return chance.weighted<() => Selector>([
    [6, () => ({ matchLabels: { [aggregationLabel]: 'x' } })],
    [2, () => ({ matchExpressions: [{ key: aggregationLabel, operator: 'Exists' }] })],
    [2, () => ({ matchExpressions: [{ key: aggregationLabel, operator: 'In', values: ['x', 'y'] }] })],
    [
      1,
      () => ({
        matchLabels: { [aggregationLabel]: 'x' },
        matchExpressions: [{ key: 'closed', operator: 'DoesNotExist' }],
      }),
    ],
  ])()
}

/** The username of a team, where it has another than its name (D23). */
export const usernameOf = (team: string) => `${team}-user`

/** A team by its name or its username. */
const teamName = (chance: Stage['chance']): string => {
  const team = chance.pick(names.teams)
  return chance.is(0.15) ? usernameOf(team) : team
}

export const userSubject = (name: string): Subject => ({ apiGroup: rbac, kind: 'User', name })
export const groupSubject = (name: string): Subject => ({ apiGroup: rbac, kind: 'Group', name })

export function subject({ chance }: Stage): Subject {
  return chance.weighted<() => Subject>([
    [5, () => userSubject(chance.pick(names.users))],
    [3, () => groupSubject(chance.pick(names.groups))],
    [1, () => groupSubject(`platform:issuer:${chance.pick(['ci', 'bot'])}`)],
    [4, () => groupSubject(`platform:team:${teamName(chance)}`)],
    [1, () => userSubject(`platform:team:${teamName(chance)}`)],
  ])()
}

export const owner = ({ chance }: Stage): Owner =>
  chance.weighted<() => Owner>([
    [6, () => ({ team: teamName(chance) })],
    [11, () => ({ user: chance.pick(names.users) })],
    [1, () => ({ user: `platform:team:${teamName(chance)}` })],
  ])()

export function accessEntry({ chance }: Stage): AccessEntry {
  const { pick, some, is } = chance
  return {
    verbs: is(0.15) ? ['*'] : [...new Set([pick(['get', 'update', 'patch', 'delete']), ...some(['get'], 1)])],
    ...(is(0.2) ? { subresources: [pick(['history', 'status', '*'])] } : {}),
    ...(is(0.6) ? { users: is(0.1) ? ['*'] : [pick(names.users)] } : {}),
    ...(is(0.5) ? { teams: [teamName(chance)] } : {}),
    ...(is(0.1) ? { users: [`platform:team:${teamName(chance)}`] } : {}),
  }
}

/** A project secret can only be in the namespace of its project. */
export function pullSecret({ chance }: Stage): PullSecret {
  const [secretName, secretNamespace] = [chance.pick(names.secrets), chance.pick(names.namespaces)]
  const kind = secretNamespace.startsWith('p-') && chance.is(0.5) ? 'ProjectSecret' : 'SharedSecret'
  return { kind, secretName, secretNamespace }
}

/** A scope that restricts, in valid form. */
export function scope({ chance }: Stage): { [field: string]: unknown } {
  return chance.weighted<() => { [field: string]: unknown }>([
    [5, () => ({ projects: [{ project: 'shop' }] })],
    [2, () => ({ projects: [{ project: 'shop', readOnly: true }] })],
    [1, () => ({ secrets: [{ project: 'shop', name: 's0' }] })],
    [1, () => ({ secrets: [{ namespace: 'default', name: 's0' }] })],
    [1, () => ({ clusters: [{ cluster: 'c1' }] })],
    [2, () => ({ roles: [{ role: 'platform-cli' }] })],
    [1, () => ({ roles: [{ role: 'platform-cli' }], projects: [{ project: 'shop', readOnly: true }] })],
    [1, () => ({ roles: [{ role: 'platform-cli', projects: ['shop'] }] })],
    [1, () => ({ allowPlatformCli: true })],
    [
      2,
      () => ({
        rules: [{ verbs: ['get', 'update', 'patch'], resources: [{ group: ours, resources: ['projectsecrets'] }] }],
      }),
    ],
    [
      2,
      () => ({
        rules: [
          {
            verbs: ['*'],
            resources: [
              { group: rbac, resources: ['rolebindings', 'roles'] },
              { group: ours, resources: ['sharedsecrets'] },
            ],
          },
        ],
      }),
    ],
  ])()
}

function specOf(stage: Stage, kind: KindInfo, name: string): Spec | undefined {
  const { chance, prover } = stage
  const { pick, some, is } = chance
  const shared = {
    ...(is(0.3) ? { owner: owner(stage) } : {}),
    ...(is(0.3) ? { access: [accessEntry(stage)] } : {}),
  }
  const hasClusters = prover.model.of(kinds.Cluster).length > 0
  switch (kind) {
    case kinds.Team:
      return {
        ...shared,
        ...(is(0.4) ? { username: usernameOf(name) } : {}),
        users: some(names.users, 2),
        groups: some(names.groups, 1),
        ...(is(0.2) ? { clusterRoles: [{ name: pick(names.clusterRoles) }] } : {}),
        ...(hasClusters && is(0.3) ? { clusterRoles: [remoteRole(stage)] } : {}),
        ...(is(0.2) ? { imagePullSecrets: [pullSecret(stage)] } : {}),
      }
    case kinds.SharedSecret:
      return { ...shared, data: prover.canaries.make() }
    case kinds.ProjectSecret:
      return is(0.5)
        ? { ...shared, sharedSecretRef: { name: pick(names.secrets), namespace: pick(names.namespaces) } }
        : {
            ...shared,
            data: prover.canaries.make(),
            ...(hasClusters && is(0.5) ? { deliver: [delivery(stage)] } : {}),
          }
    case kinds.OwnedAccessKey:
      return keySpec(stage)
    case kinds.Cluster:
      return clusterSpec(stage)
    case kinds.User:
      return {
        username: is(0.8) ? (usernameOfObject(name) ?? name) : pick(names.users),
        ...(is(0.3) ? { disabled: true } : {}),
      }
    default:
      return undefined
  }
}

export function keySpec(stage: Stage): Spec {
  const { pick, is } = stage.chance
  const { enabled } = stage
  return {
    ...pick<() => Spec>([
      () => ({}),
      () => ({ user: pick(names.users) }),
      () => ({ team: teamName(stage.chance) }),
      () => ({ user: pick(stage.attackers) }),
    ])(),
    ...(enabled.has('lifetime') && is(0.3) ? { ttl: pick([60, 600, 3600, 86_400]) } : {}),
    ...(enabled.has('lifetime') && is(0.1) ? { ttlAfterLastActivity: true } : {}),
    ...(enabled.has('scoped-sharing') && is(0.3) ? { scope: scope(stage) } : {}),
    ...(enabled.has('key-groups') && is(0.15) ? { groups: [pick(names.groups)] } : {}),
    ...(is(0.05) ? { disabled: true } : {}),
  }
}

/** A new object of a kind under a name. */
export function draft(stage: Stage, kind: KindInfo, namespace: string, name: string): Obj {
  const { pick, is, some, below } = stage.chance
  const metadata = { name, ...(kind.namespaced ? { namespace } : {}) }
  const base = { apiVersion: apiVersionOf(kind), kind: kind.kind, metadata }
  if (kind === kinds.ClusterRole || kind === kinds.Role) {
    const isAggregated = kind === kinds.ClusterRole && name.startsWith('agg')
    const labels = is(0.3) && kind === kinds.ClusterRole ? { labels: { [aggregationLabel]: pick(['x', 'y']) } } : {}
    return isAggregated
      ? { ...base, aggregationRule: { clusterRoleSelectors: [selector(stage)] } }
      : {
          ...base,
          metadata: { ...metadata, ...labels },
          rules: Array.from({ length: 1 + below(2) }, () => smallRule(stage)),
        }
  }
  if (kind === kinds.ClusterRoleBinding || kind === kinds.RoleBinding) {
    const ofNamespace = kind === kinds.RoleBinding && is(0.5)
    // Attackers also try the role that allows everything.
    const clusterRoles = stage.holds ? [...names.clusterRoles, builtIn, builtIn] : names.clusterRoles
    return {
      ...base,
      roleRef: {
        apiGroup: rbac,
        kind: ofNamespace ? 'Role' : 'ClusterRole',
        name: pick(ofNamespace ? names.roles : clusterRoles),
      },
      subjects: [is(0.4) ? userSubject(pick(stage.attackers)) : subject(stage), ...some([subject(stage)], 1)],
    }
  }
  const spec = specOf(stage, kind, name)
  if (kind === kinds.Cluster)
    return { ...base, metadata: { ...metadata, labels: labelsOf(stage) }, ...(spec ? { spec } : {}) }
  return { ...base, ...(spec ? { spec } : {}) }
}
