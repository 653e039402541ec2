// Three members of etcd and three replicas of the server on them, in a network whose links can be cut.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type EtcdClient, openEtcdClient } from '../../../src/storage/etcd/client.ts'
import { openInstallation } from '../../../src/storage/etcd/installation.ts'
import { keysBelow } from '../../../src/storage/etcd/keys.ts'
import { type EtcdCluster, startEtcd } from '../../support/etcd.ts'
import { type Network, openNetwork } from '../../support/network.ts'
import { type Again, type Server, startServer } from '../../support/server.ts'
import { lateLink } from '../../support/tcp-link.ts'

export const size = 3
export const prefix = '/platform'
/** As after a migration: resourceVersions are not etcd's revisions. */
export const offset = 1_000_000

export type Replica = {
  readonly server: Server
  /** Kills it if it runs, and starts it again. */
  revive(): Promise<void>
  /** Stops it with SIGTERM, and starts it again. */
  restart(): Promise<void>
  /** Sets its clock, in milliseconds from the real time. */
  setClock(offset: number): void
}

/** A proxy between members and a replica. */
export type Link = {
  /** The function gives the milliseconds for each part of a response. */
  delay(milliseconds: () => number): void
  /** Breaks the connections, and with them the responses that are delayed. */
  lose(): void
}

export type Cluster = {
  /** Undefined: this process is not in a network namespace, so nothing can be cut. */
  readonly network: Network | undefined
  readonly etcd: EtcdCluster
  readonly replicas: readonly Replica[]
  /** Of one of the replicas; undefined: none has a proxy. */
  readonly link: Link | undefined
  /** Of the prover itself, whose links are never cut. */
  readonly client: EtcdClient
  close(): Promise<void>
}

/** `begin`: what each replica loads before the program, for example a seeded bug. `linked`: the replica with a proxy before each member. */
export async function startCluster(options: {
  readonly isInNamespace: boolean
  readonly linked?: number | undefined
  readonly begin?: Again | undefined
}): Promise<Cluster> {
  const { begin = {}, linked } = options
  const network = options.isInNamespace ? await openNetwork(size, size) : undefined
  const etcd = await startEtcd({ members: size, network })
  const client = openEtcdClient({ endpoints: etcd.endpoints })
  await openInstallation({
    client,
    keys: keysBelow(prefix),
    endpoints: etcd.endpoints,
    prefix,
    offset: () => offset,
  })
  const closes: (() => void)[] = []
  const links = await Promise.all(
    linked === undefined
      ? []
      : etcd.endpointsFor(linked).map(endpoint => lateLink({ after: close => closes.push(close) }, endpoint)),
  )
  const replicas: Replica[] = []
  for (let index = 0; index < size; index++) {
    const endpoints = index === linked ? links.map(({ endpoint }) => endpoint) : etcd.endpointsFor(index)
    replicas.push(await startReplica(etcd, { index, endpoints, begin, first: replicas[0]?.server }))
  }
  return {
    network,
    etcd,
    replicas,
    link: links.length
      ? {
          delay(milliseconds) {
            for (const link of links) link.delay(milliseconds)
          },
          lose() {
            for (const link of links) link.lose()
          },
        }
      : undefined,
    client,
    async close() {
      client.close()
      await Promise.all(replicas.map(({ server }) => server.kill()))
      for (const close of closes) close()
      await etcd.close()
      network?.close()
    },
  }
}

async function startReplica(
  etcd: EtcdCluster,
  options: {
    readonly index: number
    readonly endpoints: readonly string[]
    readonly begin: Again
    readonly first: Server | undefined
  },
): Promise<Replica> {
  const { index, begin, first } = options
  const clock = join(etcd.members[0]?.directory ?? '', `../clock-${index}`)
  const again: Again = {
    imports: [new URL('./clock.ts', import.meta.url).href, ...(begin.imports ?? [])],
    env: { ...begin.env, PROVE_CLOCK: clock },
  }
  const endpoints = options.endpoints.flatMap(endpoint => ['--etcd-endpoints', endpoint])
  const server = await startServer({
    args: ['--storage', 'etcd', ...endpoints, '--insecure-http', '--audit-log', 'off', '--limits-unknown-keys', '0'],
    begin: again,
    ...(first ? { replicaOf: first } : {}),
  })
  return {
    server,
    revive: () => patiently(() => server.crash(again)),
    async restart() {
      // It may have ended by itself, as it does after a long time without etcd. One that runs must stop well.
      const hasEnded = await Promise.race([server.died().then(() => true), pause(0).then(() => false)])
      if (hasEnded) return patiently(() => server.crash(again))
      await server.restart(undefined, again).catch(error => {
        // It stopped, but did not start, for example without a quorum. Or it was about to end by itself.
        if (!/printed|so it ends/.test(error.message)) throw error
        return patiently(() => server.crash(again))
      })
    },
    setClock(milliseconds) {
      writeFileSync(clock, String(milliseconds))
      server.signal('SIGUSR2')
    },
  }
}

/** A replica does not start without a quorum. */
async function patiently(start: () => Promise<void>): Promise<void> {
  for (let attempts = 5; ; attempts--)
    try {
      return await start()
    } catch (error) {
      if (attempts === 0) throw error
    }
}
