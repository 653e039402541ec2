// One user sends the most expensive inputs on two TLS connections, one after the other, while a thread polls /livez.

import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { startServer } from '../support/server.ts'
import type { Input } from './cost/limits.ts'
import { inputs, targets } from './cost/run.ts'
import { type Latencies, openLatencies } from './latencies.ts'
import { openLeanClient } from './lean-client.ts'

const connections = 2

/** `names`: the inputs of the cost prover to send. */
export async function runCostLoad(
  names: readonly string[],
  seconds: number,
): Promise<Latencies & { readonly sent: number }> {
  const server = await startServer({ storage: 'sqlite' })
  try {
    const to = { url: server.https, key: server.adminKey, ca: server.ca }
    const bodies = inputsNamed(names)
    const clients = Array.from({ length: connections }, () => openLeanClient(to))
    const send = (index: number, { method, url, body, type }: Input) =>
      clients[index]?.ask(method, url, body.toString(), type)
    for (const input of targets()) await send(0, input)
    const probe = new Worker(new URL('./live-probe.ts', import.meta.url), { workerData: to })
    await once(probe, 'message')
    const end = performance.now() + seconds * 1000
    let sent = 0
    await Promise.all(
      clients.map(async (_, index) => {
        for (let at = index; performance.now() < end; at++) {
          await send(index, bodies[at % bodies.length] as Input)
          sent++
        }
      }),
    )
    probe.postMessage('over')
    const [took] = (await once(probe, 'message')) as [number[]]
    const live = openLatencies()
    for (const one of took) live.add(one)
    for (const client of clients) client.close()
    return { add: live.add, count: live.count, at: live.at, sent }
  } finally {
    await server.kill()
  }
}

/** Text only, because the client sends no other bodies. */
function inputsNamed(names: readonly string[]): Input[] {
  const known = new Set(names)
  const isPart = (what: string) => names.some(name => name.startsWith(what))
  return [...inputs(isPart)].flatMap(({ what, whole }) =>
    known.has(what) && typeof whole.body === 'string' ? [whole] : [],
  )
}
