// Drives a server with requests and counts the answers: wrk where it is installed, else a generator of our own.

import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export type Load = {
  readonly url: string
  readonly key: string
  readonly method?: string
  /** Lua and JavaScript for the body of the nth request; %d is its number. */
  readonly path?: string
  readonly body?: string
  readonly type?: string
  /** Sent with every request. */
  readonly headers?: { readonly [name: string]: string }
  readonly connections: number
  readonly seconds: number
}

export type Rate = { readonly perSecond: number; readonly errors: number }

const hasWrk = spawnSync('wrk', ['-v']).error === undefined
export const generator = hasWrk ? 'wrk' : 'node'

export const drive = (load: Load): Promise<Rate> => (hasWrk ? wrk(load) : own(load))

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
}: Load): Promise<Rate> {
  const more = Object.entries(headers).map(([name, value]) => `, ["${name}"] = "${value}"`)
  const script = join(mkdtempSync(join(tmpdir(), 'wrk-')), 'load.lua')
  const long = (text: string) => `[==[${text}]==]`
  writeFileSync(
    script,
    `local n = ${Date.now() % 1e9} * 1000
local headers = { ["Authorization"] = "Bearer ${key}"${body ? `, ["Content-Type"] = "${type}"` : ''}${more.join('')} }
request = function()
  n = n + 1
  return wrk.format("${method}", (string.gsub(${long(path)}, "%%d", tostring(n % 1000))), headers, ${body ? `(string.gsub(${long(body)}, "%%d", tostring(n)))` : 'nil'})
end
done = function(summary) io.write(string.format("\\nRESULT %d %d %d\\n", summary.requests, summary.duration, summary.errors.status + summary.errors.read + summary.errors.timeout)) end
`,
  )
  const output = execFileSync('wrk', ['-t1', `-c${connections}`, `-d${seconds}s`, '-s', script, url], {
    encoding: 'utf8',
  })
  const [, requests = 0, microseconds = 1, errors = 0] = (/RESULT (\d+) (\d+) (\d+)/.exec(output) ?? []).map(Number)
  return { perSecond: requests / (microseconds / 1e6), errors }
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
      const sent = request(url + path.replaceAll('%d', String(number % 1000)), { method, agent, headers }, response => {
        if ((response.statusCode ?? 500) >= 400) errors++
        response.resume().on('end', resolve)
      })
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
  return { perSecond: done / ((performance.now() - started) / 1000), errors }
}
