// Sets the conditions of clusters, and of the teams and project secrets that reach them, from the reports of their agents (D68).

import type { Ref, Resource } from '../api/object.ts'
import type { Resources } from '../api/resources.ts'
import { Cluster, type ClusterObject, type ClusterProblem } from '../kinds/cluster.ts'
import { type Finding, remotePending } from '../kinds/object-conditions.ts'
import { ProjectSecret } from '../kinds/project-secret.ts'
import { Team } from '../kinds/team.ts'
import { mentions } from '../reconcile/document-words.ts'
import { startInformer } from '../reconcile/informer.ts'
import { startLoop } from '../reconcile/work-queue.ts'
import { writeConditions } from './write-conditions.ts'

type Secret = {
  readonly ref: Ref
  readonly uid: string
  readonly generation: number
  /** The version of the last change of its spec, or a later one. */
  readonly changedAt: number
}

type Delivery = {
  readonly cluster: string
  readonly secrets: number
  readonly reason?: string
  readonly message?: string
}

export type ClusterConditionsOptions = {
  readonly resources: Resources
  readonly desired: {
    readonly ready: Promise<void>
    secretAt(slot: string): Secret | undefined
    slots(): Iterable<string>
    deliveryOf(slot: string): readonly Delivery[]
    /** Calls back with the slot of a secret whose deliveries changed. */
    followSecrets(callback: (slot: string) => void): () => void
  }
  /** Names of teams with roles in connected clusters. */
  readonly teamNames: () => Iterable<string>
  /** Such a team, and the clusters that it selects. */
  readonly teamAt: (name: string) =>
    | {
        readonly uid: string
        readonly clusters: readonly string[]
        /** Named clusters that do not exist, or not any more. */
        readonly missing: readonly Delivery[]
        readonly changedAt: number
      }
    | undefined
  readonly now: () => number
  readonly failed: (what: string, error: unknown) => void
}

type Report = {
  readonly name: string
  readonly uid: string
  readonly version: number
  readonly lastContact: number
  readonly isDisabled: boolean
  readonly isTerminating: boolean
  readonly problems: readonly ClusterProblem[]
}

/** The entry of the work queue for what a problem is about. */
const entryOf = ({ secret, team = '' }: ClusterProblem) => (secret ? `secret ${secret}` : `team ${team}`)
/** Agents report every 30 seconds. */
const silentAfter = 100_000
/** Conditions are for people. */
const maxShown = 5

export function startClusterConditions(options: ClusterConditionsOptions): {
  readonly ready: Promise<void>
  idle(): Promise<void>
  stop(): Promise<void>
} {
  const { resources, desired, teamNames, teamAt, now, failed } = options
  /** Secrets whose condition does not say yet that they are delivered, by slot. */
  const open = new Set<string>()
  /** The same for teams, by name. */
  const openTeams = new Set<string>()
  const loop = startLoop({
    reconcile: async entry => {
      const [kind = '', name = ''] = entry.split(' ')
      if (kind === 'cluster') return checkCluster(name)
      if (kind === 'team') await checkTeam(name)
      else await checkSecret(name)
      return undefined
    },
    failed: (entry, error) => failed(`writing the conditions of "${entry}"`, error),
  })
  const reports = startInformer({
    resources,
    kind: Cluster,
    keep: reportOf,
    changed: ({ name }, report, before) => {
      loop.add(`cluster ${name}`)
      if (report?.uid !== before?.uid || report?.isTerminating !== before?.isTerminating)
        for (const team of teamNames()) loop.add(`team ${team}`)
      const isSame = JSON.stringify(report?.problems ?? []) === JSON.stringify(before?.problems ?? [])
      if (isSame && report?.version === before?.version && report?.isDisabled === before?.isDisabled) return
      for (const { uid = '' } of before?.problems ?? []) {
        const own = byUid.get(uid)
        if (own?.delete(name) && own.size === 0) byUid.delete(uid)
      }
      for (const problem of report?.problems ?? []) note(name, problem)
      const problems = [...(report?.problems ?? []), ...(before?.problems ?? [])]
      for (const entry of new Set(problems.map(entryOf))) loop.add(entry)
      for (const slot of open) loop.add(`secret ${slot}`)
      for (const team of openTeams) loop.add(`team ${team}`)
    },
    failed: error => failed('watching clusters', error),
  })

  /** Problems of a team or secret, by its uid and by cluster. */
  const byUid = new Map<string, Map<string, ClusterProblem[]>>()
  const note = (cluster: string, problem: ClusterProblem, { uid = '' } = problem) => {
    const own = byUid.get(uid) ?? new Map<string, ClusterProblem[]>()
    byUid.set(uid, own.set(cluster, [...(own.get(cluster) ?? []), problem]))
  }
  /** An agent says nothing about objects that its cluster does not get. */
  const problemsOf = (uid: string, clusters: ReadonlySet<string>) =>
    [...(byUid.get(uid) ?? [])].flatMap(([cluster, problems]) =>
      clusters.has(cluster) ? problems.map(one => ({ cluster, ...one })) : [],
    )

  const isAppliedIn = (clusters: readonly string[], version: number) =>
    clusters.every(name => (reports.get({ namespace: '', name })?.version ?? 0) >= version)

  async function checkCluster(name: string): Promise<number | undefined> {
    const report = reports.get({ namespace: '', name })
    if (!report) return undefined
    const age = now() - report.lastContact
    await write(Cluster, { namespace: '', name }, report.uid, undefined, findingsOf(report, age > silentAfter))
    return age > silentAfter ? undefined : silentAfter - age + 1000
  }

  async function checkSecret(slot: string): Promise<void> {
    const secret = desired.secretAt(slot)
    if (!secret) return void open.delete(slot)
    const deliveries = desired.deliveryOf(slot)
    const problems = [
      ...reasonsIn(deliveries),
      ...problemsOf(secret.uid, new Set(deliveries.map(one => one.cluster))).map(
        ({ cluster, reason = 'Failed', namespace, name, message }) => ({
          cluster,
          reason,
          message: `${namespace}/${name}: ${message}`,
        }),
      ),
    ]
    const names = deliveries.map(one => one.cluster)
    const finding = foundOf('Delivered', names.length, problems, isAppliedIn(names, secret.changedAt))
    if (finding.status !== 'True') open.add(slot)
    else open.delete(slot)
    await write(ProjectSecret, secret.ref, secret.uid, secret.generation, [finding])
  }

  async function checkTeam(name: string): Promise<void> {
    const team = teamAt(name)
    if (!team) return void openTeams.delete(name)
    const problems = [
      ...reasonsIn(team.missing),
      ...problemsOf(team.uid, new Set(team.clusters)).map(({ cluster, reason = 'Failed', clusterRole, message }) => ({
        cluster,
        reason,
        message: `${clusterRole}: ${message}`,
      })),
    ]
    const finding = foundOf(
      'ClusterRolesBound',
      team.clusters.length + team.missing.length,
      problems,
      isAppliedIn(team.clusters, team.changedAt),
    )
    if (finding.status !== 'True') openTeams.add(name)
    else openTeams.delete(name)
    await write(Team, { namespace: '', name }, team.uid, undefined, [finding])
  }

  const write = (
    kind: typeof Cluster | typeof Team | typeof ProjectSecret,
    ref: Ref,
    uid: string,
    generation: number | undefined,
    findings: readonly Finding[],
  ) =>
    writeConditions(
      resources,
      { kind, ref },
      {
        findings,
        isCurrent: ({ metadata }: Resource) =>
          metadata.uid === uid && (generation === undefined || metadata.generation === generation),
        now,
      },
    )

  const teams = startInformer({
    resources,
    kind: Team,
    counts: mentions('clusters'),
    keep: ({ metadata }) => metadata.generation,
    changed: ({ name }, generation, before) => {
      if (generation === before) return
      openTeams.add(name)
      loop.add(`team ${name}`)
    },
    failed: error => failed('watching teams', error),
  })
  const unfollow = desired.followSecrets(slot => {
    open.add(slot)
    loop.add(`secret ${slot}`)
  })
  const ready = Promise.all([reports.ready, desired.ready]).then(() => {
    for (const slot of desired.slots()) loop.add(`secret ${slot}`)
    for (const name of teamNames()) loop.add(`team ${name}`)
  })
  return {
    ready,
    idle: loop.idle,
    async stop() {
      unfollow()
      reports.stop()
      teams.stop()
      await loop.stop()
    },
  }
}

const reasonsIn = (deliveries: readonly Delivery[]): Problem[] =>
  deliveries.flatMap(({ cluster, reason, message }) => (reason ? [{ cluster, reason, message: message ?? '' }] : []))

type Problem = { readonly cluster: string; readonly reason: string; readonly message: string }

function foundOf(
  type: 'Delivered' | 'ClusterRolesBound',
  clusters: number,
  problems: readonly Problem[],
  isApplied: boolean,
): Finding {
  if (clusters === 0)
    return {
      type,
      status: 'False',
      severity: 'Warning',
      reason: 'NoCluster',
      message: 'no connected cluster is selected',
    }
  const [first] = problems
  if (first) {
    const shown = problems.slice(0, maxShown).map(({ cluster, message }) => `${cluster}: ${message}`)
    const more = problems.length > maxShown ? `; and ${problems.length - maxShown} more` : ''
    const message = `${shown.join('; ')}${more}`.slice(0, 2048)
    return { type, status: 'False', severity: 'Error', reason: first.reason, message }
  }
  return isApplied
    ? { type, status: 'True', reason: type === 'Delivered' ? 'Delivered' : 'Bound' }
    : remotePending(type)
}

function findingsOf({ isDisabled, lastContact, problems }: Report, isSilent: boolean): Finding[] {
  if (isDisabled) {
    const message = 'nothing is sent to the cluster'
    return [{ type: 'Connected', status: 'False', severity: 'Info', reason: 'Disabled', message }]
  }
  if (lastContact === 0) {
    const message = 'no agent has reported yet'
    return [{ type: 'Connected', status: 'Unknown', severity: 'Info', reason: 'NeverConnected', message }]
  }
  if (isSilent) {
    const message = 'the agent does not report any more; what it delivered stays'
    return [{ type: 'Connected', status: 'False', severity: 'Error', reason: 'AgentSilent', message }]
  }
  const [first] = problems
  const applied: Finding = first
    ? {
        type: 'Applied',
        status: 'False',
        severity: 'Warning',
        reason: first.reason ?? 'Failed',
        message:
          `${problems.length === 1 ? '1 problem' : `${problems.length} problems, the first`}: ${first.message ?? ''}`.slice(
            0,
            2048,
          ),
      }
    : { type: 'Applied', status: 'True', reason: 'Applied' }
  return [{ type: 'Connected', status: 'True', reason: 'AgentReports' }, applied]
}

const reportOf = ({ metadata, spec, status }: ClusterObject): Report => ({
  name: metadata.name ?? '',
  uid: metadata.uid ?? '',
  version: Number(status?.desiredVersion ?? 0) || 0,
  lastContact: Date.parse(status?.lastContact ?? '') || 0,
  isDisabled: spec?.disabled === true,
  isTerminating: metadata.deletionTimestamp !== undefined,
  problems: status?.problems ?? [],
})
