// The faults: members and replicas are killed, paused and cut off, history is compacted, and clocks jump. Each ends by itself.

import { setTimeout as pause } from 'node:timers/promises'
import type { Direction, Network } from '../../support/network.ts'
import type { Dice } from '../seeded-random.ts'
import type { Tape } from '../traffic.ts'
import { type Cluster, offset, type Replica, size } from './cluster.ts'

/** `next`: the replica for the next fault of a kind, so that each has its turn. */
type Site = {
  readonly cluster: Cluster
  readonly tape: Tape
  readonly roll: Dice
  readonly next: number
}
type Fault = { readonly needsNetwork?: boolean; readonly run: (site: Site) => Promise<void> }

const local = (run: Fault['run']): Fault => ({ run })
const onNetwork = (run: (site: Site & { readonly network: Network }) => Promise<void>): Fault => ({
  needsNetwork: true,
  run: site => run({ ...site, network: site.cluster.network as Network }),
})

export const faults = {
  'kill a member': local(async ({ cluster, roll }) => {
    const member = memberOf(cluster, roll(size))
    await member.kill()
    await pause(200 + roll(2500))
    await member.start()
  }),
  'pause a member': local(({ cluster, roll }) => stopped([memberOf(cluster, roll(size))], 500 + roll(3500))),
  'lose the quorum': local(async ({ cluster, roll }) => {
    const first = roll(size)
    const members = [memberOf(cluster, first), memberOf(cluster, (first + 1) % size)]
    if (roll(2)) return stopped(members, 1000 + roll(6000))
    await Promise.all(members.map(member => member.kill()))
    await pause(1000 + roll(6000))
    await Promise.all(members.map(member => member.start()))
  }),
  'kill a replica': local(async ({ cluster, roll, next }) => {
    const { server, revive } = replicaOf(cluster, next)
    await server.die()
    await pause(roll(1500))
    await revive()
  }),
  'restart a replica': local(({ cluster, next }) => replicaOf(cluster, next).restart()),
  'pause a replica': local(({ cluster, roll, next }) => stopped([replicaOf(cluster, next).server], 500 + roll(8000))),
  'compact and kill a replica': local(async site => {
    await compact(site)
    await replicaOf(site.cluster, site.next).revive()
  }),
  'cut off a member': onNetwork(async ({ network, roll }) => {
    const member = roll(size)
    for (const other of others(member)) await network.cutMembers(member, other)
    await pause(1000 + roll(4000))
    await network.heal()
  }),
  'cut off a replica': onNetwork(async ({ network, roll, next }) => {
    await cutReplica(network, next, ['to', 'from'])
    await pause(1000 + roll(8000))
    await network.heal()
  }),
  'drop what members send to a replica': onNetwork(async ({ network, roll, next }) => {
    await cutReplica(network, next, ['from'])
    await pause(3500 + roll(4000))
    await network.heal()
  }),
  'drop what a replica sends to members': onNetwork(async ({ network, roll, next }) => {
    await cutReplica(network, next, ['to'])
    await pause(1000 + roll(6000))
    await network.heal()
  }),
  // It gets them in bursts: the watch is behind, and a read that was sent is answered when others have read newer data.
  'delay what members send to a replica': local(async ({ cluster, roll }) => {
    const [least, between] = [20 + roll(40), 50 + roll(250)]
    cluster.link?.delay(() => between - ((performance.now() + least) % between) + least)
    await pause(3000 + roll(5000))
    cluster.link?.delay(() => 0)
  }),
  // Nothing else fails, so the replica soon finds out, or does not, what became of the writes without a response.
  'lose what members send to a replica': local(async ({ cluster, roll }) => {
    const milliseconds = 50 + roll(150)
    cluster.link?.delay(() => milliseconds)
    for (let times = 10; times > 0; times--) {
      await pause(400 + roll(600))
      cluster.link?.lose()
    }
    cluster.link?.delay(() => 0)
  }),
  'cut one link': onNetwork(async ({ network, roll }) => {
    const [member, replica] = [roll(size), roll(size)]
    for (const direction of directionsOf(roll)) await network.cut(member, replica, direction)
    await pause(1000 + roll(5000))
    await network.heal()
  }),
  'compact while a replica is cut off': onNetwork(async ({ network, ...site }) => {
    await cutReplica(network, site.next, ['to', 'from'])
    await miss(site)
    await compact(site)
    await network.heal()
    // It ends, because its permissions would be older than the data.
    const { server, revive } = replicaOf(site.cluster, site.next)
    await Promise.race([server.died(), pause(15_000)])
    await revive()
  }),
  'turn back the clock of a replica that is cut off': onNetwork(async ({ network, roll, cluster, next }) => {
    await cutReplica(network, next, ['to', 'from'])
    await pause(1000)
    replicaOf(cluster, next).setClock(-jumpOf(roll))
    await pause(8000)
    await network.heal()
  }),
  // Its kernel keeps the bytes that it sent when the link was cut. They arrive when another replica has taken over.
  'delay the requests of the leader': onNetwork(async ({ network, cluster, next }) => {
    const at = (await leaderOf(cluster)) ?? next
    await cutReplica(network, at, ['to'])
    await pause(1500)
    await stopped([replicaOf(cluster, at).server], 13_000, async () => {
      await pause(7000)
      await network.heal()
    })
  }),
} satisfies { readonly [name: string]: Fault }

/** They take no time, and happen beside the others. */
const smallFaults = {
  compact,
  defragment: async ({ cluster, roll }: Site) => {
    const { endpoint } = memberOf(cluster, roll(size))
    await fetch(`${endpoint}/v3/maintenance/defragment`, { method: 'POST', body: '{}' }).catch(() => {})
  },
  'move a clock': async ({ cluster, roll }: Site) => {
    replicaOf(cluster, roll(size)).setClock([0, jumpOf(roll), -jumpOf(roll)][roll(3)] as number)
  },
}

export type FaultName = keyof typeof faults
export const faultNames = Object.keys(faults) as FaultName[]
export const needsNetwork = (name: FaultName) => (faults[name] as Fault).needsNetwork ?? false

/** The faults that need a proxy before the members. */
const linkFaults: readonly FaultName[] = ['delay what members send to a replica', 'lose what members send to a replica']
export const needsLink = (name: FaultName) => linkFaults.includes(name)

export type Faults = {
  /** How often each happened. */
  readonly counts: ReadonlyMap<string, number>
  /** Runs the named faults once, one after the other. */
  run(names: readonly FaultName[]): Promise<void>
  /** Runs small faults, until `isOver`. */
  runSmall(isOver: () => boolean): Promise<void>
}

export function openFaults(site: Omit<Site, 'next'>): Faults {
  const { roll } = site
  const counts = new Map<string, number>()
  const first = roll(size)
  /** Returns how often it happened before. */
  const count = (name: string) => {
    const times = counts.get(name) ?? 0
    counts.set(name, times + 1)
    return times
  }
  return {
    counts,
    async run(names) {
      for (const name of names) {
        await faults[name].run({ ...site, next: (first + count(name)) % size })
        await pause(300 + roll(1000))
      }
    },
    async runSmall(isOver) {
      const names = Object.keys(smallFaults) as (keyof typeof smallFaults)[]
      while (!isOver()) {
        await pause(1000 + roll(2000))
        const name = names[roll(names.length)] as keyof typeof smallFaults
        count(name)
        await smallFaults[name]({ ...site, next: roll(size) })
      }
    },
  }
}

/** All faults that are possible, in random order. */
export function shuffled(names: readonly FaultName[], roll: Dice): readonly FaultName[] {
  const left = [...names]
  return names.map(() => left.splice(roll(left.length), 1)[0] as FaultName)
}

const memberOf = ({ etcd }: Cluster, index: number) => etcd.members[index] as Cluster['etcd']['members'][number]
const replicaOf = ({ replicas }: Cluster, index: number) => replicas[index] as Replica
async function leaderOf({ replicas }: Cluster): Promise<number | undefined> {
  const leading = await Promise.all(
    replicas.map(async ({ server }) => {
      const headers = { authorization: `Bearer ${server.adminKey}` }
      const answer = await fetch(`${server.http}/metrics`, { headers, signal: AbortSignal.timeout(2000) })
      return /^platform_leader 1$/m.test(await answer.text())
    }),
  ).catch((): boolean[] => [])
  const found = leading.indexOf(true)
  return found < 0 ? undefined : found
}

const others = (index: number) => Array.from({ length: size }, (_, other) => other).filter(other => other !== index)

/** Multiples of 90 seconds, so that times of creation show whether clocks differ. */
const jumpOf = (roll: Dice) => 90_000 * (1 + roll(40))

const directionsOf = (roll: Dice) => ([['to'], ['from'], ['to', 'from']] as const)[roll(3)] as readonly Direction[]

async function cutReplica(network: Network, replica: number, directions: readonly Direction[]): Promise<void> {
  for (let member = 0; member < size; member++)
    for (const direction of directions) await network.cut(member, replica, direction)
}

type Stoppable = { signal(name: NodeJS.Signals): void }

async function stopped(processes: readonly Stoppable[], milliseconds: number, meanwhile?: () => Promise<void>) {
  for (const one of processes) one.signal('SIGSTOP')
  await Promise.all([pause(milliseconds), meanwhile?.()])
  for (const one of processes) one.signal('SIGCONT')
}

/** Waits until all watchers have left the replica that is cut off and have reached events that it cannot have. */
async function miss({ tape }: Site): Promise<void> {
  const before = tape.newest
  await pause(5000)
  for (let tries = 0; tape.reached() <= before && tries < 300; tries++) await pause(50)
}

/** Removes the history that no watcher needs any more. */
async function compact({ cluster, tape }: Site): Promise<void> {
  const revision = tape.reached()
  tape.compactions.push({ tick: tape.tick(), revision })
  // It may be compacted already, or there is no quorum.
  await cluster.client.compact(revision - offset).catch(() => {})
}
