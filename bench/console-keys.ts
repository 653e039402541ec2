// Writes the access keys that the bench of the console lists and changes.

import { Agent, request } from 'node:http'
import type { Server } from './processes.ts'

export const keys = Number(process.env['BENCH_KEYS'] ?? 10_000)
const path = '/kubernetes/management/apis/management.platform.sh/v1/ownedaccesskeys'
const nameOf = (index: number) => `key-${String(index).padStart(5, '0')}`

export async function fill(server: Server): Promise<void> {
  const send = openWriter(server)
  let next = 1 // the administrator's key is one, too
  const lane = async () => {
    while (next < keys) {
      const index = next++
      const spec = { user: `user-${index % 100}`, displayName: `Key ${index} of a machine` }
      const metadata = { name: nameOf(index), labels: { half: String(index % 2) } }
      await send.write('POST', '', { metadata, spec }, 'application/json')
    }
  }
  await Promise.all(Array.from({ length: 32 }, lane))
  send.close()
}

type Writer = ReturnType<typeof openWriter>

export function openWriter({ http, key }: Server) {
  const agent = new Agent({ keepAlive: true, maxSockets: 32 })
  const write = (method: string, below: string, body: object, type: string) =>
    new Promise<void>((resolve, reject) => {
      const headers = { Authorization: `Bearer ${key}`, 'Content-Type': type }
      request(`${http}${path}${below}`, { method, agent, headers }, response => {
        const isDone = (response.statusCode ?? 500) < 300
        response.resume().on('end', () => (isDone ? resolve() : reject(new Error(`${method}: ${response.statusCode}`))))
      })
        .on('error', reject)
        .end(JSON.stringify(body))
    })
  return { write, close: () => agent.destroy() }
}

/** Changes a key, a different one for each of the next numbers. */
export const change = ({ write }: Writer, index: number, displayName: string): Promise<void> =>
  write(
    'PATCH',
    `/${nameOf(1 + ((index * 7) % (keys - 1)))}`,
    { spec: { displayName } },
    'application/merge-patch+json',
  )
