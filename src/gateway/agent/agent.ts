// Runs the agent of a cluster: finds out which Cluster it belongs to, takes the lease, and works while it leads.

import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { Logger } from 'pino'
import { type Json, timestamp } from '../../api/object.ts'
import { connect } from '../../client/connect.ts'
import { Cluster } from '../../kinds/cluster.ts'
import { holdLease } from '../../reconcile/leader-election.ts'
import type { ThrottledLog } from '../../serving/throttled-log.ts'
import type { Access } from '../../transport/cluster-config.ts'
import { openTransport, type Transport } from '../../transport/transport.ts'
import type { Service } from '../auth/control-plane.ts'
import { isRejection } from './desired-stream.ts'
import { agentObjectName } from './marks.ts'
import { clusterProblem, shortened } from './problems.ts'
import { type Activity, type AgentClock, type Session, type SessionStatus, startSession } from './session.ts'
import type { Target } from './wanted-object.ts'

export type AgentSettings = {
  /** The name of the Cluster. */
  readonly cluster: string
  readonly namespace: string
  readonly groupPrefix: string
  readonly access: Access
}

export type AgentDependencies = {
  /** The current management API. */
  readonly service: () => Pick<Service, 'resources' | 'watchDesired' | 'ofOwnKey'>
  readonly env: { readonly [name: string]: string | undefined }
  readonly now: () => number
  readonly clock: AgentClock
  readonly version: string
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>
  readonly failed: ThrottledLog
  readonly wrote: (target: Target, verb: string, error: unknown) => void
}

export interface Agent {
  /** The uid of the Cluster; undefined: the management API has not said it yet. */
  readonly uid: string | undefined
  /** The state as a sentence, for readiness. */
  about(): string
  readonly isLeading: boolean
  counts(): ReturnType<Session['counts']>
  /** Milliseconds since the last contact with the stream of the management API; undefined: none yet, or not leading. */
  desiredAge(): number | undefined
  /** Releases the lease. Resolves when nothing is in flight. */
  stop(): Promise<void>
}

const none = { secrets: 0, bindings: 0, problems: 0 }
const reportEvery = 30_000
/** A watch each, and the writes. */
const connections = 10_000
const activities: { readonly [activity in Activity]: string } = {
  desired: 'reading the desired state of the cluster from the management API',
  cluster: 'watching the cluster',
  status: 'reporting the status of the cluster',
  write: 'writing to the cluster',
}

export function startAgent(settings: AgentSettings, dependencies: AgentDependencies): Agent {
  const { cluster, namespace, access, groupPrefix } = settings
  const { service, env, now, clock, log, failed, wrote } = dependencies
  const at = { namespace: '', name: cluster }
  const stopping = new AbortController()
  const transport = openTransport(access, { env, now, connections })
  const kubernetesVersion = openVersion(transport, clock)
  let session: Session | undefined
  let knownUid: string | undefined
  let rejection: Error | undefined
  let lastContact: number | undefined
  const logs = Object.fromEntries(
    Object.entries(activities).map(([activity, what]) => [activity, failed(what)]),
  ) as unknown as { readonly [activity in Activity]: ReturnType<ThrottledLog> }
  const leasing = failed('holding the lease of the agent')

  const setRejected = (error: Error | undefined) => {
    if (rejection?.message === error?.message) return
    if (error) log.error({ cluster, why: describe(error) }, 'the management API rejects the agent: it writes nothing')
    else log.info({ cluster }, 'the management API accepts the agent again')
    rejection = error
  }
  const describe = (error: unknown) => (service().ofOwnKey(error) as Error).message

  /** Also the uid: keys and objects of a cluster that is created again under its name belong to another one. */
  async function clusterUid(): Promise<string> {
    for (let delay = 500; !stopping.signal.aborted; delay = Math.min(delay * 2, 60_000)) {
      try {
        const { object } = await service().resources.get(Cluster, at, { subresource: 'status' })
        setRejected(undefined)
        logs.desired.worked()
        if (!object.metadata.uid) throw new Error(`the management API returned the cluster ${cluster} without its uid`)
        return object.metadata.uid
      } catch (error) {
        if (isRejection(error)) setRejected(error)
        else logs.desired(error)
      }
      await clock.wait(delay * (0.5 + clock.random() / 2), stopping.signal)
    }
    return ''
  }

  async function report({ desiredVersion, problems, isCleanedUp }: SessionStatus): Promise<void> {
    const kubeVersion = await kubernetesVersion()
    const status = {
      ...(kubeVersion ? { kubernetesVersion: kubeVersion } : {}),
      agentVersion: dependencies.version,
      lastContact: timestamp(now()),
      ...(desiredVersion ? { desiredVersion } : {}),
      problems,
      cleanedUp: isCleanedUp || null,
    }
    const body = { status } as unknown as Json
    await service().resources.patch(Cluster, at, { type: 'merge', body }, { subresource: 'status' })
  }

  /** Without the lease there is no session that reports. Whether another agent leads is not an error. */
  let reportedAt = Number.NEGATIVE_INFINITY
  const leaseFailed = (error: unknown) => {
    leasing(error)
    if (session || clock.ticks() - reportedAt < reportEvery) return
    reportedAt = clock.ticks()
    const problem = shortened(clusterProblem(error as Error))
    report({ desiredVersion: '', problems: [problem], isCleanedUp: false }).catch(logs.status)
  }

  async function lead(uid: string, signal: AbortSignal, replaced: () => void): Promise<void> {
    log.info({ cluster, uid }, 'the agent leads')
    lastContact = undefined
    session = startSession({
      resources: connect({ url: access.server, below: '', fetch: until(transport, signal) }),
      owner: { uid, groupPrefix },
      namespace,
      clock,
      signal,
      openDesired: async () => {
        const found = await service().resources.get(Cluster, at, { subresource: 'status' })
        if (found.object.metadata.uid !== uid) replaced()
        return service().watchDesired(cluster, signal)
      },
      report,
      observer: {
        wrote,
        failed: (activity, error) => {
          if (!signal.aborted) logs[activity](error)
        },
        worked: activity => logs[activity].worked(),
        problem: problem => log.warn({ cluster, ...problem }, 'cannot do what the management API wants'),
        rejected: setRejected,
        contacted: () => {
          lastContact = now()
        },
      },
    })
    await session.ended
    session = undefined
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      const uid = await clusterUid()
      if (stopping.signal.aborted) break
      knownUid = uid
      const replacing = new AbortController()
      await holdLease(
        {
          resources: connect({ url: access.server, below: '', fetch: transport.fetch }),
          at: { namespace, name: agentObjectName(uid) },
          // Replicas may share a host name.
          identity: `${hostname()}_${randomUUID()}`,
          now,
          ticks: clock.ticks,
          wait: clock.wait,
          lead: signal => lead(uid, signal, () => replacing.abort()),
          failed: leaseFailed,
        },
        AbortSignal.any([stopping.signal, replacing.signal]),
      )
    }
    transport.close()
  }
  const ended = run()

  return {
    get uid() {
      return knownUid
    },
    about() {
      if (rejection) return 'the management API rejects the agent: it writes nothing'
      if (!session) return 'not leading'
      const { secrets, bindings, problems } = session.counts()
      const contact =
        lastContact === undefined ? 'no contact yet' : `last contact ${secondsOf(now() - lastContact)} ago`
      return `leading, ${secrets} secrets, ${bindings} role bindings, ${problems} problems, ${contact}`
    },
    get isLeading() {
      return session !== undefined
    },
    counts: () => session?.counts() ?? none,
    desiredAge: () => (session && lastContact !== undefined ? now() - lastContact : undefined),
    async stop() {
      stopping.abort()
      await ended
    },
  }
}

const secondsOf = (milliseconds: number) => `${Math.round(milliseconds / 1000)} s`

/** Requests end with the signal, because another agent may lead by then. */
const until =
  ({ fetch }: Transport, signal: AbortSignal): Transport['fetch'] =>
  (url, init) =>
    fetch(url, { ...init, signal: init.signal ? AbortSignal.any([init.signal, signal]) : signal })

const [versionFor, versionWithin] = [600_000, 5000]

/** The version of the cluster, the last one if the cluster does not respond. */
function openVersion({ fetch, server }: Transport, { ticks, wait }: AgentClock): () => Promise<string | undefined> {
  let known: string | undefined
  let until = Number.NEGATIVE_INFINITY
  const read = async () => {
    const response = await fetch(`${server}/version`, { headers: { Accept: 'application/json' } })
    if (!response.ok) return
    known = ((await response.json()) as { readonly gitVersion?: string }).gitVersion?.slice(0, 128) ?? known
    until = ticks() + versionFor
  }
  return async () => {
    const ending = new AbortController()
    if (ticks() >= until) await Promise.race([read().catch(() => {}), wait(versionWithin, ending.signal)])
    ending.abort()
    return known
  }
}
