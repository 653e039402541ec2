// Starts etcd members and replicas of the server on them.

import { type EtcdCluster, startEtcd } from './etcd.ts'
import { type Again, type Server, startServer } from './server.ts'

export type Replicas = {
  readonly etcd: EtcdCluster
  readonly servers: readonly Server[]
  /** The flags of every replica. */
  readonly args: readonly string[]
  /** Starts one more replica. */
  add(): Promise<Server>
  /** Stops everything that still runs. */
  close(): Promise<void>
}

export async function startReplicas(
  options: {
    readonly members?: number
    readonly replicas?: number
    readonly args?: readonly string[]
    readonly begin?: Again
  } = {},
): Promise<Replicas> {
  const { members = 1, replicas = 2, args: more = [], begin = {} } = options
  const etcd = await startEtcd({ members })
  const args = etcdArgs(etcd, more)
  const first = await startServer({ args, begin })
  const servers = [first]
  const add = async () => {
    const server = await startServer({ args, begin, replicaOf: first })
    servers.push(server)
    return server
  }
  for (let count = 1; count < replicas; count++) await add()
  return {
    etcd,
    servers,
    args,
    add,
    async close() {
      await Promise.all(servers.map(server => server.kill()))
      await etcd.close()
    },
  }
}

export const etcdArgs = ({ endpoints }: Pick<EtcdCluster, 'endpoints'>, more: readonly string[] = []) => [
  '--storage',
  'etcd',
  ...endpoints.flatMap(endpoint => ['--etcd-endpoints', endpoint]),
  ...more,
]
