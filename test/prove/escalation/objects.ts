// The kinds that the prover writes, and their objects as plain data. It does not use the server's code.

export type Meta = {
  name: string
  namespace?: string
  uid?: string
  resourceVersion?: string
  creationTimestamp?: string
  deletionTimestamp?: string
  labels?: Words
  annotations?: Words
  ownerReferences?: OwnerReference[]
  finalizers?: string[]
  managedFields?: unknown
  generation?: number
  deletionGracePeriodSeconds?: number
}
export type Words = { [key: string]: string }
export type OwnerReference = {
  apiVersion: string
  kind: string
  name: string
  uid: string
  controller?: boolean
  blockOwnerDeletion?: boolean
}
export type PolicyRule = {
  verbs?: string[]
  apiGroups?: string[]
  resources?: string[]
  resourceNames?: string[]
  nonResourceURLs?: string[]
}
type Requirement = { key?: string; operator?: string; values?: string[] }
export type Selector = { matchLabels?: Words; matchExpressions?: Requirement[] }
export type Subject = { apiGroup?: string; kind: string; name: string }
export type Owner = { user?: string; team?: string }
export type AccessEntry = { verbs: string[]; subresources?: string[]; users?: string[]; teams?: string[] }
export type PullSecret = { kind?: string; secretName?: string; secretNamespace?: string }
/** Connected clusters, by name or by labels. */
export type ClusterSelection = { names?: string[]; selector?: Selector }
export type Delivery = {
  clusters?: ClusterSelection
  namespaces?: string[]
  name?: string
  type?: string
  keys?: string[]
}
export type SourceRef = { name?: string; namespace?: string; uid?: string }

/** The fields of every kind's spec that the prover reads or writes. */
export type Spec = {
  owner?: Owner
  access?: AccessEntry[]
  users?: string[]
  groups?: string[]
  /** With `clusters`: a role of these clusters, and not of this API. */
  clusterRoles?: { name: string; clusters?: ClusterSelection }[]
  deliver?: Delivery[]
  projects?: { project: string; namespaces: string[] }[]
  gateway?: { url?: string }
  imagePullSecrets?: PullSecret[]
  data?: Words
  sharedSecretRef?: SourceRef
  user?: string
  team?: string
  subject?: string
  key?: string
  disabled?: boolean
  ttl?: number
  ttlAfterLastActivity?: boolean
  scope?: unknown
  type?: string
  parent?: string
  username?: string
  [field: string]: unknown
}

/** An object of any of the kinds. */
export type Obj = {
  apiVersion?: string
  kind?: string
  metadata: Meta
  spec?: Spec
  status?: { [field: string]: unknown }
  rules?: PolicyRule[]
  aggregationRule?: { clusterRoleSelectors?: Selector[] }
  roleRef?: { apiGroup?: string; kind: string; name: string }
  subjects?: Subject[]
}

export type KindInfo = {
  readonly kind: string
  readonly plural: string
  readonly group: string
  readonly namespaced: boolean
  /** Whether objects have an owner and access entries. */
  readonly shared: boolean
}

export const ours = 'management.platform.sh'
export const rbac = 'rbac.authorization.k8s.io'
const prefix = '/kubernetes/management'

const kind = (name: string, group: string, namespaced: boolean, shared = false): KindInfo => ({
  kind: name,
  plural: `${name.toLowerCase()}s`,
  group,
  namespaced,
  shared,
})

export const kinds = {
  Team: kind('Team', ours, false, true),
  SharedSecret: kind('SharedSecret', ours, true, true),
  ProjectSecret: kind('ProjectSecret', ours, true, true),
  OwnedAccessKey: kind('OwnedAccessKey', ours, false),
  ClusterRole: kind('ClusterRole', rbac, false),
  ClusterRoleBinding: kind('ClusterRoleBinding', rbac, false),
  Role: kind('Role', rbac, true),
  RoleBinding: kind('RoleBinding', rbac, true),
  User: kind('User', ours, false),
  Cluster: kind('Cluster', ours, false),
  TokenRevocation: kind('TokenRevocation', ours, false),
} as const

/** Not stored: it exists only in the response to a create. */
export const tokens = kind('DirectClusterEndpointToken', ours, false)

export const byPlural: ReadonlyMap<string, KindInfo> = new Map(Object.values(kinds).map(one => [one.plural, one]))
export const apiVersionOf = ({ group }: KindInfo): string => `${group}/v1`
export const bucketOf = ({ plural, group }: KindInfo): string => `${plural}.${group}`

export function collectionOf({ group, plural, namespaced }: KindInfo, namespace: string): string {
  return `${prefix}/apis/${group}/v1/${namespaced ? `namespaces/${namespace}/` : ''}${plural}`
}

/** The location of an object, as a map key. */
export const slotOf = ({ plural }: KindInfo, namespace: string, name: string): string =>
  `${plural}/${namespace}/${name}`

/** Labels and annotations that only the server writes (D26). */
export const reserved = 'platform.sh/'
export const mirrorLabel = 'platform.sh/mirrors'
/** A JSON object from team name to uid: the team that a name in an object refers to (D61). */
export const teamPins = 'platform.sh/team-uids'
/** JSON object, secret to uid: which secrets the image pull secrets of a team mean (D61). */
export const pullPins = 'platform.sh/pull-secret-uids'
/** JSON object, cluster to uid: which connected clusters the names in an object mean (D68). */
export const clusterPins = 'platform.sh/cluster-uids'
/** The uid of the session that a key was created with (D66). */
export const loginPin = 'platform.sh/login'
export const teamGroup = 'platform:team:'

/** All team names in an object. */
export function teamsNamedBy({ spec, subjects }: Obj): string[] {
  const found = new Set<string>()
  const asGroup = (name: string | undefined) => {
    if (name?.startsWith(teamGroup)) found.add(name.slice(teamGroup.length))
  }
  for (const { name } of subjects ?? []) asGroup(name)
  asGroup(spec?.owner?.user)
  for (const team of [spec?.owner?.team, spec?.team]) if (team) found.add(team)
  for (const { users = [], teams = [] } of spec?.access ?? []) {
    for (const user of users) asGroup(user)
    for (const team of teams) found.add(team)
  }
  return [...found]
}

/** The location of an image pull secret. */
export const pullSlot = ({ kind: word, secretName = '', secretNamespace }: PullSecret): string =>
  slotOf(word === 'ProjectSecret' ? kinds.ProjectSecret : kinds.SharedSecret, secretNamespace || 'default', secretName)
