// The work of the leading agent: compares what the management API wants with what the cluster has, and writes the difference.

import type { Resources, Watch } from '../../api/resources.ts'
import type { ClusterProblem } from '../../kinds/cluster.ts'
import { ClusterRoleBinding } from '../../kinds/rbac.ts'
import { Secret } from '../../reconcile/kubernetes-kinds.ts'
import { startShardedQueue } from '../../reconcile/sharded-queue.ts'
import { openAppliedVersion } from './applied-version.ts'
import { type ApplyOptions, openApply } from './apply.ts'
import { openClusterRoles } from './cluster-roles.ts'
import { openDesiredState } from './desired-state.ts'
import { followDesired } from './desired-stream.ts'
import { agentObjectName } from './marks.ts'
import { openNamespaceRecord } from './namespace-record.ts'
import { followOwnObjects, type OwnObjects } from './own-objects.ts'
import { openPace } from './pace.ts'
import { clusterProblem, openProblems, reasonOf, shortened } from './problems.ts'
import { openReconcile } from './reconcile-target.ts'
import { openRestoreBackoff } from './restore-backoff.ts'
import { openSecretWatches } from './secret-watches.ts'
import { openStatusReport } from './status-report.ts'
import { keyOf, type Owner } from './wanted-object.ts'

export type SessionStatus = {
  readonly desiredVersion: string
  readonly problems: readonly ClusterProblem[]
  /** The Cluster is being deleted, and nothing of the agent is left in the cluster. */
  readonly isCleanedUp: boolean
}

export type AgentClock = {
  /** Monotonic, in milliseconds. */
  readonly ticks: () => number
  /** Resolves early if the signal aborts. */
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>
  readonly random: () => number
}

/** Activities of the agent, for its log. */
export type Activity = 'desired' | 'cluster' | 'status' | 'write'

export type SessionObserver = {
  readonly wrote: ApplyOptions['wrote']
  /** Called for failures that are retried. `worked` is the opposite. */
  readonly failed: (what: Activity, error: unknown) => void
  readonly worked: (what: Activity) => void
  /** Called for new problems. */
  readonly problem: (problem: ClusterProblem) => void
  /** The management API rejects the agent; undefined: it accepts it. */
  readonly rejected: (error: Error | undefined) => void
  /** Called after every contact with the stream of the management API. */
  readonly contacted: () => void
}

export type SessionOptions = {
  /** The API of the cluster. */
  readonly resources: Resources
  readonly owner: Owner
  /** The namespace of the agent's own objects. */
  readonly namespace: string
  readonly openDesired: () => Promise<Watch>
  readonly report: (status: SessionStatus) => Promise<void>
  readonly clock: AgentClock
  readonly observer: SessionObserver
  /** After it aborts, the agent writes nothing. */
  readonly signal: AbortSignal
}

export interface Session {
  counts(): { readonly secrets: number; readonly bindings: number; readonly problems: number }
  /** Resolves after the signal, when nothing is in flight. */
  readonly ended: Promise<void>
}

const concurrency = 16
const writesPerSecond = 250
/** With jitter up to 30 seconds. */
const maxDelay = 20_000
/** How often the agent looks for roles that have disappeared, and for namespaces that it can forget. */
const tickEvery = 30_000

export function startSession(options: SessionOptions): Session {
  const { resources, owner, namespace, openDesired, clock, observer, signal } = options
  const { uid } = owner
  const wait = (milliseconds: number) => clock.wait(milliseconds, signal)
  let isRejected = false
  const mayWrite = () => !isRejected && !signal.aborted && desired.isComplete

  const applied = openAppliedVersion()
  const problems = openProblems(() => report.changed())
  const setProblems = (key: string, found: readonly ClusterProblem[]) => {
    // Aborted requests fail, and say nothing about the cluster.
    if (!signal.aborted && problems.set(key, found)) for (const problem of found) observer.problem(problem)
  }
  const desired = openDesiredState(owner, key => {
    applied.changed(key)
    queue.resetBackoff(key)
    queue.add(key)
    watchNamespaces()
  })
  const queue = startShardedQueue({
    shards: concurrency,
    maxDelay,
    random: clock.random,
    failed: (key, error) => {
      if (!problems.has(key)) observer.failed('write', error)
    },
    work: async key => {
      if (!mayWrite()) return undefined
      const done = applied.begin(key)
      try {
        const result = await reconcile(key)
        if (typeof result === 'number') return result
        if (result && done()) report.changed()
      } catch (error) {
        // Everything is added again when the agent may write.
        if (error instanceof PausedError) return undefined
        if (problems.has(key) && done()) report.changed()
        throw error
      }
      return undefined
    },
  })
  const ownChanged = (key: string) => {
    queue.add(key)
    if (desired.isTerminating) report.changed()
  }
  const secrets = openSecretWatches({
    resources,
    record: openNamespaceRecord(resources, { namespace, name: agentObjectName(uid) }, uid),
    uid,
    changed: ownChanged,
    moved: where => {
      const prefix = keyOf({ kind: Secret, ref: { namespace: where, name: '' } })
      const keys = [...desired.keys()].filter(key => key.startsWith(prefix))
      for (const key of keys) queue.add(key)
      const why = reasonOf(secrets.state(where), 'none')
      setProblems(prefix, why && keys.length === 0 ? [{ namespace: where, ...shortened(why) }] : [])
    },
    failed: error => observer.failed('cluster', error),
    wait,
    signal,
  })
  const bindings: OwnObjects = followOwnObjects({
    resources,
    kind: ClusterRoleBinding,
    namespace: '',
    uid,
    changed: ownChanged,
    moved: () => {
      const { error } = bindings
      if (error === undefined) observer.worked('cluster')
      setProblems('', error ? [shortened(clusterProblem(error))] : [])
      addAll()
    },
    failed: error => observer.failed('cluster', error),
  })
  const pace = openPace({ perSecond: writesPerSecond, ticks: clock.ticks, wait, signal })
  const apply = openApply({
    resources,
    owner,
    turn: async () => {
      await pace()
      if (!mayWrite()) throw new PausedError()
    },
    wrote: observer.wrote,
  })
  const backoff = openRestoreBackoff(clock.ticks)
  const reconcile = openReconcile({
    desired,
    state: ({ kind, ref }) => (kind === Secret ? secrets.state(ref.namespace) : bindings.state()),
    actual: ({ kind, ref }) => (kind === Secret ? secrets.get(ref) : bindings.get(ref)),
    checkRole: openClusterRoles(resources, clock.ticks),
    apply,
    backoff,
    report: setProblems,
  })
  const addAll = () => {
    for (const key of desired.keys()) queue.add(key)
    for (const ref of secrets.refs()) queue.add(keyOf({ kind: Secret, ref }))
    for (const ref of bindings.refs()) queue.add(keyOf({ kind: ClusterRoleBinding, ref }))
  }

  let isWatchPlanned = false
  const watchNamespaces = () => {
    if (isWatchPlanned) return
    isWatchPlanned = true
    setImmediate(() => {
      isWatchPlanned = false
      if (desired.isComplete && !signal.aborted) secrets.watch(desired.namespaces(), false)
    })
  }
  const tick = async () => {
    for (await wait(tickEvery); !signal.aborted; await wait(tickEvery)) {
      if (!mayWrite()) continue
      for (const key of desired.keys()) if (key.startsWith(`${ClusterRoleBinding.kind}/`)) queue.add(key)
      for (const key of backoff.prune()) queue.add(key)
      secrets.watch(desired.namespaces(), queue.depth === 0)
    }
  }
  const report = openStatusReport({
    send: () =>
      options.report({
        desiredVersion: applied.current(),
        problems: problems.list(),
        isCleanedUp: desired.isTerminating && applied.isCurrent && secrets.isEmpty && bindings.isEmpty,
      }),
    failed: error => observer.failed('status', error),
    worked: () => observer.worked('status'),
    wait: clock.wait,
    signal,
  })
  const following = followDesired({
    open: openDesired,
    state: desired,
    seen: version => {
      applied.seen(version)
      observer.contacted()
    },
    completed: () => {
      isRejected = false
      observer.rejected(undefined)
      observer.worked('desired')
      report.reached()
      watchNamespaces()
      addAll()
      if (desired.isTerminating) report.changed()
    },
    rejected: error => {
      isRejected = true
      observer.rejected(error)
    },
    failed: error => observer.failed('desired', error),
    wait,
    random: clock.random,
    signal,
  })
  const end = async () => {
    await Promise.all([following, tick(), report.ended])
    secrets.stop()
    bindings.stop()
    await queue.stop()
  }
  return {
    counts: () => ({ secrets: secrets.size, bindings: bindings.count, problems: problems.size }),
    ended: end(),
  }
}

/** The agent must not write now: another one leads, or the management API rejects this one. */
class PausedError extends Error {}
