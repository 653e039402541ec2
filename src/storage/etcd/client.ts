// Connects to etcd: one channel per endpoint, and one attempt per write. An error says whether the request may have had an effect.

import { Buffer } from 'node:buffer'
import { isIP } from 'node:net'
import { checkServerIdentity } from 'node:tls'
import {
  Channel,
  type ChannelCredentials,
  type ClientDuplexStream,
  connectivityState,
  credentials,
  Metadata,
  type ServiceError,
  status,
} from '@grpc/grpc-js'
import {
  type AlarmMember,
  AlarmRequest_AlarmAction,
  type AlarmResponse,
  AlarmType,
  KVClient,
  LeaseClient,
  MaintenanceClient,
  type RangeRequest,
  type RangeResponse,
  type StatusResponse,
  type TxnRequest,
  type TxnResponse,
  WatchClient,
  type WatchRequest,
  type WatchResponse,
} from './rpc.generated.ts'

export type EtcdConnection = {
  /** `https://host:port` or `http://host:port`. */
  readonly endpoints: readonly string[]
  readonly tls?: { readonly ca?: Buffer; readonly cert?: Buffer; readonly key?: Buffer } | undefined
}

/** `unknown`: the request may have had an effect, now or later. */
export class EtcdError extends Error {
  readonly code: status
  readonly outcome: 'rejected' | 'unknown'
  constructor(message: string, code: status, outcome: 'rejected' | 'unknown') {
    super(message)
    this.name = 'EtcdError'
    this.code = code
    this.outcome = outcome
  }
}

export type WatchStream = ClientDuplexStream<WatchRequest, WatchResponse>

export type EtcdClient = {
  /** A linearizable read. Tries the other endpoints if one does not respond. */
  range(request: Partial<RangeRequest>, timeoutMs?: number): Promise<RangeResponse>
  /** Sends once, to the first endpoint that is connected. */
  txn(request: TxnRequest): Promise<TxnResponse>
  compact(revision: number): Promise<void>
  grantLease(id: number, seconds: number): Promise<void>
  /** Resolves with the seconds that remain; 0: the lease has expired. */
  keepLeaseAlive(id: number): Promise<number>
  revokeLease(id: number): Promise<void>
  alarms(): Promise<readonly AlarmMember[]>
  /** The status of every endpoint, or why it did not respond. */
  statuses(): Promise<readonly { readonly endpoint: string; readonly status: StatusResponse | Error }[]>
  /** Opens a watch stream. `avoid`: an endpoint whose last stream failed. */
  watch(avoid?: string): Promise<{ readonly endpoint: string; readonly stream: WatchStream }>
  close(): void
}

const [attemptMs, txnMs, connectMs] = [1500, 3000, 2000]

/** Window and message sizes are larger than the defaults of grpc-js, which are slow for watches and too small for lists. */
const channelOptions = {
  'grpc.max_receive_message_length': -1,
  'grpc.max_send_message_length': -1,
  'grpc.keepalive_time_ms': 10_000,
  'grpc.keepalive_timeout_ms': 5_000,
  // etcd closes connections on which an idle client sends pings.
  'grpc.keepalive_permit_without_calls': 0,
  'grpc-node.flow_control_window': 4 * 1024 * 1024,
  'grpc.enable_retries': 0,
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1000,
  // Two clients in one process must not share connections: closing one would end the other's.
  'grpc.use_local_subchannel_pool': 1,
}

type Connection = {
  readonly endpoint: string
  readonly channel: Channel
  readonly kv: KVClient
  readonly watch: WatchClient
  readonly lease: LeaseClient
  readonly maintenance: MaintenanceClient
}

type Done<T> = (error: ServiceError | null, response: T) => void
type Send<T> = (connection: Connection, metadata: Metadata, options: { deadline: number }, done: Done<T>) => void

export function openEtcdClient({ endpoints, tls }: EtcdConnection): EtcdClient {
  const connections = endpoints.map(endpoint => connect(endpoint, tls))
  /** The endpoint that responded last. */
  let current = 0

  const inOrder = (): readonly Connection[] => [...connections.slice(current), ...connections.slice(0, current)]
  const prefer = (connection: Connection) => {
    current = connections.indexOf(connection)
  }
  const skip = (connection: Connection) => {
    if (connections[current] === connection) current = (current + 1) % connections.length
  }

  /** The first endpoint with a connection, starting with `order`. */
  async function connected(order: readonly Connection[]): Promise<Connection> {
    const deadline = Date.now() + connectMs
    for (const one of order) if (one.channel.getConnectivityState(true) === connectivityState.READY) return one
    const found = await firstReady(order, deadline)
    if (!found)
      throw new EtcdError(`no etcd endpoint can be reached (${endpoints.join(', ')})`, status.UNAVAILABLE, 'rejected')
    return found
  }

  async function send<T>(call: Send<T>, timeoutMs: number, connection: Connection): Promise<T> {
    try {
      const response = await unary(call, connection, timeoutMs)
      prefer(connection)
      return response
    } catch (error) {
      if ((error as EtcdError).outcome === 'unknown') skip(connection)
      throw error
    }
  }

  /** For requests that may be repeated: each endpoint gets one attempt. */
  async function repeatable<T>(call: Send<T>, timeoutMs = attemptMs): Promise<T> {
    let last: unknown
    for (const _ of connections)
      try {
        return await send(call, timeoutMs, await connected(inOrder()))
      } catch (error) {
        last = error
        if ((error as EtcdError).outcome !== 'unknown') throw error
      }
    throw last
  }

  return {
    range: (request, timeoutMs) =>
      repeatable((one, ...rest) => one.kv.range({ ...emptyRange, ...request }, ...rest), timeoutMs),
    txn: async request => send((one, ...rest) => one.kv.txn(request, ...rest), txnMs, await connected(inOrder())),
    async compact(revision) {
      await repeatable((one, ...rest) => one.kv.compact({ revision }, ...rest))
    },
    async grantLease(id, seconds) {
      await repeatable((one, ...rest) => one.lease.leaseGrant({ ID: id, TTL: seconds }, ...rest))
    },
    async keepLeaseAlive(id) {
      const connection = await connected(inOrder())
      return keepAlive(connection, id).catch((error: unknown) => {
        skip(connection)
        throw error
      })
    },
    async revokeLease(id) {
      await repeatable((one, ...rest) => one.lease.leaseRevoke({ ID: id }, ...rest))
    },
    async alarms() {
      const request = { action: AlarmRequest_AlarmAction.GET, memberID: '0', alarm: AlarmType.NO_ALARM }
      const { alarms } = await repeatable<AlarmResponse>((one, ...rest) => one.maintenance.alarm(request, ...rest))
      return alarms
    },
    // Does not wait for a connection first, so that the error says why there is none. A member without a leader responds, too.
    statuses: () =>
      Promise.all(
        connections.map(async connection => ({
          endpoint: connection.endpoint,
          status: await unary<StatusResponse>(
            (one, ...rest) => one.maintenance.status({}, ...rest),
            connection,
            attemptMs,
            new Metadata(),
          ).catch((error: Error) => error),
        })),
      ),
    async watch(avoid) {
      const order = inOrder()
      const others = order.filter(({ endpoint }) => endpoint !== avoid)
      const connection = await connected(others.length ? [...others, ...order] : order)
      return { endpoint: connection.endpoint, stream: connection.watch.watch(leaderNeeded()) }
    },
    close() {
      for (const { channel } of connections) channel.close()
    },
  }
}

const emptyRange: RangeRequest = {
  key: Buffer.alloc(0),
  rangeEnd: Buffer.alloc(0),
  limit: 0,
  revision: 0,
  keysOnly: false,
  countOnly: false,
}

function connect(endpoint: string, tls: EtcdConnection['tls']): Connection {
  const url = new URL(endpoint)
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const secure: ChannelCredentials =
    url.protocol === 'https:'
      ? credentials.createSsl(tls?.ca ?? null, tls?.key ?? null, tls?.cert ?? null, {
          checkServerIdentity: (_, certificate) => checkServerIdentity(host, certificate),
        })
      : credentials.createInsecure()
  // TLS does not allow an address as the name of a server.
  const channel = new Channel(`dns:${url.host}`, secure, {
    ...channelOptions,
    ...(isIP(host) ? { 'grpc.ssl_target_name_override': 'etcd' } : {}),
  })
  const options = { channelOverride: channel }
  return {
    endpoint,
    channel,
    kv: new KVClient(url.host, secure, options),
    watch: new WatchClient(url.host, secure, options),
    lease: new LeaseClient(url.host, secure, options),
    maintenance: new MaintenanceClient(url.host, secure, options),
  }
}

/** A member that is cut off from the others rejects the request or ends the stream. */
function leaderNeeded(): Metadata {
  const metadata = new Metadata()
  metadata.set('hasleader', 'true')
  return metadata
}

const undetermined = new Set<status>([
  status.UNAVAILABLE,
  status.DEADLINE_EXCEEDED,
  status.CANCELLED,
  status.UNKNOWN,
  status.INTERNAL,
])

function unary<T>(send: Send<T>, connection: Connection, timeoutMs: number, metadata = leaderNeeded()): Promise<T> {
  return new Promise((resolve, reject) => {
    send(connection, metadata, { deadline: Date.now() + timeoutMs }, (error, response) => {
      if (!error) resolve(response)
      else reject(errorFrom(error, connection.endpoint))
    })
  })
}

function errorFrom({ code, details }: ServiceError, endpoint: string): EtcdError {
  const message = `etcd ${endpoint}: ${code === status.DEADLINE_EXCEEDED ? 'no response in time' : plain(details)}`
  return new EtcdError(message, code, undetermined.has(code) ? 'unknown' : 'rejected')
}

/** Without the notes of the gRPC library about its own work. */
const plain = (details: string) =>
  details
    .replace(/^No connection established\. Last error: (?:Error: )?/, '')
    .replace(/\.? Resolution note:.*$/s, '')
    .trim()

function keepAlive(connection: Connection, id: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const stream = connection.lease.leaseKeepAlive(leaderNeeded(), { deadline: Date.now() + attemptMs })
    stream.on('data', ({ TTL }: { TTL: number }) => {
      resolve(TTL)
      stream.cancel()
    })
    stream.on('error', (error: ServiceError) => reject(errorFrom(error, connection.endpoint)))
    stream.on('end', () => reject(new EtcdError('etcd ended the lease stream', status.UNAVAILABLE, 'unknown')))
    stream.write({ ID: id })
  })
}

/** Resolves with the first channel that connects, or with undefined at the deadline. */
function firstReady(order: readonly Connection[], deadline: number): Promise<Connection | undefined> {
  return new Promise(resolve => {
    let waiting = order.length
    for (const connection of order) {
      const follow = () => {
        const state = connection.channel.getConnectivityState(true)
        if (state === connectivityState.READY) return resolve(connection)
        connection.channel.watchConnectivityState(state, deadline, error => {
          if (!error) return follow()
          if (--waiting === 0) resolve(undefined)
        })
      }
      follow()
    }
  })
}
