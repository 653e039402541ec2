// The memory of a thousand watches at a gateway, each on its own connection or many on one HTTP/2 connection. gateway.ts calls it.

import { connect } from 'node:http2'
import { get } from 'node:https'
import { ours, startGateway } from './gateway-process.ts'
import { median } from './measurement.ts'
import { remove, residentOf, type Server } from './processes.ts'

const count = 1000
const atOnce = 50
/** Watches per shared connection. */
const onOne = 100
const rounds = 3

export type Watches = { readonly before: number; readonly alone: number; readonly together: number }

/** Megabytes: medians, each with a newly started gateway. */
export async function measureWatches(server: Server, built: string, token: string): Promise<Watches> {
  const found = { before: [] as number[], alone: [] as number[], together: [] as number[] }
  for (let round = 0; round < rounds; round++)
    for (const [name, hold] of [
      ['alone', holdAlone],
      ['together', holdTogether],
    ] as const) {
      const { url, pid, stop, directory } = await startGateway(server, built)
      found.before.push(residentOf(pid) / 2 ** 20)
      const ends = await hold(url, { Authorization: `Bearer ${token}` })
      found[name].push(residentOf(pid) / 2 ** 20)
      for (const end of ends) end()
      await stop()
      remove(directory)
    }
  return { before: median(found.before), alone: median(found.alone), together: median(found.together) }
}

type Headers = { readonly Authorization: string }
const path = `/kubernetes/cluster/prod${ours}/teams?watch=true`

async function holdAlone(url: string, headers: Headers): Promise<(() => void)[]> {
  const open = () =>
    new Promise<() => void>((resolve, reject) => {
      const sent = get(url + path, { agent: false, headers, rejectUnauthorized: false }, response => {
        if (response.statusCode !== 200) reject(new Error(`a watch was answered ${response.statusCode}`))
        response.resume().on('error', () => {})
        resolve(() => sent.destroy())
      })
      sent.on('error', reject)
    })
  const all: (() => void)[] = []
  for (let at = 0; at < count; at += atOnce) all.push(...(await Promise.all(Array.from({ length: atOnce }, open))))
  return all
}

async function holdTogether(url: string, { Authorization }: Headers): Promise<(() => void)[]> {
  const sessions = Array.from({ length: count / onOne }, () => connect(url, { rejectUnauthorized: false }))
  for (const session of sessions) {
    session.on('error', () => {})
    const open = () =>
      new Promise<void>((resolve, reject) => {
        const stream = session.request({ ':path': path, authorization: Authorization })
        stream.on('response', ({ ':status': status }) => {
          if (status === 200) resolve()
          else reject(new Error(`a watch was answered ${status}`))
        })
        stream.on('error', reject).resume()
      })
    for (let at = 0; at < onOne; at += atOnce) await Promise.all(Array.from({ length: atOnce }, open))
  }
  return sessions.map(session => () => session.destroy())
}
