// What a gateway adds to the time of a get at 500 requests a second, by turns with the same get direct. gateway.ts calls it.

import { Agent, get } from 'node:https'
import { median } from './figure.ts'

export type At = {
  readonly url: string
  readonly key: string
  readonly path: string
  readonly headers?: { readonly [name: string]: string }
}

const rounds = 5
const perSecond = 500
/** On connections that are open, with everything compiled that will be. */
const warmUp = 4000

/** The 99th percentiles in milliseconds; medians of pairs that follow each other, for the machine may be another a minute later. */
export async function measureDelay(direct: At, through: At, seconds: number) {
  const [one, other] = [openLane(direct), openLane(through)]
  for (const lane of [one, other]) await lane.warm()
  const found = { direct: [] as number[], through: [] as number[], added: [] as number[] }
  for (let round = 0; round < rounds; round++) {
    const [without, with_] = [await one.run(seconds), await other.run(seconds)]
    found.direct.push(without)
    found.through.push(with_)
    found.added.push(with_ - without)
  }
  for (const lane of [one, other]) lane.close()
  return { direct: median(found.direct), through: median(found.through), added: median(found.added) }
}

function openLane({ url, key, path, headers: more = {} }: At) {
  const agent = new Agent({ keepAlive: true, maxSockets: 32, rejectUnauthorized: false })
  const headers = { Authorization: `Bearer ${key}`, ...more }
  const one = () =>
    new Promise<number>((resolve, reject) => {
      const began = performance.now()
      get(url + path, { agent, headers }, response => {
        if (response.statusCode !== 200) reject(new Error(`a get was answered ${response.statusCode}`))
        response.resume().on('end', () => resolve(performance.now() - began))
      }).on('error', reject)
    })
  return {
    async warm() {
      for (let sent = 0; sent < warmUp; sent += 32) await Promise.all(Array.from({ length: 32 }, one))
    },
    /** Sent when they are due, whether or not others have been answered. */
    async run(seconds: number): Promise<number> {
      const under: Promise<number>[] = []
      const began = performance.now()
      while (under.length < seconds * perSecond) {
        const due = Math.min(seconds * perSecond, Math.floor(((performance.now() - began) * perSecond) / 1000))
        while (under.length < due) under.push(one())
        await new Promise(resolve => setTimeout(resolve, 1))
      }
      const times = (await Promise.all(under)).toSorted((a, b) => a - b)
      return times[Math.floor(times.length * 0.99)] as number
    },
    close: () => agent.destroy(),
  }
}
