// The desired content of a connected cluster, as its agent reads it from clusters/<name>/desired (D68, D69).

/** One event of the watch has one of these as `object`. The name is unique among the items of a cluster. */
export type DesiredItem = {
  readonly apiVersion: 'management.platform.sh/v1'
  readonly kind: 'ClusterDesiredItem'
  readonly metadata: {
    /** Empty in a bookmark. */
    readonly name: string
    readonly resourceVersion: string
    readonly annotations?: { readonly [key: string]: string }
  }
  /** A ClusterRoleBinding of the role to the group platform:team:<team>. */
  readonly role?: DesiredRole
  /** A Secret. */
  readonly secret?: DesiredSecret
}

export type DesiredRole = {
  readonly team: string
  /** uid of the team. A team that is created again under its name is another one. */
  readonly uid: string
  readonly clusterRole: string
}

export type DesiredSecret = {
  /** Its place in the cluster. */
  readonly namespace: string
  readonly name: string
  readonly type: string
  /** Base64, as in a Secret. */
  readonly data: { readonly [key: string]: string }
  /** The ProjectSecret that it comes from. */
  readonly source: { readonly namespace: string; readonly name: string; readonly uid: string }
}

/** In the bookmark after the initial state, which is empty: the Cluster is being deleted. */
export const terminatingAnnotation = 'management.platform.sh/terminating'

/** Types of delivered Secrets (D69). Tokens of service accounts are not among them. */
export const deliveredTypes = [
  'Opaque',
  'kubernetes.io/basic-auth',
  'kubernetes.io/dockerconfigjson',
  'kubernetes.io/ssh-auth',
  'kubernetes.io/tls',
] as const

const prefix = 'platform:cluster:'

/** The subject of the keys of an agent. With the uid: a cluster that is created again under its name has other agents. */
export const agentSubject = ({ name, uid }: { readonly name: string; readonly uid: string }): string =>
  `${prefix}${name}:${uid}`

/** The group of all agents, which have the permissions of a gateway. */
export const agentGroup = 'platform:agents'

export const isAgentSubject = (subject: string): boolean =>
  /^platform:cluster:[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?:[0-9a-f-]{36}$/.test(subject)

/** The name of the cluster of an agent. */
export const clusterOfAgent = (subject: string): string | undefined =>
  isAgentSubject(subject) ? subject.slice(prefix.length).split(':', 1)[0] : undefined
