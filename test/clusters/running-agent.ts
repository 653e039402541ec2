// Runs the agent of a connected cluster in this process, against a real server.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { startAgent } from '../../src/gateway/agent/agent.ts'
import { openService } from '../../src/gateway/auth/control-plane.ts'
import type { AgentCluster } from '../support/agent-cluster.ts'
import type { Agent, ClusterStage } from './stage.ts'

export type RunningAgent = { about(): string; stop(): Promise<void> }

export function runAgent(
  { server }: Pick<ClusterStage, 'server'>,
  { cluster, key }: Pick<Agent, 'cluster' | 'key'>,
  { access }: AgentCluster,
): RunningAgent {
  const directory = mkdtempSync(join(tmpdir(), 'platform-connected-'))
  writeFileSync(join(directory, 'agent.key'), `${key}\n`)
  writeFileSync(join(directory, 'ca.crt'), server.ca)
  const url = server.https
  const config = { issuer: { url, ca: 'ca.crt' }, service: { url, ca: 'ca.crt', keyFile: 'agent.key' } }
  const service = openService(config, join(directory, 'gateway.yaml'), { env: {}, now: Date.now })
  const agent = startAgent(
    { cluster, namespace: 'platform-agent', groupPrefix: '', access },
    {
      service: () => service,
      ...{ env: {}, now: Date.now, version: 'test', wrote: () => {} },
      clock: {
        ticks: () => performance.now(),
        wait: (milliseconds, signal) => setTimeout(milliseconds, undefined, { signal }).catch(() => {}),
        random: () => 0,
      },
      log: { info: () => {}, warn: () => {}, error: () => {} } as never,
      failed: () => Object.assign(() => {}, { worked: () => {} }),
    },
  )
  return {
    about: () => agent.about(),
    async stop() {
      await agent.stop()
      service.close()
      rmSync(directory, { recursive: true })
    },
  }
}
