// Starts real etcd members, on loopback or in namespaces of a network. The binary is from ETCD_BINARY or from Debian's archive.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fetchDebian } from './fetch-debian.ts'
import { type Network, peerAddress } from './network.ts'
import { freePort } from './ports.ts'

const cache = join(import.meta.dirname, '../../node_modules/.cache/platform-tools')
const suites = [['sid']]

export type EtcdBinaries = { readonly etcd: string; readonly etcdutl: string }

/** Undefined if this machine has none and cannot fetch one. */
export async function findEtcd(): Promise<EtcdBinaries | undefined> {
  const own = process.env['ETCD_BINARY']
  if (own) return { etcd: own, etcdutl: join(dirname(own), 'etcdutl') }
  if (!fetched()) await fetchDebian({ name: 'etcd-server', cache, suites })
  return fetched()
}

function fetched(): EtcdBinaries | undefined {
  const folder = existsSync(cache) ? readdirSync(cache).find(name => /^etcd-server-\d/.test(name)) : undefined
  if (!folder) return undefined
  const bin = join(cache, folder, 'usr/bin')
  return { etcd: join(bin, 'etcd'), etcdutl: join(bin, 'etcdutl') }
}

export type EtcdMember = {
  readonly name: string
  readonly endpoint: string
  readonly directory: string
  pid(): number
  /** For SIGSTOP and SIGCONT. */
  signal(name: NodeJS.Signals): void
  /** SIGKILL. */
  kill(): Promise<void>
  /** On the same data and address. */
  start(): Promise<void>
}

export type EtcdCluster = {
  readonly binaries: EtcdBinaries
  readonly members: readonly EtcdMember[]
  readonly endpoints: readonly string[]
  /** The endpoints for a replica, if the members are in a network. */
  endpointsFor(replica: number): readonly string[]
  /** Kills the members and removes their data. */
  close(): Promise<void>
}

/** Ends with the test process. */
export async function startEtcd(
  options: {
    readonly members?: number
    readonly args?: readonly string[]
    readonly tls?: EtcdTls | undefined
    readonly network?: Network | undefined
  } = {},
): Promise<EtcdCluster> {
  const { network } = options
  const binaries = await findEtcd()
  if (!binaries)
    throw new Error(
      'etcd is missing, and could not be fetched from Debian: set ETCD_BINARY to a program of etcd 3.5.28 or later',
    )
  const room = mkdtempSync(join(tmpdir(), 'platform-etcd-'))
  const scheme = options.tls ? 'https' : 'http'
  const wanted = await Promise.all(
    Array.from({ length: options.members ?? 1 }, async (_, index) => {
      const place = network ? placeIn(network, index) : await placeOnLoopback(scheme)
      return { name: `m${index + 1}`, ...place }
    }),
  )
  const initial = wanted.map(({ name, peer }) => `${name}=${peer}`).join(',')
  const members = wanted.map(one =>
    memberOf({
      ...one,
      binary: binaries.etcd,
      room,
      initial,
      args: [...tlsArgs(options.tls), ...(options.args ?? [])],
    }),
  )
  const leave = () => {
    for (const { child } of members) child()?.kill('SIGKILL')
    rmSync(room, { recursive: true, force: true })
  }
  process.once('exit', leave)
  await Promise.all(members.map(({ start }) => start()))
  if (!options.tls) while (!(await isHealthy(members[0]?.endpoint ?? ''))) await pause(50)
  return {
    binaries,
    members,
    endpoints: members.map(({ endpoint }) => endpoint),
    endpointsFor: replica =>
      members.map(({ endpoint }, index) => (network ? clientUrl(network, index, replica) : endpoint)),
    async close() {
      await Promise.all(members.map(({ kill }) => kill()))
      process.off('exit', leave)
      rmSync(room, { recursive: true, force: true })
    },
  }
}

/** `listen`: the client URL of the member itself. `command`: runs a program where the member is. */
type Place = {
  readonly endpoint: string
  readonly listen: string
  readonly peer: string
  readonly command: readonly string[]
}

async function placeOnLoopback(scheme: string): Promise<Place> {
  const endpoint = `${scheme}://127.0.0.1:${await freePort()}`
  return { endpoint, listen: endpoint, peer: `http://127.0.0.1:${await freePort()}`, command: [] }
}

const placeIn = (network: Network, member: number): Place => ({
  endpoint: clientUrl(network, member, network.own),
  listen: `http://0.0.0.0:${clientPort}`,
  peer: `http://${peerAddress(network, member)}:2380`,
  command: network.enter(member),
})
const clientPort = 2379
const clientUrl = (network: Network, member: number, client: number) =>
  `http://${network.address(member, client)}:${clientPort}`

export type EtcdTls = { readonly ca: string; readonly cert: string; readonly key: string }

const tlsArgs = (tls: EtcdTls | undefined) =>
  tls ? [`--cert-file=${tls.cert}`, `--key-file=${tls.key}`, `--trusted-ca-file=${tls.ca}`, '--client-cert-auth'] : []

function memberOf(
  options: Place & {
    readonly name: string
    readonly initial: string
    readonly room: string
    readonly binary: string
    readonly args: readonly string[]
  },
): EtcdMember & { child(): ChildProcess | undefined } {
  const { name, endpoint, listen, peer, initial, room, binary, args } = options
  const directory = join(room, name)
  let child: ChildProcess | undefined
  let said = ''
  return {
    name,
    endpoint,
    directory,
    child: () => child,
    pid: () => child?.pid ?? 0,
    signal(name) {
      child?.kill(name)
    },
    async kill() {
      const ending = child
      child = undefined
      if (!ending || ending.exitCode !== null || ending.signalCode !== null) return
      ending.kill('SIGKILL')
      await once(ending, 'exit')
    },
    async start() {
      const [program = binary, ...before] = [...options.command, binary]
      const started = spawn(
        program,
        [
          ...before,
          `--name=${name}`,
          `--data-dir=${directory}`,
          `--listen-client-urls=${listen}`,
          `--advertise-client-urls=${endpoint}`,
          `--listen-peer-urls=${peer}`,
          `--initial-advertise-peer-urls=${peer}`,
          `--initial-cluster=${initial}`,
          '--log-level=warn',
          ...args,
        ],
        { stdio: ['ignore', 'ignore', 'pipe'] },
      )
      child = started
      started.stderr.setEncoding('utf8').on('data', (text: string) => {
        said = `${said}${text}`.slice(-4000)
      })
      const { hostname, port } = new URL(endpoint)
      while (!(await listens(hostname, Number(port)))) {
        if (started.exitCode !== null) throw new Error(`etcd ended with ${started.exitCode}:\n${said}`)
        await pause(50)
      }
    },
  }
}

/** Whether the cluster has a leader and answers. */
const isHealthy = async (endpoint: string) => (await fetch(`${endpoint}/health`).catch(() => undefined))?.ok ?? false

async function listens(host: string, port: number): Promise<boolean> {
  const socket = connect(port, host)
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}
