// Clients that send every request to another replica, and give up on one that does not answer.

import { setTimeout as pause } from 'node:timers/promises'
import { type Connect, type LeanClient, type LeanOptions, openLeanClient } from '../lean-client.ts'
import type { Dice } from '../seeded-random.ts'

export type Balancer = {
  readonly connect: Connect
  /** The number of answers so far, without 503. */
  readonly answered: number
}

/** A replica that did not answer gets few requests for so many milliseconds, as from a balancer. */
const avoidMs = 300
/** Clients do not ask again at once, or a cluster that is down would keep the cores busy. */
const restMs = 25

export function openBalancer(replicas: readonly LeanOptions[], roll: Dice): Balancer {
  const avoidUntil = replicas.map(() => 0)
  let answered = 0

  function choose(): number {
    const at = roll(replicas.length)
    const isAvoided = (avoidUntil[at] as number) > performance.now() && roll(8) > 0
    return isAvoided ? (at + 1 + roll(replicas.length - 1)) % replicas.length : at
  }

  /** Closes the client when the answer is late, so that the request fails. */
  async function within<T>(
    client: LeanClient,
    at: number,
    patience: number | undefined,
    asking: Promise<T>,
  ): Promise<T> {
    const timer = patience === undefined ? undefined : setTimeout(() => client.close(), patience)
    try {
      return await asking
    } catch (error) {
      avoidUntil[at] = performance.now() + avoidMs
      await pause(restMs)
      throw error
    } finally {
      clearTimeout(timer)
    }
  }

  return {
    get answered() {
      return answered
    },
    connect(patience) {
      const clients = replicas.map(replica => openLeanClient(replica))
      return {
        async ask(...request) {
          const at = choose()
          const client = clients[at] as LeanClient
          const answer = await within(client, at, patience, client.ask(...request))
          if (answer.code === 503) await pause(restMs)
          else answered++
          return answer
        },
        follow(path, line) {
          const at = choose()
          const client = clients[at] as LeanClient
          return within(client, at, patience, client.follow(path, line))
        },
        close() {
          for (const client of clients) client.close()
        },
      }
    },
  }
}
