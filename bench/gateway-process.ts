// A gateway as a separate process in front of a server, and its resource usage. gateway.ts measures it.

import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Server } from './processes.ts'

export const ours = '/apis/management.platform.sh/v1'

/** `built`: the published program. */
export async function startGateway(server: Server, built: string) {
  const directory = mkdtempSync(join(tmpdir(), 'platform-bench-gateway-'))
  const put = (name: string, text: string) => writeFileSync(join(directory, name), text)
  const made = await send(server, `${ours}/ownedaccesskeys`, {
    spec: { user: 'admin', scope: { roles: [{ role: 'agent' }] } },
  })
  put('agent.key', made.spec.key)
  put('ca.crt', readFileSync(join(server.directory, 'ca.crt'), 'utf8'))
  put(
    'gateway.yaml',
    JSON.stringify({
      apiVersion: 'config.platform.sh/v1',
      kind: 'GatewayConfig',
      listen: '127.0.0.1:0',
      tls: { directory: 'tls' },
      issuer: { url: server.url, ca: 'ca.crt' },
      service: { keyFile: 'agent.key' },
      identity: { userPrefix: '' },
      limits: { reads: 5000, share: 100 },
      audit: { log: 'off' },
      clusters: [{ name: 'prod', kubeconfig: join(server.directory, 'admin.kubeconfig') }],
    }),
  )
  const program = join(built, 'bin/platform.js')
  const child = spawn(process.execPath, [program, 'gateway', '--config', join(directory, 'gateway.yaml')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const url = await new Promise<string>(resolve => {
    let text = ''
    child.stdout.on('data', chunk => {
      text += chunk
      const found = /ready: (\S+)/.exec(text)
      if (found) resolve(found[1] as string)
    })
  })
  const stop = () =>
    new Promise<void>(resolve => {
      child.on('exit', () => resolve())
      child.kill('SIGTERM')
    })
  return { url, directory, stop, pid: childOf(child.pid as number) }
}

/** bin/platform.js may have started another Node. */
function childOf(pid: number): number {
  const [child] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')
  return child ? Number(child) : pid
}

// biome-ignore lint/suspicious/noExplicitAny: an arbitrary response
export function send(server: Server, path: string, body: object): Promise<any> {
  return new Promise((resolve, reject) => {
    const headers = { Authorization: `Bearer ${server.key}`, 'Content-Type': 'application/json' }
    const options = { method: 'POST', rejectUnauthorized: false, headers }
    const sent = request(`${server.url}/kubernetes/management${path}`, options, response => {
      let text = ''
      response.setEncoding('utf8').on('data', chunk => {
        text += chunk
      })
      response.on('end', () => resolve(JSON.parse(text)))
    })
    sent.on('error', reject).end(JSON.stringify(body))
  })
}
