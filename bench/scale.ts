// 100,000 objects of 1 KB: cold start, memory, and whether gets, pages and selective lists stay as fast as with 1,000.

import { Agent, request } from 'node:https'
import { drive } from './load.ts'
import type { Figure, Measured } from './measurement.ts'
import { remove, residentOf, type Server, startServer } from './processes.ts'

const teams = '/kubernetes/management/apis/management.platform.sh/v1/teams'
const many = 100_000

export async function fill(server: Server, from: number, to: number): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 64, rejectUnauthorized: false })
  const headers = { Authorization: `Bearer ${server.key}`, 'Content-Type': 'application/json' }
  let next = from
  const lane = async () => {
    while (next < to) {
      const index = next++
      const labels = { half: String(index % 2), few: String(index % (many / 10)) }
      const body = JSON.stringify({
        metadata: { name: `team-${index}`, labels },
        spec: { description: 'x'.repeat(280) },
      })
      await new Promise<void>((resolve, reject) =>
        request(server.url + teams, { method: 'POST', agent, headers }, response =>
          response.resume().on('end', resolve),
        )
          .on('error', reject)
          .end(body),
      )
    }
  }
  await Promise.all(Array.from({ length: 64 }, lane))
  agent.destroy()
}

async function rates(server: Server): Promise<{ get: number; page: number; few: number }> {
  const base = { url: server.url, key: server.key, seconds: 3 }
  const get = await drive({ ...base, path: `${teams}/team-%d`, connections: 32 })
  const page = await drive({ ...base, path: `${teams}?limit=500`, connections: 8 })
  const few = await drive({ ...base, path: `${teams}?labelSelector=few%%3D7`.replace('%%', '%'), connections: 32 })
  return { get: get.perSecond, page: page.perSecond, few: few.perSecond }
}

export async function measureScale(): Promise<Measured> {
  let server = await startServer()
  const empty = residentOf(server.pid)
  await fill(server, 0, 1000)
  const before = await rates(server)
  await fill(server, 1000, many)
  await server.stop()
  const started = performance.now()
  server = await startServer(server.directory)
  const cold = (performance.now() - started) / 1000
  const bytes = (residentOf(server.pid) - empty) / many
  const after = await rates(server)
  await server.stop()
  remove(server.directory)
  const text = [
    `scale            ${many} objects: cold start ${cold.toFixed(2)} s (wanted ≤ 3), ${Math.round(bytes)} bytes resident per object (wanted ≤ 2560)`,
    `                 get ${(after.get / before.get).toFixed(2)}, first page ${(after.page / before.page).toFixed(2)} of the rate with 1,000 objects (wanted ~1)`,
    `                 a selector that picks 10: 1/${(after.get / after.few).toFixed(1)} of a get (wanted ≥ 1/10)`,
  ].join('\n')
  const part = (name: string, unit: string, wanted: number, [value, rate]: readonly [number, number]): Figure => ({
    name: `scale: ${name}`,
    value: value / rate,
    unit,
    bare: { name: unit.replace(/^of (the rate )?/, ''), value: 1 },
    wanted,
    direction: 'at-least',
    note: `${Math.round(value)}/s against ${Math.round(rate)}/s`,
  })
  return {
    text,
    figures: [
      { name: 'scale: cold start', value: cold, unit: 's', wanted: 3, direction: 'at-most' },
      { name: 'scale: memory', value: bytes, unit: 'bytes an object', wanted: 2560, direction: 'at-most' },
      part('get', 'of the rate with 1,000', 1, [after.get, before.get]),
      part('first page', 'of the rate with 1,000', 1, [after.page, before.page]),
      part('selector', 'of a get', 0.1, [after.few, after.get]),
    ],
  }
}
