// Starts the agent that gateway.yaml configures, and restarts it when its part of the configuration changes.

import type { Metrics } from '../../serving/metrics.ts'
import type { Access } from '../../transport/cluster-config.ts'
import type { Change } from '../config/reload-transaction.ts'
import type { GatewayConfig } from '../config/schema.ts'
import { describeTarget } from '../proxy/routes.ts'
import { type Agent, type AgentDependencies, type AgentSettings, startAgent } from './agent.ts'

export interface AgentPart {
  prepare(config: GatewayConfig): Change
  /** Whether and how it runs, for readiness; undefined: no agent is configured. */
  about(): string | undefined
  /** The uid of the Cluster of the agent, if it has this name. */
  uidOf(cluster: string): string | undefined
  stop(): Promise<void>
}

export type AgentPartOptions = {
  /** The active configuration, and the access to its clusters. */
  readonly setup: { readonly config: GatewayConfig; readonly accesses: () => ReadonlyMap<string, Access> }
  readonly metrics: Metrics
  readonly dependencies: Omit<AgentDependencies, 'wrote'>
}

/** The namespace of the agent's own objects. */
export const agentNamespaceOf = ({ agent }: GatewayConfig) => agent?.namespace ?? 'platform-agent'

export function openAgentPart({ setup, metrics, dependencies }: AgentPartOptions): AgentPart {
  let running: Agent | undefined
  let stamp = ''
  let changing = Promise.resolve()
  let isStopped = false
  const wrote = observeAgent(metrics, () => running)
  const use = () => {
    const settings = settingsOf(setup)
    const next = settings ? JSON.stringify(settings) : ''
    if (next === stamp || isStopped) return
    stamp = next
    changing = changing.then(async () => {
      await running?.stop()
      running = settings && !isStopped ? startAgent(settings, { ...dependencies, wrote }) : undefined
    })
  }
  use()
  return {
    // The configuration is valid, and a cluster may be unreachable: nothing can fail.
    prepare: () => ({ use: () => {}, drop: () => {}, done: use }),
    about: () => (setup.config.agent ? (running?.about() ?? 'starting') : undefined),
    uidOf: cluster => (setup.config.agent?.cluster === cluster ? running?.uid : undefined),
    async stop() {
      isStopped = true
      await changing
      await running?.stop()
    },
  }
}

function settingsOf({ config, accesses }: AgentPartOptions['setup']): AgentSettings | undefined {
  const cluster = config.agent?.cluster
  if (cluster === undefined) return undefined
  const access = accesses().get(describeTarget({ target: 'Cluster', cluster }))
  const namespace = agentNamespaceOf(config)
  return access && { cluster, namespace, groupPrefix: config.identity?.groupPrefix ?? '', access }
}

/** Returns a function to call for every write. */
function observeAgent(metrics: Metrics, running: () => Agent | undefined): AgentDependencies['wrote'] {
  const writes = metrics.counter('platform_agent_writes_total', 'Writes to the cluster, by kind, verb and result.')
  metrics.gauge('platform_agent_objects', 'Objects of the agent in the cluster, by kind.', () => {
    const { secrets, bindings } = running()?.counts() ?? { secrets: 0, bindings: 0 }
    return [
      [{ kind: 'Secret' }, secrets],
      [{ kind: 'ClusterRoleBinding' }, bindings],
    ]
  })
  metrics.gauge('platform_agent_problems', 'Objects that the agent cannot write.', () => [
    [{}, running()?.counts().problems ?? 0],
  ])
  metrics.gauge(
    'platform_agent_desired_age_seconds',
    'Time since the last contact with the desired state of the management API.',
    () => {
      const age = running()?.desiredAge()
      return age === undefined ? [] : [[{}, age / 1000]]
    },
  )
  metrics.gauge('platform_agent_leader', 'Whether this agent leads.', () => [[{}, running()?.isLeading ? 1 : 0]])
  return ({ kind }, verb, error) => {
    const code = (error as { readonly code?: number } | undefined)?.code
    writes({ kind: kind.kind, verb, result: error === undefined ? 'ok' : String(code ?? 'error') })(1)
  }
}
