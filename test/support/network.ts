// A network of namespaces on this machine: every member of etcd has its own, and links can be cut in each direction.
//
// The processes of the test must run in a network namespace of their own (`inNamespaces`). Member m has the address 10.78.n.m for
// peer n, where n is the number of a replica, of the test itself, or `peers` for the other members.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { exec } from './exec.ts'

/** Runs a program as root of new namespaces. All its processes end with it. */
const namespaces = ['--user', '--map-root-user', '--net', '--pid', '--fork', '--kill-child', '--mount-proc']

/** The command that runs a program in namespaces; undefined: this machine does not allow them, or has no `ip`. */
export async function inNamespaces(command: readonly string[]): Promise<readonly string[] | undefined> {
  const test =
    'ip link set lo up && ip link add br0 type bridge && ip link add v0 type veth peer name v1 && nsenter --version'
  const { code } = await exec('unshare', [...namespaces, 'sh', '-c', test])
  return code === 0 ? ['unshare', ...namespaces, ...command] : undefined
}

export type Direction = 'to' | 'from'

export type Network = {
  /** The number of the test itself. Its links are never cut. */
  readonly own: number
  /** The command that runs a program as this member. */
  enter(member: number): readonly string[]
  address(member: number, peer: number): string
  /** `to`: what the peer sends to the member is dropped. `from`: what the member sends to the peer. */
  cut(member: number, peer: number, direction: Direction): Promise<void>
  cutMembers(one: number, other: number): Promise<void>
  /** Restores all links. */
  heal(): Promise<void>
  close(): void
}

const peers = 200
const gateway = 254
const hosts = '10.78'

export async function openNetwork(members: number, replicas: number): Promise<Network> {
  const holders: ChildProcess[] = []
  const cuts: (readonly string[])[] = []
  const inside = (member: number) => ['nsenter', '-t', String(holders[member]?.pid), '-n']
  const addressOf = (member: number, peer: number) => `${hosts}.${peer}.${member + 1}`
  const own = replicas
  const numbers = [...Array.from({ length: replicas }, (_, replica) => replica), own, peers]

  await ip('link', 'set', 'lo', 'up')
  await ip('link', 'add', 'br0', 'type', 'bridge')
  for (const peer of numbers) await ip('address', 'add', `${hosts}.${peer}.${gateway}/24`, 'dev', 'br0')
  await ip('link', 'set', 'br0', 'up')
  for (let member = 0; member < members; member++) {
    // It only holds the namespace, and ends with its input.
    const holder = spawn('unshare', ['--net', 'sh', '-c', 'echo ready; exec cat'], {
      stdio: ['pipe', 'pipe', 'ignore'],
    })
    holders.push(holder)
    await once(holder.stdout, 'data')
    await ip('link', 'add', `m${member}`, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(holder.pid))
    await ip('link', 'set', `m${member}`, 'master', 'br0', 'up')
    await run([...inside(member), 'ip', 'link', 'set', 'lo', 'up'])
    for (const peer of numbers)
      await run([...inside(member), 'ip', 'address', 'add', `${addressOf(member, peer)}/24`, 'dev', 'eth0'])
    await run([...inside(member), 'ip', 'link', 'set', 'eth0', 'up'])
  }

  async function drop(prefix: readonly string[], address: string): Promise<void> {
    const route = [...prefix, 'ip', 'route']
    await run([...route, 'replace', 'blackhole', `${address}/32`])
    cuts.push([...route, 'del', 'blackhole', `${address}/32`])
  }

  return {
    own,
    enter: inside,
    address: addressOf,
    cut: (member, peer, direction) =>
      direction === 'to' ? drop([], addressOf(member, peer)) : drop(inside(member), `${hosts}.${peer}.${gateway}`),
    async cutMembers(one, other) {
      await drop(inside(one), addressOf(other, peers))
      await drop(inside(other), addressOf(one, peers))
    },
    async heal() {
      // A link that was cut twice is restored once.
      for (const command of cuts.splice(0)) await exec(command[0] as string, command.slice(1))
    },
    close() {
      for (const holder of holders) holder.kill('SIGKILL')
    },
  }
}

/** The address of a member for the other members. */
export const peerAddress = (network: Network, member: number) => network.address(member, peers)

const ip = (...args: readonly string[]) => run(['ip', ...args])

async function run([file = '', ...args]: readonly string[]): Promise<void> {
  const { code, stderr } = await exec(file, args)
  if (code !== 0) throw new Error(`${file} ${args.join(' ')} ended with ${code}: ${stderr}`)
}
