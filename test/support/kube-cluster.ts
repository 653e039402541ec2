// Real Kubernetes API servers for the syncer's suites, where KUBE_APISERVER and ETCD name binaries. cluster.ts asks for them.

import { type ChildProcess, spawn } from 'node:child_process'
import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Access } from '../../src/kubeconfig/access.ts'
import { openTransport } from '../../src/kubeconfig/transport.ts'

const [apiserver, etcd] = [process.env['KUBE_APISERVER'], process.env['ETCD']]
/** Without them the suites run against this project's own server. */
export const isKube = Boolean(apiserver && etcd)

/** Namespaces that the suites speak of; real servers want them made first. */
const namespaces = ['team', 'team-default', 'other', 'c', 'b-x-c']
const within = Number(process.env['KUBE_WITHIN'] ?? 60_000)
const mostSaid = 40

/** Lives until the test process ends. */
export async function startKube(): Promise<Access> {
  const directory = mkdtempSync(join(tmpdir(), 'platform-kube-'))
  const children: ChildProcess[] = []
  process.once('exit', () => {
    for (const child of children) child.kill('SIGKILL')
    rmSync(directory, { recursive: true, force: true })
  })
  const said: string[] = []
  const run = (file: string, args: readonly string[]) => {
    const child = spawn(file, args, { stdio: ['ignore', 'ignore', 'pipe'] })
    child.stderr.on('data', (chunk: Buffer) => {
      said.push(...chunk.toString().split('\n').filter(Boolean))
      said.splice(0, said.length - mostSaid)
    })
    child.on('error', error => said.push(error.message))
    child.on('exit', code => said.push(`${file} ended with ${code}`))
    child.unref()
    ;(child.stderr as Socket).unref()
    children.push(child)
  }
  const [client, peer, port] = [await freePort(), await freePort(), await freePort()]
  const store = `http://127.0.0.1:${client}`
  const own = `http://127.0.0.1:${peer}`
  run(etcd as string, [
    `--data-dir=${join(directory, 'etcd')}`,
    ...[`--listen-client-urls=${store}`, `--advertise-client-urls=${store}`],
    ...[`--listen-peer-urls=${own}`, `--initial-advertise-peer-urls=${own}`, `--initial-cluster=default=${own}`],
  ])
  const token = randomUUID()
  const [tokens, key] = [join(directory, 'tokens.csv'), join(directory, 'service-account.key')]
  writeFileSync(tokens, `${token},admin,admin,"system:masters"\n`, { mode: 0o600 })
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  writeFileSync(key, privateKey.export({ type: 'pkcs1', format: 'pem' }), { mode: 0o600 })
  run(apiserver as string, [
    `--etcd-servers=${store}`,
    // Told where it is: where there is only loopback it finds no address of its own. And as that is no address for
    // endpoints, it makes none for itself.
    ...['--bind-address=127.0.0.1', '--advertise-address=127.0.0.1', '--endpoint-reconciler-type=none'],
    ...[`--secure-port=${port}`, `--cert-dir=${join(directory, 'certificates')}`],
    ...[`--token-auth-file=${tokens}`, '--authorization-mode=AlwaysAllow'],
    ...[`--service-account-key-file=${key}`, `--service-account-signing-key-file=${key}`],
    ...['--service-account-issuer=https://kubernetes.default.svc', '--service-cluster-ip-range=10.96.0.0/16'],
    '--disable-admission-plugins=ServiceAccount',
  ])
  const access = { server: `https://127.0.0.1:${port}`, namespace: 'default', insecure: true, token }
  await makeNamespaces(access).catch(error => {
    throw new Error(`${(error as Error).message}; what they said last:\n${said.join('\n')}`)
  })
  return access
}

async function makeNamespaces(access: Access): Promise<void> {
  const transport = openTransport(access, { env: {}, now: Date.now })
  const end = Date.now() + within
  for (const name of ['default', ...namespaces])
    for (;;) {
      const body = JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
      const init = { method: 'POST', body, headers: { 'Content-Type': 'application/json' } }
      const status = await transport.fetch(`${access.server}/api/v1/namespaces`, init).then(
        answer => answer.status,
        () => 0,
      )
      if (status === 201 || status === 409) break
      if (Date.now() > end) throw new Error(`the API server was not ready in time; its last answer was ${status}`)
      await pause(200)
    }
  transport.close()
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise<void>(resolve => server.close(() => resolve()))
  return port
}
