// Sends requests to a server and counts the responses: with wrk if it is installed, otherwise with our own generator.

import { execFile, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { cpuOf } from './processes.ts'

export type Load = {
  readonly url: string
  readonly key: string
  readonly method?: string
  /** %d is the number of the request: unchanged in the body, modulo `among` (default 1000) in the path. */
  readonly path?: string
  readonly among?: number
  readonly body?: string
  readonly type?: string
  /** Sent with every request. */
  readonly headers?: { readonly [name: string]: string }
  readonly connections: number
  readonly seconds: number
  /** Aborts the requests. */
  readonly signal?: AbortSignal
}

export type Rate = { readonly perSecond: number; readonly requests: number; readonly errors: number }

const hasWrk = spawnSync('wrk', ['-v']).error === undefined
export const generator = hasWrk ? 'wrk' : 'node'

export const drive = (load: Load): Promise<Rate> => (hasWrk ? wrk(load) : own(load))

/** `cpu`: microseconds of CPU that the process took for each request. */
export async function driveMeasured(pid: number, load: Load): Promise<Rate & { readonly cpu: number }> {
  const before = cpuOf(pid)
  const rate = await drive(load)
  return { ...rate, cpu: ((cpuOf(pid) - before) * 1000) / Math.max(1, rate.requests) }
}

async function wrk({
  url,
  key,
  method = 'GET',
  path = '',
  body,
  type = 'application/json',
  headers = {},
  connections,
  seconds,
  among = 1000,
  signal,
}: Load): Promise<Rate> {
  const more = Object.entries(headers).map(([name, value]) => `, ["${name}"] = "${value}"`)
  const directory = mkdtempSync(join(tmpdir(), 'wrk-'))
  const script = join(directory, 'load.lua')
  const long = (text: string) => `[==[${text}]==]`
  writeFileSync(
    script,
    `local n = ${Date.now() % 1e9} * 1000
local headers = { ["Authorization"] = "Bearer ${key}"${body ? `, ["Content-Type"] = "${type}"` : ''}${more.join('')} }
request = function()
  n = n + 1
  return wrk.format("${method}", (string.gsub(${long(path)}, "%%d", tostring(n % ${among}))), headers, ${body ? `(string.gsub(${long(body)}, "%%d", tostring(n)))` : 'nil'})
end
done = function(summary) io.write(string.format("\\nRESULT %d %d %d\\n", summary.requests, summary.duration, summary.errors.status + summary.errors.read + summary.errors.timeout)) end
`,
  )
  const args = ['-t1', `-c${connections}`, `-d${seconds}s`, '-s', script, url]
  // The script contains the key, so it is always deleted.
  const { stdout: output } = await promisify(execFile)('wrk', args, signal ? { signal } : {}).finally(() =>
    rmSync(directory, { recursive: true, force: true }),
  )
  const [, requests = 0, microseconds = 1, errors = 0] = (/RESULT (\d+) (\d+) (\d+)/.exec(output) ?? []).map(Number)
  return { perSecond: requests / (microseconds / 1e6), requests, errors }
}

async function own({
  url,
  key,
  method = 'GET',
  path = '',
  body,
  type = 'application/json',
  headers: more = {},
  connections,
  seconds,
  among = 1000,
}: Load): Promise<Rate> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections, rejectUnauthorized: false })
  const until = performance.now() + seconds * 1000
  let number = Date.now() * 1000
  let done = 0
  let errors = 0
  const one = () =>
    new Promise<void>(resolve => {
      number++
      const headers = { Authorization: `Bearer ${key}`, ...(body ? { 'Content-Type': type } : {}), ...more }
      const sent = request(
        url + path.replaceAll('%d', String(number % among)),
        { method, agent, headers },
        response => {
          if ((response.statusCode ?? 500) >= 400) errors++
          response.resume().on('end', resolve)
        },
      )
      sent.on('error', () => {
        errors++
        resolve()
      })
      sent.end(body?.replaceAll('%d', String(number)))
    })
  const lane = async () => {
    while (performance.now() < until) {
      await one()
      done++
    }
  }
  const started = performance.now()
  await Promise.all(Array.from({ length: connections }, lane))
  agent.destroy()
  return { perSecond: done / ((performance.now() - started) / 1000), requests: done, errors }
}
