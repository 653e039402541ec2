// One channel to an endpoint of etcd, and the clients of its services.

import type { Buffer } from 'node:buffer'
import { isIP } from 'node:net'
import { checkServerIdentity } from 'node:tls'
import { Channel, type ChannelCredentials, connectivityState, credentials } from '@grpc/grpc-js'
import { KVClient, LeaseClient, MaintenanceClient, WatchClient } from './rpc.generated.ts'

export type EtcdConnection = {
  /** `https://host:port` or `http://host:port`. */
  readonly endpoints: readonly string[]
  readonly tls?: { readonly ca?: Buffer; readonly cert?: Buffer; readonly key?: Buffer } | undefined
}

/** Windows and messages are larger than the defaults of grpc-js, which are slow for watches and too small for lists. */
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

export type Connection = {
  readonly endpoint: string
  readonly channel: Channel
  readonly kv: KVClient
  readonly watch: WatchClient
  readonly lease: LeaseClient
  readonly maintenance: MaintenanceClient
}

export function connect(endpoint: string, tls: EtcdConnection['tls']): Connection {
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

/** Resolves with the first channel that connects, or with undefined at the deadline. */
export function firstReady(order: readonly Connection[], deadline: number): Promise<Connection | undefined> {
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
