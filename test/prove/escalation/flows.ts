// The model of everything that flows to connected clusters: roles of teams, and project secrets as Secrets (D68, D69).

import type { Known, Model } from './model.ts'
import {
  type ClusterSelection,
  type Delivery,
  kinds,
  type Owner,
  type Selector,
  teamGroup,
  type Words,
} from './objects.ts'

/** A role or a Secret in a cluster, whether the owner may deliver it or not. */
export type Flow = {
  readonly type: 'role' | 'secret'
  /** Name of the cluster. */
  readonly cluster: string
  /** undefined: any cluster of this name that is created later. */
  readonly uid: string | undefined
  /** The team or the ProjectSecret. */
  readonly from: Known
  /** For a role. */
  readonly role: string
  /** For a Secret. */
  readonly namespace: string
  readonly name: string
  readonly secretType: string
  /** undefined: all keys. */
  readonly keys: readonly string[] | undefined
}
/** By everything that makes a flow another one. */
export type Flows = ReadonlyMap<string, Flow>

export const isLeaving = ({ object }: Known): boolean => object.metadata.deletionTimestamp !== undefined
/** A disabled cluster gets nothing. */
const isOpen = (cluster: Known) => !isLeaving(cluster) && cluster.object.spec?.disabled !== true

function selects(model: Model, object: Known, selection: ClusterSelection, cluster: Known): boolean {
  const { names = [], selector } = selection
  if (names.length) return names.includes(cluster.name) && model.names(object, cluster)
  const { matchLabels = {}, matchExpressions = [] } = selector ?? {}
  if (Object.keys(matchLabels).length + matchExpressions.length === 0) return false
  return matches(selector ?? {}, cluster.object.metadata.labels ?? {})
}

/** Whether labels meet all requirements of a selector. */
export function matches({ matchLabels = {}, matchExpressions = [] }: Selector, labels: Words): boolean {
  if (Object.entries(matchLabels).some(([key, value]) => labels[key] !== value)) return false
  return matchExpressions.every(({ key = '', operator, values = [] }) => {
    const value = labels[key]
    if (operator === 'Exists') return value !== undefined
    if (operator === 'DoesNotExist') return value === undefined
    const isIn = value !== undefined && values.includes(value)
    return operator === 'In' ? isIn : !isIn
  })
}

/** Roles of connected clusters that the members of a team have, as `<cluster>:<role>`. */
export function rolesElsewhere(model: Model, team: Known): string[] {
  if (isLeaving(team)) return []
  return model.of(kinds.Cluster).flatMap(cluster => (isOpen(cluster) ? rolesIn(model, team, cluster) : []))
}

const rolesIn = (model: Model, team: Known, cluster: Known): string[] =>
  (team.object.spec?.clusterRoles ?? []).flatMap(({ name, clusters }) =>
    clusters && selects(model, team, clusters, cluster) ? [`${cluster.name}:${name}`] : [],
  )

export function flowsOf(model: Model): Flows {
  const flows = new Map<string, Flow>()
  const clusters = model.of(kinds.Cluster)
  const add = (key: readonly unknown[], flow: Flow) => void flows.set(JSON.stringify([...key, flow.cluster]), flow)
  for (const team of model.of(kinds.Team)) {
    if (isLeaving(team)) continue
    for (const { name: role, clusters: selection } of team.object.spec?.clusterRoles ?? []) {
      if (!selection) continue
      const base = { type: 'role', from: team, role, namespace: '', name: '', secretType: '', keys: undefined } as const
      for (const cluster of selection.names ?? []) add([team.uid, role], { ...base, cluster, uid: undefined })
      for (const { name: cluster, uid, object } of clusters.filter(
        one => isOpen(one) && selects(model, team, selection, one),
      ))
        add([team.uid, role, uid, object.spec?.gateway], { ...base, cluster, uid })
    }
  }
  for (const secret of model.of(kinds.ProjectSecret)) {
    if (isLeaving(secret)) continue
    const { deliver = [], owner } = secret.object.spec ?? {}
    // Several entries may ask for the same Secret. The first counts.
    const taken = new Set<string>()
    for (const entry of deliver) {
      const { clusters: selection = {} } = entry
      const id = [secret.uid, { ...entry, clusters: undefined }, ownerId(model, secret, owner)]
      const base = baseOf(secret, entry)
      for (const cluster of selection.names ?? []) add(id, { ...base, cluster, uid: undefined, namespace: '' })
      for (const cluster of clusters) {
        if (!isOpen(cluster) || !selects(model, secret, selection, cluster)) continue
        for (const namespace of namespacesIn(cluster, secret, entry)) {
          const slot = JSON.stringify([cluster.uid, namespace, base.name])
          if (taken.has(slot)) continue
          taken.add(slot)
          const at = { cluster: cluster.name, uid: cluster.uid, namespace }
          add([...id, cluster.uid, namespace, cluster.object.spec?.gateway], { ...base, ...at })
        }
      }
    }
  }
  return flows
}

const baseOf = (from: Known, { name, type, keys }: Delivery) =>
  ({
    type: 'secret',
    from,
    role: '',
    name: name || from.name,
    secretType: type ?? 'Opaque',
    keys: keys?.length ? keys : undefined,
  }) as const

function namespacesIn({ object }: Known, secret: Known, { namespaces = [] }: Delivery): string[] {
  const project = secret.namespace.slice('p-'.length)
  const own = object.spec?.projects?.find(one => one.project === project)?.namespaces ?? []
  return own.filter(one => namespaces.length === 0 || namespaces.includes(one))
}

/** The team of an owner, also if it is named as a user. */
export const teamOf = ({ user, team }: Owner = {}): string | undefined =>
  user ? (user.startsWith(teamGroup) ? user.slice(teamGroup.length) : undefined) : team

/** Another team of the same name is another owner. */
function ownerId(model: Model, secret: Known, owner: Owner | undefined): string {
  const team = teamOf(owner)
  return team === undefined ? `user ${owner?.user}` : `team ${team} ${model.pinOf(secret, team)}`
}
