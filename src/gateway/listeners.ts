// The listeners of a standalone gateway, for clients and for probes. A new address is opened before the old one is closed.

import { UsageError } from '../host/command.ts'
import { addressOf } from '../serving/address.ts'
import { listenError } from '../serving/listen-error.ts'
import type { Listener } from '../serving/listener.ts'
import type { Change } from './config/reload-transaction.ts'
import type { GatewayConfig } from './config/schema.ts'

export interface GatewayListeners {
  /** The current addresses, as text. */
  readonly urls: () => string
  /** Rejects with UsageError if an address cannot be opened. undefined: nothing changed. */
  prepare(config: GatewayConfig): Promise<Change | undefined>
  /** Accepts no new client requests, and resolves when the others are finished or aborted. */
  close(milliseconds: number): Promise<void>
  /** The same for probes. */
  closeStatus(): Promise<void>
}

export type GatewayListenersOptions = {
  readonly file: string
  readonly listen: (address: string) => Promise<Listener>
  readonly listenStatus: (address: string) => Promise<Listener>
  readonly info: (text: string) => void
}

/** The time for requests at a closed address to finish. */
const drainWithin = 3600_000

type OpenListener = { readonly address: string; readonly listener: Listener }

/** Throws UsageError. */
export async function openListeners(first: GatewayConfig, options: GatewayListenersOptions): Promise<GatewayListeners> {
  const { file, listen, listenStatus, info } = options
  const listeners = new Set<OpenListener>()
  const open = async (what: string, address: string, how: GatewayListenersOptions['listen']): Promise<OpenListener> => {
    try {
      const opened = { address, listener: await how(address) }
      listeners.add(opened)
      return opened
    } catch (error) {
      const { port } = addressOf(address)
      const own = [...listeners].find(({ listener }) => Number(new URL(listener.url).port) === port)
      const holder = own && `this gateway, which keeps ${own.address} open until it is restarted`
      const why = listenError(address, error as Error, holder)
      throw new UsageError([`${file}: ${what}: ${why}; set ${what} to another HOST:PORT`])
    }
  }
  const statusOf = ({ status = 'off' }: GatewayConfig) => (status === 'off' ? undefined : status)
  const closing = new Set<Listener>()
  const closeListener = (opened: OpenListener, milliseconds: number) => {
    const { listener } = opened
    listeners.delete(opened)
    closing.add(listener)
    void listener.close(milliseconds).then(() => closing.delete(listener))
  }
  let main = await open('listen', first.listen ?? '', listen)
  const wanted = statusOf(first)
  let status = wanted === undefined ? undefined : await open('status', wanted, listenStatus)
  const urls = () =>
    [main, status]
      .map(one => one?.listener.url)
      .filter(Boolean)
      .join(' ')

  return {
    urls,
    async prepare(config) {
      const [listenAt, statusAt] = [config.listen ?? '', statusOf(config)]
      const isMoved = listenAt !== main.address
      const isStatusMoved = statusAt !== status?.address
      if (!isMoved && !isStatusMoved) return undefined
      const opened = await Promise.allSettled([
        isMoved ? open('listen', listenAt, listen) : undefined,
        isStatusMoved && statusAt !== undefined ? open('status', statusAt, listenStatus) : undefined,
      ])
      const before = { main, status }
      const drop = () => {
        ;({ main, status } = before)
        for (const one of opened) if (one.status === 'fulfilled' && one.value) closeListener(one.value, 0)
      }
      const failures = opened.filter(one => one.status === 'rejected').map(one => one.reason as UsageError)
      if (failures.length) {
        drop()
        throw new UsageError(failures.flatMap(one => one.problems))
      }
      const [nextMain, nextStatus] = opened.map(one => (one.status === 'fulfilled' ? one.value : undefined))
      return {
        drop,
        use() {
          main = nextMain ?? main
          if (isStatusMoved) status = nextStatus
        },
        done() {
          if (nextMain) closeListener(before.main, drainWithin)
          if (isStatusMoved && before.status) closeListener(before.status, 1000)
          info(`now listening at ${urls()}`)
        },
      }
    },
    async close(milliseconds) {
      await Promise.all([main.listener, ...closing].map(one => one.close(milliseconds)))
    },
    closeStatus: async () => status?.listener.close(1000),
  }
}
