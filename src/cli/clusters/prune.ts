// Removes from the cluster what an earlier `platform connect cluster` applied and this one does not.

import { ApiError } from '../../api/errors.ts'
import type { JsonObject, Resource } from '../../api/object.ts'
import { type Resources, refOf } from '../../api/resources.ts'
import { listAll } from '../../client/list-watch.ts'
import { Role } from '../../kinds/rbac.ts'
import { ConfigMap, Secret } from '../../reconcile/kubernetes-kinds.ts'
import { type Applying, type Remnant, removeAll } from './kube-cluster.ts'
import { KubeNamespace, manifestKinds } from './kube-kinds.ts'
import { agentName, clusterUidLabel, keySecretName, labelsOf, wideName } from './manifests.ts'

type Agent = {
  readonly name: string
  /** uid of the Cluster. */
  readonly uid: string
  /** Namespace of the agent. */
  readonly namespace: string
  readonly usesServiceAccount: boolean
}

const selectorFor = (cluster: string) =>
  Object.entries(labelsOf(cluster))
    .map(([key, value]) => `${key}=${value}`)
    .join()

/** Returns all failures. A namespace stays, because others may use it by now. */
export async function prune(
  resources: Resources,
  agent: Agent,
  { manifests, ...applying }: Applying & { readonly manifests: readonly JsonObject[] },
): Promise<unknown[]> {
  const stale = await staleOf(resources, agent, manifests)
  const left = new Set(stale.flatMap(({ kind, ref }) => (kind === Role ? [ref.namespace] : [])))
  const removeSecrets = async () => removeAll(resources, await secretsIn(resources, agent, left), applying)
  return [
    // While the agent has its permissions, it sees that its Secrets are gone.
    ...(await removeSecrets()),
    ...(await removeAll(resources, stale, applying)),
    // The agent may have restored one before it knew of the change.
    ...(applying.dryRun ? [] : await removeSecrets()),
    ...(applying.dryRun || left.size === 0 ? [] : await forget(resources, agent, left)),
  ]
}

/** In the order of their deletion: bindings before roles. */
async function staleOf(resources: Resources, agent: Agent, manifests: readonly JsonObject[]): Promise<Remnant[]> {
  const { name, namespace, usesServiceAccount } = agent
  const idOf = ({ kind, metadata }: Pick<Resource, 'kind' | 'metadata'>) =>
    `${kind} ${metadata.namespace ?? ''}/${metadata.name}`
  const wanted = new Set((manifests as unknown as readonly Resource[]).map(idOf))
  // The manifests lack a key that is kept.
  if (!usesServiceAccount) wanted.add(idOf({ kind: Secret.kind, metadata: { namespace, name: keySecretName } }))
  const ownNames: readonly string[] = [agentName, wideName(name), keySecretName]
  const found: Remnant[] = []
  for (const kind of manifestKinds.toReversed()) {
    if (kind === KubeNamespace) continue
    for await (const { metadata } of listAll(resources, kind, { labelSelector: selectorFor(name) }))
      if (ownNames.includes(metadata.name ?? '') && !wanted.has(idOf({ kind: kind.kind, metadata })))
        found.push({ kind, ref: refOf({ metadata }), uid: metadata.uid ?? '' })
  }
  return found
}

/** The labels of everything that the agent creates. */
const createdBy = ({ uid }: Agent) => `platform.sh/managed-by=agent,${clusterUidLabel}=${uid}`

/** The Secrets that the agent delivered. */
async function secretsIn(resources: Resources, agent: Agent, namespaces: Iterable<string>): Promise<Remnant[]> {
  const found: Remnant[] = []
  for (const namespace of namespaces)
    for await (const { metadata } of listAll(resources, Secret, { namespace, labelSelector: createdBy(agent) }))
      found.push({ kind: Secret, ref: refOf({ metadata }), uid: metadata.uid ?? '' })
  return found
}

/** The agent records the namespaces of its Secrets. After a restart it would report those that it may not read any more. */
async function forget(resources: Resources, agent: Agent, left: ReadonlySet<string>): Promise<unknown[]> {
  const selection = { namespace: agent.namespace, labelSelector: createdBy(agent) }
  for await (const record of listAll(resources, ConfigMap, selection)) {
    const { namespaces = '' } = (record as { readonly data?: { readonly namespaces?: string } }).data ?? {}
    const kept = namespaces.split('\n').filter(one => !left.has(one))
    const { resourceVersion = '' } = record.metadata
    const body = { metadata: { resourceVersion }, data: { namespaces: kept.join('\n') } }
    try {
      if (kept.join('\n') !== namespaces) await resources.patch(ConfigMap, refOf(record), { type: 'merge', body })
    } catch (error) {
      // A running agent changed it. It has seen the deletions, and forgets the namespaces itself.
      if (!(error instanceof ApiError) || error.code !== 409) return [error]
    }
  }
  return []
}

/** For people who apply the manifests themselves. `namespaces`: in which the agent has permissions. */
export const pruneText = (cluster: string, namespaces: readonly string[], context: string): string => {
  const fields = [`metadata.name=${wideName(cluster)}`, ...namespaces.map(one => `metadata.namespace!=${one}`)]
  return `kubectl apply deletes nothing. After a namespace has left spec.projects, the agent deletes its Secrets there within a minute. Then delete its permissions:
  kubectl${context} delete rolebindings,roles -A -l ${selectorFor(cluster)} --field-selector ${fields.join()}
`
}
