// The latency that a gateway adds to a get at 500 requests per second, alternating with direct gets. gateway.ts calls it.

import { type LeanClient, type LeanOptions, openLeanClient } from '../test/prove/lean-client.ts'
import { median } from './measurement.ts'

export type At = LeanOptions & { readonly path: string }

const rounds = 5
const perSecond = 500
const connections = 32
/** Warms up open connections until V8 has compiled everything, which takes some 10,000 requests. */
const warmUp = 24_000

/** The 99th percentiles in milliseconds: medians of consecutive pairs, because the load of the machine changes. */
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

function openLane({ path, ...options }: At) {
  const clients = Array.from({ length: connections }, () => openLeanClient(options))
  const free = [...clients]
  const waiting: ((client: LeanClient) => void)[] = []
  const take = () => {
    const client = free.shift()
    return client ? Promise.resolve(client) : new Promise<LeanClient>(resolve => void waiting.push(resolve))
  }
  const give = (client: LeanClient) => {
    const next = waiting.shift()
    if (next) next(client)
    else free.push(client)
  }
  /** Milliseconds since the scheduled time. */
  const one = async (due: number) => {
    const client = await take()
    const { code } = await client.ask('GET', path)
    const taken = performance.now() - due
    give(client)
    if (code !== 200) throw new Error(`a get was answered ${code}`)
    return taken
  }
  return {
    async warm() {
      for (let sent = 0; sent < warmUp; sent += connections)
        await Promise.all(Array.from({ length: connections }, () => one(0)))
    },
    /** Sends requests at their scheduled time, even if earlier ones have no response yet. */
    async run(seconds: number): Promise<number> {
      const under: Promise<number>[] = []
      const began = performance.now()
      while (under.length < seconds * perSecond) {
        const now = performance.now()
        const due = Math.min(seconds * perSecond, Math.floor(((now - began) * perSecond) / 1000))
        while (under.length < due) under.push(one(now))
        await new Promise(resolve => setTimeout(resolve, 1))
      }
      const times = (await Promise.all(under)).toSorted((a, b) => a - b)
      return times[Math.floor(times.length * 0.99)] as number
    },
    close: () => {
      for (const client of clients) client.close()
    },
  }
}
