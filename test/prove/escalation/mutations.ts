// Changes one aspect of an object that an attacker has read.

import type { Aspect } from './aspects/aspect.ts'
import { clusters, deliveries, remoteRoles } from './aspects/clusters.ts'
import { keys } from './aspects/keys.ts'
import { metadata } from './aspects/metadata.ts'
import { bindings, roles } from './aspects/rbac.ts'
import { copies, secrets, sharing, teams, users } from './aspects/shared.ts'
import type { Stage } from './generator-context.ts'
import type { Known } from './model.ts'
import { type KindInfo, kinds, type Obj } from './objects.ts'
import type { Family } from './step.ts'

export type Mutation = { readonly what: string; readonly danger?: Family; readonly next: Obj }

const byKind = new Map<KindInfo, readonly Aspect[]>([
  [kinds.ClusterRole, [...metadata, ...roles]],
  [kinds.Role, [...metadata, ...roles.slice(2)]],
  [kinds.ClusterRoleBinding, [...metadata, ...bindings]],
  [kinds.RoleBinding, [...metadata, ...bindings]],
  [kinds.Team, [...metadata, ...sharing, ...teams, ...remoteRoles]],
  [kinds.SharedSecret, [...metadata, ...sharing, ...secrets]],
  [kinds.ProjectSecret, [...metadata, ...sharing, ...secrets, ...copies, ...deliveries]],
  [kinds.OwnedAccessKey, [...metadata, ...keys]],
  [kinds.User, [...metadata, ...users]],
  [kinds.Cluster, [...metadata, ...clusters]],
])

/** An aspect that is an attack only with a scoped key (D25). */
const handsOut = ['access', 'the owner', 'members', 'member groups', 'cluster roles', 'rules', 'subjects', 'deliveries']

export function mutate(stage: Stage, target: Known, visible: Obj, isScoped: boolean): Mutation {
  const { chance, enabled } = stage
  const dangerOf = ({ what, danger }: Aspect) => (isScoped && handsOut.includes(what) ? 'scoped-sharing' : danger)
  const all = (byKind.get(target.kind) ?? []).filter(one => {
    const danger = dangerOf(one)
    return danger === undefined || enabled.has(danger)
  })
  const aspect = chance.weighted(all.map(one => [one.weight, one] as const))
  const danger = dangerOf(aspect)
  return { what: aspect.what, next: aspect.make(stage, target)(visible), ...(danger ? { danger } : {}) }
}
