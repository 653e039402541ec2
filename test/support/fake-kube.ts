// A fake etcd and kube-apiserver, for machines without the real ones. Accepts only their documented flags, with the same requirements.
// It serves what the suites need. kube-cluster.test.ts starts it with: ROLE FLAGS…

import { appendFileSync, mkdirSync } from 'node:fs'
import { createServer } from 'node:http'

/** From the reference pages of both programs, the flags that are used here. */
const documented: { readonly [role: string]: readonly string[] } = {
  etcd: [
    ...['name', 'data-dir', 'listen-client-urls', 'advertise-client-urls', 'listen-peer-urls', 'log-level'],
    ...['initial-advertise-peer-urls', 'initial-cluster', 'initial-cluster-state', 'unsafe-no-fsync'],
  ],
  apiserver: [
    ...['etcd-servers', 'bind-address', 'advertise-address', 'secure-port', 'cert-dir', 'token-auth-file'],
    ...['authorization-mode', 'service-account-key-file', 'service-account-signing-key-file'],
    ...['service-account-issuer', 'service-cluster-ip-range', 'disable-admission-plugins', 'endpoint-reconciler-type'],
    ...['enable-admission-plugins', 'client-ca-file', 'tls-cert-file', 'tls-private-key-file', 'allow-privileged', 'v'],
  ],
}

const [, , role = '', ...args] = process.argv
const flags = new Map(args.map(readFlag))
// The log shows how often it ran, and that no other binary was used.
if (process.env['FAKE_KUBE_LOG']) appendFileSync(process.env['FAKE_KUBE_LOG'], `${role}\n`)
if (role === 'etcd') etcd()
// etcd is small and started often.
else await (await import('./fake-apiserver.ts')).serveApi(flag, refuse)

function readFlag(text: string): [string, string] {
  const [, name = '', value = ''] = /^--([a-z-]+)=(.*)$/s.exec(text) ?? refuse(`${text} is not a flag`)
  if (!documented[role]?.includes(name)) refuse(`unknown flag: --${name}`)
  return [name, value]
}

function refuse(why: string): never {
  console.error(`${role}: ${why}`)
  process.exit(1)
}

function flag(name: string): string {
  return flags.get(name) ?? refuse(`--${name} must be set`)
}

/** etcd keeps the data, like the real one, and returns its address. `since` is when it first reported healthy. */
function etcd(): void {
  const directory = flag('data-dir')
  mkdirSync(directory, { recursive: true })
  const [cluster, name] = [flag('initial-cluster'), flags.get('name') ?? 'default']
  if (cluster !== `${name}=${flag('initial-advertise-peer-urls')}`)
    refuse(`--initial-cluster has ${cluster}, and must have ${name} with --initial-advertise-peer-urls`)
  if (flag('listen-client-urls') !== flag('advertise-client-urls')) refuse('clients would be sent elsewhere')
  const { port, hostname } = new URL(flag('listen-client-urls'))
  let since: number | undefined
  createServer((_, response) => {
    since ??= Date.now()
    response.end(JSON.stringify({ health: 'true', since, directory }))
  }).listen(Number(port), hostname)
}
