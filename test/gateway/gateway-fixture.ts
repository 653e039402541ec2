// The fixture of gateway tests: the management API and clusters behind gateways, as separate programs, and invited users.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { issueCertificate, makeAuthority } from '../../src/serving/certificate.ts'
import { keys, must, ours } from '../access/people.ts'
import { closeAll } from '../support/close-all.ts'
import { kubeconfigOf } from '../support/kubeconfig.ts'
import { type Answer, openRequests, type RequestOptions } from '../support/request.ts'
import { type Server, startServer } from '../support/server.ts'

const program = join(import.meta.dirname, '../../bin/platform.js')
const within = 60_000

export const authority = makeAuthority(Date.now())

export type GatewayProcess = {
  readonly url: string
  /** Plain HTTP: health and metrics. */
  readonly status: string
  readonly directory: string
  readonly config: string
  readonly pid: number
  output(): string
  request(method: string, path: string, options?: RequestOptions): Promise<Answer>
  watch: Server['watch']
  /** The same, where it was not known yet where it listens. */
  at(url: string): Pick<GatewayProcess, 'request' | 'watch'>
  write(config: object): void
  stop(): Promise<void>
}

/** The common configuration of the gateways; `over` overrides it. */
export function configOf(service: Pick<Server, 'https'>, over: object): object {
  return {
    apiVersion: 'config.platform.sh/v1',
    kind: 'GatewayConfig',
    listen: '127.0.0.1:0',
    status: '127.0.0.1:0',
    tls: { certificate: 'tls.crt', key: 'tls.key' },
    issuer: { url: service.https, ca: 'service-ca.crt' },
    service: { keyFile: 'agent.key' },
    audit: { log: 'audit.log' },
    ...over,
  }
}

export async function agentKey(service: Server): Promise<string> {
  const body = { spec: { user: 'admin', scope: { roles: [{ role: 'agent' }] } } }
  return (await must(service.request('POST', keys, { body }))).spec.key
}

export type Starting = {
  /** The access key of the gateway; default: one with the scope role agent. */
  readonly key?: string | undefined
  /** The address of the cluster of slow.json, or the content of that file. */
  readonly slow?: string
  readonly kubeconfig?: string
  /** The condition to wait for. */
  readonly ready?: RegExp
  /** Further arguments of the program. */
  readonly args?: readonly string[]
}

export async function startGateway(service: Server, over: object, starting: Starting = {}): Promise<GatewayProcess> {
  const { slow = '', kubeconfig, ready = /gateway is ready: (\S+) (\S+)$/m, args = [] } = starting
  const directory = mkdtempSync(join(tmpdir(), 'platform-gateway-'))
  const put = (name: string, text: string) => writeFileSync(join(directory, name), text)
  const pair = issueCertificate(authority, ['localhost', '127.0.0.1'], Date.now())
  put('tls.crt', pair.certificate)
  put('tls.key', pair.key)
  put('service-ca.crt', service.ca)
  put('agent.key', `${starting.key ?? (await agentKey(service))}\n`)
  put('slow.json', kubeconfig ?? kubeconfigOf(slow))
  const config = join(directory, 'gateway.yaml')
  const write = (wanted: object) => writeFileSync(config, JSON.stringify(configOf(service, wanted)))
  write(over)
  const { child, found, output } = await start(['gateway', '--config', config, ...args], ready)
  const leave = () => {
    child.kill('SIGKILL')
    rmSync(directory, { recursive: true, force: true })
  }
  process.once('exit', leave)
  const [url = '', status = ''] = found
  const at = (base: string) => openRequests({ base, ca: authority.certificate, key: '' })
  return {
    url,
    status,
    directory,
    config,
    pid: child.pid ?? 0,
    output,
    write,
    at,
    ...at(url),
    async stop() {
      child.kill('SIGTERM')
      const timer = setTimeout(() => child.kill('SIGKILL'), within)
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
      clearTimeout(timer)
      process.off('exit', leave)
      rmSync(directory, { recursive: true, force: true })
      assert.equal(child.exitCode, 0, output())
    },
  }
}

type Started = { readonly child: ChildProcess; readonly found: readonly string[]; output(): string }

function start(args: readonly string[], look: RegExp): Promise<Started> {
  const child = spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  let printed = ''
  return new Promise((resolve, reject) => {
    const fail = (why: string) => reject(new Error(`the gateway ${why}; it printed:\n${printed}`))
    const timer = setTimeout(() => {
      child.kill('SIGKILL')
      fail('was not ready in time')
    }, within)
    child.on('exit', code => {
      clearTimeout(timer)
      fail(`ended with ${code}`)
    })
    const take = (chunk: Buffer) => {
      printed += chunk
      const found = look.exec(printed)
      if (!found) return
      clearTimeout(timer)
      resolve({ child, found: found.slice(1), output: () => printed })
    }
    child.stdout.on('data', take)
    child.stderr.on('data', take)
  })
}

export type GatewayStage = {
  readonly service: Server
  readonly clusters: readonly Server[]
  readonly gateways: readonly GatewayProcess[]
  invite(user: string, spec?: object): Promise<Person>
  close(): Promise<void>
}

export type Person = {
  readonly user: string
  readonly key: string
  readonly name: string
  /** A token of theirs. */
  mint(spec?: object): Promise<string>
}

/** A gateway beside each cluster: `prod` behind the first, `dev` behind the second. */
export async function openGatewayStage(
  names: readonly string[] = ['prod', 'dev'],
  over: object = {},
): Promise<GatewayStage> {
  const [service, ...clusters] = await Promise.all([
    startServer({ storage: 'memory' }),
    ...names.map(() => startServer({ storage: 'memory' })),
  ])
  const gateways = await Promise.all(
    clusters.map((cluster, index) =>
      startGateway(service as Server, {
        clusters: [{ name: names[index], kubeconfig: cluster.kubeconfig }],
        virtualClusters: [{ name: 'vc', project: 'web', kubeconfig: cluster.kubeconfig }],
        spaces: [{ name: 'room', project: 'web', cluster: names[index], namespace: 'team-a' }],
        ...over,
      }),
    ),
  )
  return {
    service: service as Server,
    clusters,
    gateways,
    invite: (user, spec = {}) => invite(service as Server, user, spec),
    close: () =>
      closeAll(
        () => Promise.all(gateways.map(one => one.stop())),
        () => Promise.all([service as Server, ...clusters].map(one => one.stop())),
      ),
  }
}

export async function invite(service: Server, user: string, spec: object = {}): Promise<Person> {
  const body = { metadata: { generateName: `${user}-` }, spec: { user, ...spec } }
  const made = await must(service.request('POST', keys, { body }))
  const { key } = made.spec
  return {
    user,
    key,
    name: made.metadata.name,
    mint: async (wanted = {}) =>
      (await must(service.request('POST', `${ours}/directclusterendpointtokens`, { key, body: { spec: wanted } })))
        .status.token,
  }
}

/** A header of 1 MiB, which ends the connection. */
export function sendTooMuch(url: string, ca: string): Promise<void> {
  const session = connect(url, { ca, servername: 'localhost', maxSendHeaderBlockLength: 2 * 1024 * 1024 })
  session.on('error', () => {})
  const ask = (authorization: string) =>
    session
      .request({ ':path': '/kubernetes/cluster/prod/api', authorization })
      .on('error', () => {})
      .resume()
  // The first one of a connection would be answered.
  ask('Bearer short').on('close', () => ask(`Bearer ${'A'.repeat(1024 * 1024)}`))
  return new Promise(resolve => session.on('close', resolve))
}
