// Connects to etcd: one channel per endpoint, and one attempt per write. An error says whether the request may have had an effect.

import { Buffer } from 'node:buffer'
import { type ClientDuplexStream, connectivityState, Metadata, type ServiceError, status } from '@grpc/grpc-js'
import { type Connection, connect, type EtcdConnection, firstReady } from './connection.ts'
import {
  type AlarmMember,
  AlarmRequest_AlarmAction,
  type AlarmResponse,
  AlarmType,
  type RangeRequest,
  type RangeResponse,
  type StatusResponse,
  type TxnRequest,
  type TxnResponse,
  type WatchRequest,
  type WatchResponse,
} from './rpc.generated.ts'

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

async function unary<T>(
  send: Send<T>,
  connection: Connection,
  timeoutMs: number,
  metadata = leaderNeeded(),
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  // The library creates an error for each call, in case it fails. Its stack is expensive, and not used here.
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0
  try {
    send(connection, metadata, { deadline: Date.now() + timeoutMs }, (error, response) =>
      error ? reject(errorFrom(error, connection.endpoint)) : resolve(response),
    )
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
  return promise
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
