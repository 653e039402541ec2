// `platform disconnect cluster`: removes the agent and everything it created, its keys, and the Cluster object (D68).

import { setTimeout } from 'node:timers/promises'
import { ApiError } from '../../api/errors.ts'
import type { Kind } from '../../api/kind.ts'
import type { Resource } from '../../api/object.ts'
import { defineCommand, SeveralErrors } from '../../host/command.ts'
import { agentFinalizer, Cluster } from '../../kinds/cluster.ts'
import { OwnedAccessKey } from '../../kinds/owned-access-key.ts'
import type { OpenedCluster } from '../../transport/open-cluster.ts'
import { confirm } from '../confirm.ts'
import { dryRunFlag, dryRunNote, isDryRun, yesFlag } from '../flags.ts'
import { openSession, type Session } from '../session.ts'
import { agentKeys } from './agent-key.ts'
import { findCluster } from './cluster-object.ts'
import { type Applying, kubeFlags, openKube, type Remnant, remnantsOf, removeAll } from './kube-cluster.ts'
import { clusterLabel, clusterUidLabel } from './manifests.ts'

export const disconnectCluster = defineCommand({
  words: ['disconnect', 'cluster'],
  what: 'Disconnect a cluster: remove its agent, everything that the agent created there, its keys, and the Cluster object.',
  asksBefore: 'deletes anything',
  examples: [
    { what: 'Remove everything', command: 'platform disconnect cluster prod --context prod-admin' },
    { what: 'The cluster does not exist any more', command: 'platform disconnect cluster prod --keep-cluster --yes' },
  ],
  runsToEnd: true,
  flags: {
    ...kubeFlags,
    'keep-cluster': {
      type: 'switch',
      what: 'Change nothing in the cluster, for example because it is unreachable.',
    },
    ...dryRunFlag,
    ...yesFlag,
  },
  positionals: [{ name: 'NAME', what: 'name of the cluster' }],
  run: async ({ flags, words: [name = ''] }, io) => {
    const dryRun = isDryRun(flags)
    const session = await openSession(io, { context: io.env['PLATFORM_CONTEXT'] || undefined })
    let kube: OpenedCluster | undefined
    try {
      if (!flags['keep-cluster']) kube = await openKube(io, flags, session.server)
      const cluster = await findCluster(session, name)
      const uid = cluster?.metadata.uid
      // Before any change, so that an unreachable cluster changes nothing.
      const remnants = kube ? await remnantsOf(kube.resources, { name, uid }).catch(unreachable(name)) : []
      const keys = (await agentKeys(session, name)).map(key => key.metadata.name ?? '')
      if (!cluster && keys.length === 0 && remnants.length === 0)
        throw new ApiError(404, 'NotFound', `cluster ${name} is not connected: platform list clusters`)
      if (kube && cluster?.status?.lastContact && remnants.length === 0)
        throw new Error(
          `${kube.server} has nothing of cluster ${name}, but the agent of ${name} runs somewhere; nothing was changed. Check --context and --kubeconfig. If everything is removed from the cluster already, use --keep-cluster`,
        )
      const there = kube ? ` and ${remnants.length} objects in ${kube.server}` : ''
      const ofAgent = `${keys.length} access ${keys.length === 1 ? 'key' : 'keys'} of its agent`
      const what = `Delete ${cluster ? `cluster/${name} and ` : ''}${ofAgent} on ${session.server}${there}?`
      await confirm(io, what, flags.yes || dryRun)
      const report = (line: string) => io.out(`${line}${dryRunNote(flags)}\n`)
      const remove = remover(session, { dryRun, report })
      const failures: unknown[] = []
      // A running agent would restore what is deleted here, so it cleans up first.
      if (kube && cluster && !dryRun) await letAgentCleanUp(session, cluster, line => io.err(`${line}\n`))
      for (const key of keys) failures.push(...(await remove(OwnedAccessKey, key, 'accesskey')))
      if (kube) failures.push(...(await removeAll(kube.resources, remnants, { dryRun, report })))
      if (kube && !dryRun) failures.push(...(await removeLate(kube.resources, remnants, { name, uid, report })))
      // The Cluster stays if something is left, because its uid finds what the agent created.
      if (failures.length) throw new SeveralErrors(failures)
      if (cluster) failures.push(...(await remove(Cluster, name, 'cluster', true)))
      if (failures.length) throw new SeveralErrors(failures)
      if (!kube) io.err(keptText(name, uid))
      return 0
    } finally {
      session.close()
      kube?.close()
    }
  },
})

/** Deletes an object of this server. Returns the failure, if any. */
const remover =
  ({ resources }: Session, { dryRun, report }: Applying) =>
  async (kind: Kind, name: string, word: string, mayBeGone = false): Promise<unknown[]> => {
    try {
      const answer = await resources.delete(kind, { namespace: '', name }, { dryRun })
      const isHeld = 'document' in answer && !dryRun && !(await release(resources, kind, answer.document.object))
      report(`${word}/${name} ${isHeld ? 'is being deleted' : 'deleted'}`)
      return []
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 404) return [error]
      if (mayBeGone) report(`${word}/${name} deleted`)
      return []
    }
  }

const cleanUpWithin = 15_000
const lookEvery = 250

/** A running agent removes what it created, and then the Cluster is gone. A stopped one does not disturb what follows. */
async function letAgentCleanUp(
  { resources }: Session,
  { metadata: { name = '', uid = '' } }: Resource<unknown, unknown>,
  report: (line: string) => void,
): Promise<void> {
  const at = { namespace: '', name }
  const answer = await resources.delete(Cluster, at, { preconditions: { uid } })
  if (!('document' in answer)) return
  report(`waiting until the agent of cluster ${name} has removed what it created`)
  for (let waited = 0; waited < cleanUpWithin; waited += lookEvery) {
    await setTimeout(lookEvery)
    const found = await findCluster({ resources }, name)
    if (found?.metadata.uid !== uid) return
  }
  report('the agent has not finished; this command removes the rest')
}

const maxAttempts = 5

/** Nobody waits for the agent: what it created is removed, or stays on purpose. Returns whether the object is gone. */
async function release(resources: Session['resources'], kind: Kind, held: Resource): Promise<boolean> {
  const at = { namespace: '', name: held.metadata.name ?? '' }
  for (let { metadata } = held, attempt = 1; ; attempt++) {
    const { uid = '', resourceVersion = '', finalizers = [] } = metadata
    if (!finalizers.includes(agentFinalizer)) return false
    const others = finalizers.filter(one => one !== agentFinalizer)
    const body = { metadata: { uid, resourceVersion, finalizers: others } }
    try {
      await resources.patch(kind, at, { type: 'merge', body })
      return others.length === 0
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 409 || attempt === maxAttempts) throw error
      metadata = (await resources.get(kind, at)).object.metadata
    }
  }
}

/** The agent may have created something between the list and the deletion of its key and its pod. */
async function removeLate(
  resources: Session['resources'],
  before: readonly Remnant[],
  { name, uid, report }: Pick<Applying, 'report'> & { readonly name: string; readonly uid: string | undefined },
): Promise<unknown[]> {
  const known = new Set(before.map(one => one.uid))
  const late = (await remnantsOf(resources, { name, uid })).filter(one => !known.has(one.uid))
  return removeAll(resources, late, { dryRun: false, report })
}

const unreachable =
  (name: string) =>
  (error: unknown): never => {
    throw new Error(
      `cannot list what belongs to cluster ${name}: ${(error as Error).message}; nothing was changed. If the cluster is gone or unreachable, use --keep-cluster`,
      { cause: error },
    )
  }

const keptText = (name: string, uid: string | undefined) =>
  `Not removed from the cluster: the agent and its permissions (label ${clusterLabel}=${name})${
    uid === undefined
      ? ''
      : `, and the ClusterRoleBindings and Secrets that it created (label ${clusterUidLabel}=${uid})`
  }.\nTo remove them later:\n  kubectl delete deployments,services,configmaps,secrets,roles,rolebindings,serviceaccounts -A -l ${clusterLabel}=${name}\n  kubectl delete clusterroles,clusterrolebindings,namespaces -l ${clusterLabel}=${name}\n${
    uid === undefined
      ? ''
      : `  kubectl delete clusterrolebindings -l ${clusterUidLabel}=${uid}\n  kubectl delete secrets -A -l ${clusterUidLabel}=${uid}\n`
  }`
