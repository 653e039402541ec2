// Seals the messages between replicas with the master key ring, which only replicas have: it authenticates and encrypts them.

import { randomUUID } from 'node:crypto'
import { ownText } from '../api/own-text.ts'
import type { Seals } from './encryption.ts'

/** Requests that are older or that come from further in the future are refused. */
const maxSkewMs = 60_000

/** The id of the request, and its sealed content. */
const form = /^([0-9a-f-]{36}) (sealed:v1:\w+:[\w-]+)$/

export type PeerMessages = {
  /** `target`: the id of the replica that may open it. */
  request(target: string, value: object): { readonly id: string; readonly text: string }
  /** Undefined: not a request of another replica to this one, too old, or repeated. */
  openRequest(text: string): { readonly id: string; readonly value: object } | undefined
  response(id: string, value: object): string
  /** The response of the target to the request with this id; undefined: it is something else. */
  openResponse(target: string, id: string, text: string): object | undefined
}

export function openPeerMessages(options: {
  readonly seals: Seals
  /** The id of this replica. */
  readonly self: string
  readonly now: () => number
}): PeerMessages {
  const { seals, self, now } = options
  const requestOf = (target: string, id: string) => `request ${id} to ${target}`
  const responseOf = (target: string, id: string) => `response ${id} of ${target}`
  /** The ids of the requests that were accepted, with their times. */
  const accepted = new Map<string, number>()

  function isRepeated(id: string, time: number): boolean {
    // In the order of arrival, so an old request may stay a little longer.
    for (const [old, at] of accepted) {
      if (at >= now() - 2 * maxSkewMs) break
      accepted.delete(old)
    }
    if (accepted.has(id)) return true
    accepted.set(ownText(id), Math.max(time, now()))
    return false
  }

  return {
    request(target, value) {
      const id = randomUUID()
      return { id, text: `${id} ${seals.seal(requestOf(target, id), JSON.stringify({ time: now(), value }))}` }
    },
    openRequest(text) {
      const [, id = '', sealed = ''] = form.exec(text) ?? []
      const opened = id ? seals.unseal(requestOf(self, id), sealed) : undefined
      if (opened === undefined) return undefined
      const { time, value } = JSON.parse(opened) as { readonly time: number; readonly value: object }
      return Math.abs(now() - time) <= maxSkewMs && !isRepeated(id, time) ? { id, value } : undefined
    },
    response: (id, value) => seals.seal(responseOf(self, id), JSON.stringify(value)),
    openResponse(target, id, text) {
      const opened = seals.unseal(responseOf(target, id), text)
      return opened === undefined ? undefined : (JSON.parse(opened) as object)
    },
  }
}
