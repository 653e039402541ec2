// A cluster, a stand-in for the management API, and agents between them, in this process.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { type Agent, type AgentSettings, startAgent } from '../../src/gateway/agent/agent.ts'
import { openService } from '../../src/gateway/auth/control-plane.ts'
import type { DesiredRole, DesiredSecret } from '../../src/kinds/cluster-desired.ts'
import { type AgentCluster, openAgentCluster, type SecretObject } from '../support/agent-cluster.ts'
import { type AgentService, openAgentService } from '../support/agent-service.ts'
import { until } from '../support/cluster.ts'

export type LogLine = { readonly fields: { readonly [name: string]: unknown }; readonly text: string }

export type AgentStage = {
  readonly cluster: AgentCluster
  readonly service: AgentService
  /** All lines of all agents. */
  readonly logged: readonly LogLine[]
  start(over?: Partial<AgentSettings>): Agent
  /** The Secret, when it has this value under the key `token`. */
  delivered(namespace: string, name: string, value: string): Promise<SecretObject>
  /** The newest report has a problem with this reason. */
  problem(reason: string): Promise<{ readonly [field: string]: string | undefined }>
  noProblems(): Promise<void>
  /** Everything that the service wants now is done, or has a problem. */
  settled(): Promise<void>
  close(): Promise<void>
}

export const base64 = (text: string) => Buffer.from(text).toString('base64')

export const secretFor = (
  over: Partial<DesiredSecret> & { readonly value?: string } = {},
): { secret: DesiredSecret } => {
  const { value = 'first', ...rest } = over
  const name = rest.name ?? 'token'
  return {
    secret: {
      namespace: 'shop',
      name,
      type: 'Opaque',
      data: { token: base64(value) },
      source: { namespace: 'p-shop', name, uid: `uid-of-${name}` },
      ...rest,
    },
  }
}

export const roleFor = (over: Partial<DesiredRole> = {}): { role: DesiredRole } => ({
  role: { team: 'web', uid: 'uid-of-web', clusterRole: 'view', ...over },
})

export async function openAgentStage(): Promise<AgentStage> {
  const [cluster, service] = await Promise.all([openAgentCluster(), openAgentService()])
  cluster.namespaces.set('shop', 'Active')
  const directory = mkdtempSync(join(tmpdir(), 'platform-agent-'))
  writeFileSync(join(directory, 'agent.key'), 'agent-key\n')
  const config = { issuer: { url: service.url }, service: { url: service.url, keyFile: 'agent.key' } }
  const opened = openService(config, join(directory, 'gateway.yaml'), { env: {}, now: Date.now })
  const logged: LogLine[] = []
  const write = (fields: object, text: string) => void logged.push({ fields: fields as LogLine['fields'], text })
  const agents = new Set<Agent>()
  const reported = () => service.reports.at(-1)
  return {
    cluster,
    service,
    logged,
    start(over = {}) {
      const settings = {
        cluster: 'prod',
        namespace: 'platform-agent',
        groupPrefix: '',
        access: cluster.access,
        ...over,
      }
      const agent = startAgent(settings, {
        service: () => opened,
        ...{ env: {}, now: Date.now, version: 'test', wrote: () => {} },
        clock: {
          ticks: () => performance.now(),
          wait: (milliseconds, signal) => setTimeout(milliseconds, undefined, { signal }).catch(() => {}),
          random: () => 0,
        },
        log: { info: write, warn: write, error: write } as never,
        failed: what =>
          Object.assign((error: unknown) => write({ why: (error as Error).message }, `${what} failed`), {
            worked: () => {},
          }),
      })
      agents.add(agent)
      return agent
    },
    delivered: (namespace, name, value) =>
      until(`${namespace}/${name} is ${value}`, async () => {
        const found = await cluster.secret(namespace, name)
        return found?.data?.['token'] === base64(value) && found
      }),
    problem: reason =>
      until(`a problem ${reason}`, async () => reported()?.problems.find(one => one.reason === reason)),
    noProblems: async () => void (await until('no problems', async () => reported()?.problems.length === 0)),
    settled: async () =>
      void (await until('everything is applied', async () => reported()?.desiredVersion === service.version())),
    async close() {
      await Promise.all([...agents].map(agent => agent.stop()))
      opened.close()
      await Promise.all([cluster.close(), service.close()])
      rmSync(directory, { recursive: true })
    },
  }
}
