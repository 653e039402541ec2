// The labels and annotations of the objects that an agent writes to its cluster, and their names.

import { createHash } from 'node:crypto'
import type { Resource } from '../../api/object.ts'

const managedBy = 'platform.sh/managed-by'
const clusterUid = 'platform.sh/cluster-uid'
export const sourceUid = 'platform.sh/source-uid'
/** Annotations that say where an object comes from. Others may add their own, which the agent keeps. */
export const sourceAnnotations = ['platform.sh/source', sourceUid] as const

/** With the uid: two clusters of the management API may be the same cluster, and a cluster that is created again is another one. */
export const labelsOf = (uid: string) => ({ [managedBy]: 'agent', [clusterUid]: uid })

export const selectorOf = (uid: string) => `${managedBy}=agent,${clusterUid}=${uid}`

/** The agent changes and deletes only objects with both labels. */
export const isOwn = ({ metadata: { labels = {} } }: Resource, uid: string): boolean =>
  labels[managedBy] === 'agent' && labels[clusterUid] === uid

/** The name of the agent's Lease and ConfigMap. */
export const agentObjectName = (uid: string) => `platform-agent-${uid}`

const longestName = 253

/** The role may be a path segment of any length. A name that is cut has a digest, so that no two roles share one. */
export function bindingName(team: string, clusterRole: string): string {
  const name = `platform:${team}:${clusterRole}`
  if (name.length <= longestName) return name
  const digest = createHash('sha256').update(name).digest('hex').slice(0, 16)
  return `${name.slice(0, longestName - digest.length - 1)}-${digest}`
}
