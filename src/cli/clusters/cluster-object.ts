// Creates or updates the Cluster object of a connected cluster, and says what changed.

import { isDeepStrictEqual } from 'node:util'
import { ApiError } from '../../api/errors.ts'
import type { JsonObject, Resource } from '../../api/object.ts'
import { Cluster, type ClusterObject } from '../../kinds/cluster.ts'
import type { Session } from '../session.ts'

/** Absent fields stay as they are. */
export type WantedCluster = {
  readonly name: string
  readonly labels: { readonly [key: string]: string }
  readonly displayName: string | undefined
  readonly gateway: { readonly url: string; readonly caBundle?: string } | undefined
  readonly projects: readonly { readonly project: string; readonly namespaces: readonly string[] }[] | undefined
}

/** Returns undefined if the cluster does not exist. */
export const findCluster = async ({ resources }: Pick<Session, 'resources'>, name: string) => {
  try {
    return (await resources.get(Cluster, { namespace: '', name })).object as ClusterObject
  } catch (error) {
    if (error instanceof ApiError && error.code === 404) return undefined
    throw error
  }
}

/** `done`: what happened to it, as text. */
export async function ensureCluster(
  { resources }: Pick<Session, 'resources'>,
  wanted: WantedCluster,
  dryRun: boolean,
): Promise<{ readonly cluster: ClusterObject; readonly done: string }> {
  const { name, labels, displayName, gateway, projects } = wanted
  const options = { dryRun, fieldManager: 'platform' }
  const spec = {
    ...(displayName === undefined ? {} : { displayName }),
    ...(gateway === undefined ? {} : { gateway }),
    ...(projects === undefined ? {} : { projects }),
  }
  const found = await findCluster({ resources }, name)
  if (!found) {
    const { object } = await resources.create(Cluster, '', { metadata: { name, labels }, spec } as JsonObject, options)
    return { cluster: object as ClusterObject, done: 'created' }
  }
  if (found.metadata.deletionTimestamp)
    throw new Error(`cluster ${name} is being deleted: wait until platform list clusters does not show it`)
  const changes = changesTo(found as Resource, labels, spec)
  if (changes.length === 0) return { cluster: found, done: 'unchanged' }
  // A merge patch would keep an old caBundle.
  const replaced = gateway ? { gateway: { caBundle: null, ...gateway } } : {}
  const body = { metadata: { uid: found.metadata.uid ?? '', labels }, spec: { ...spec, ...replaced } } as JsonObject
  const { object } = await resources.patch(Cluster, { namespace: '', name }, { type: 'merge', body }, options)
  return { cluster: object as ClusterObject, done: `changed: ${changes.join(', ')}` }
}

function changesTo(found: Resource, labels: WantedCluster['labels'], spec: JsonObject): string[] {
  const ofLabels = Object.entries(labels).filter(([key, value]) => found.metadata.labels?.[key] !== value)
  const ofSpec = Object.entries(spec).filter(([field, value]) => !isDeepStrictEqual(found.spec?.[field], value))
  return [...ofLabels.map(([key]) => `label ${key}`), ...ofSpec.map(([field]) => `spec.${field}`)]
}
