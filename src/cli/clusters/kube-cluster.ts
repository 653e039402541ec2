// The Kubernetes cluster that a command connects or disconnects: which kubeconfig, and what is applied to it or removed from it.

import { isDeepStrictEqual } from 'node:util'
import { ApiError } from '../../api/errors.ts'
import type { Kind } from '../../api/kind.ts'
import type { JsonObject, Ref, Resource } from '../../api/object.ts'
import { prefix } from '../../api/paths.ts'
import { type Resources, refOf } from '../../api/resources.ts'
import { listAll } from '../../client/list-watch.ts'
import { type Flags, type Io, UsageError } from '../../host/command.ts'
import { type OpenedCluster, openCluster } from '../../transport/open-cluster.ts'
import { kubeconfigPath } from '../login/kubeconfig-file.ts'
import { agentKinds, Deployment, KubeNamespace, manifestKinds } from './kube-kinds.ts'
import { clusterLabel, clusterUidLabel } from './manifests.ts'

/** Not the contexts of `platform login`, so there is no variable. */
export const kubeFlags = {
  context: {
    type: 'text',
    value: 'KUBECONTEXT',
    what: 'Context of the kubeconfig. Default: its current context.',
  },
  kubeconfig: {
    type: 'text',
    value: 'FILE',
    what: 'Kubeconfig of the cluster. Default: KUBECONFIG, else ~/.kube/config.',
  },
} as const satisfies Flags

type KubeFlags = { readonly context: string | undefined; readonly kubeconfig: string | undefined }

/** `server`: the management API, which is not a cluster to connect. Throws UsageError. */
export async function openKube(io: Io, { context, kubeconfig }: KubeFlags, server: string): Promise<OpenedCluster> {
  const file = kubeconfig ?? kubeconfigPath(io.env)
  const kube = await openCluster({ file, context }, io)
  if (kube.server !== `${server}${prefix}`) return kube
  kube.close()
  throw new UsageError([
    `${file} is the kubeconfig of the management API, not of the cluster: use --kubeconfig or --context`,
  ])
}

const describe = (kind: Kind, { namespace, name }: Ref) =>
  `${kind.singular}/${name}${kind.namespaced ? ` in namespace ${namespace}` : ''}`

const kindOf = ({ kind }: JsonObject) => manifestKinds.find(one => one.kind === kind) as Kind

const existing = async (resources: Resources, kind: Kind, ref: Ref): Promise<Resource | undefined> => {
  try {
    return (await resources.get(kind, ref)).object
  } catch (error) {
    if (error instanceof ApiError && error.code === 404) return undefined
    throw error
  }
}

/** Throws UsageError if the namespace of the agent belongs to somebody else: disconnecting deletes it. */
export async function checkNamespace(resources: Resources, namespace: string, cluster: string): Promise<void> {
  const found = await existing(resources, KubeNamespace, { namespace: '', name: namespace })
  const owner = found?.metadata.labels?.[clusterLabel]
  if (!found || owner === cluster) return
  throw new UsageError([
    owner === undefined
      ? `namespace ${namespace} exists already, and was not created by this command: choose another one with --namespace`
      : `namespace ${namespace} contains the agent of cluster ${owner}: check --context and --kubeconfig. If one cluster has two names on purpose, use --namespace`,
  ])
}

export type Applying = { readonly dryRun: boolean; readonly report: (line: string) => void }

/** Applies every manifest, and reports each result. Returns all failures. */
export async function applyAll(
  resources: Resources,
  manifests: readonly JsonObject[],
  { dryRun, report }: Applying,
): Promise<unknown[]> {
  const failures: unknown[] = []
  for (const body of manifests) {
    const kind = kindOf(body)
    const ref = refOf(body as unknown as Resource)
    const what = describe(kind, ref)
    try {
      const before = await existing(resources, kind, ref)
      const options = { dryRun, fieldManager: 'platform' }
      const { object } = await resources.patch(kind, ref, { type: 'apply', body, force: true }, options)
      // A dry run keeps the resourceVersion.
      const isSame = before !== undefined && isDeepStrictEqual(contentOf(before), contentOf(object))
      report(`${what} ${before ? (isSame ? 'unchanged' : 'changed') : 'created'}`)
    } catch (error) {
      // In a dry run, a namespace that would be created does not exist.
      if (dryRun && error instanceof ApiError && error.code === 404) report(`${what} would be created`)
      else failures.push(withHint(what, ref, error))
    }
  }
  return failures
}

/** Without the fields that every apply may change. */
function contentOf({ metadata, ...rest }: Resource) {
  const { managedFields: _, resourceVersion: __, generation: ___, ...others } = metadata
  return { ...rest, metadata: others }
}

function withHint(what: string, { namespace }: Ref, error: unknown): Error {
  const { message, code } = error as ApiError
  const hint = code === 404 && namespace ? `; create the namespace ${namespace}, and run the command again` : ''
  return new Error(`cannot apply ${what}: ${message}${hint}`, { cause: error })
}

export type Remnant = { readonly kind: Kind; readonly ref: Ref; readonly uid: string }

/** Everything in the cluster that belongs to the connection, in the order of its deletion: the agent first, its namespace last. */
export async function remnantsOf(
  resources: Resources,
  { name, uid }: { readonly name: string; readonly uid: string | undefined },
): Promise<Remnant[]> {
  const found: Remnant[] = []
  const collect = async (kind: Kind, labelSelector: string) => {
    for await (const { metadata } of listAll(resources, kind, { labelSelector }))
      found.push({ kind, ref: refOf({ metadata }), uid: metadata.uid ?? '' })
  }
  await collect(Deployment, `${clusterLabel}=${name}`)
  if (uid !== undefined) for (const kind of agentKinds) await collect(kind, `${clusterUidLabel}=${uid}`)
  for (const kind of manifestKinds.toReversed()) if (kind !== Deployment) await collect(kind, `${clusterLabel}=${name}`)
  return [...new Map(found.map(one => [one.uid, one])).values()]
}

/** Deletes all of them, and reports each. Returns all failures. */
export async function removeAll(
  resources: Resources,
  remnants: readonly Remnant[],
  { dryRun, report }: Applying,
): Promise<unknown[]> {
  const failures: unknown[] = []
  for (const { kind, ref, uid } of remnants)
    try {
      await resources.delete(kind, ref, { dryRun, preconditions: { uid }, propagationPolicy: 'Background' })
      report(`${describe(kind, ref)} deleted`)
    } catch (error) {
      if (error instanceof ApiError && error.code === 404) continue
      failures.push(new Error(`cannot delete ${describe(kind, ref)}: ${(error as Error).message}`, { cause: error }))
    }
  return failures
}
