// The arguments of etcd and a Kubernetes API server, as documented, and their addresses. kube-cluster.ts uses it.

import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { issueCertificate, makeAuthority } from '../../src/serving/certificate.ts'
import type { Access } from '../../src/transport/cluster-config.ts'
import { kubeconfigOf } from './kubeconfig.ts'
import { freePort } from './ports.ts'

/** Differences from an API server that allows everything. */
export type KubeWishes = { readonly authorization?: 'AlwaysAllow' | 'RBAC'; readonly flags?: readonly string[] }

/** State that outlives a restart: addresses, keys and credentials. */
export async function prepareKube(directory: string, { authorization = 'AlwaysAllow', flags = [] }: KubeWishes = {}) {
  const [client, peer, port] = [await freePort(), await freePort(), await freePort()]
  const [store, own] = [`http://127.0.0.1:${client}`, `http://127.0.0.1:${peer}`]
  const write = (name: string, text: string) => {
    const file = join(directory, name)
    writeFileSync(file, text, { mode: 0o600 })
    return file
  }
  const token = randomUUID()
  const now = Date.now()
  const authority = makeAuthority(now)
  const { certificate, key } = issueCertificate(authority, ['127.0.0.1'], now)
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const account = write('service-account.key', privateKey.export({ type: 'pkcs1', format: 'pem' }).toString())
  const server = `https://127.0.0.1:${port}`
  const etcdArgs = [
    `--data-dir=${join(directory, 'etcd')}`,
    ...[`--listen-client-urls=${store}`, `--advertise-client-urls=${store}`],
    ...[`--listen-peer-urls=${own}`, `--initial-advertise-peer-urls=${own}`, `--initial-cluster=default=${own}`],
  ]
  const apiserverArgs = [
    `--etcd-servers=${store}`,
    // The address is set explicitly, because the server finds none if there is only loopback. Loopback is not valid for endpoints, so it
    // creates none for itself.
    ...['--bind-address=127.0.0.1', '--advertise-address=127.0.0.1', '--endpoint-reconciler-type=none'],
    `--secure-port=${port}`,
    ...[`--tls-cert-file=${write('tls.crt', certificate)}`, `--tls-private-key-file=${write('tls.key', key)}`],
    `--token-auth-file=${write('tokens.csv', `${token},admin,admin,"system:masters"\n`)}`,
    `--authorization-mode=${authorization}`,
    ...[`--service-account-key-file=${account}`, `--service-account-signing-key-file=${account}`],
    ...['--service-account-issuer=https://kubernetes.default.svc', '--service-cluster-ip-range=10.96.0.0/16'],
    // The service accounts that this plugin requires do not exist here.
    '--disable-admission-plugins=ServiceAccount',
    ...flags,
  ]
  const ca = authority.certificate
  const access: Access = { server, namespace: 'default', insecure: false, ca: { text: ca }, token }
  const kubeconfig = write('kubeconfig', kubeconfigOf(server, { token, ca }))
  return { store, access, kubeconfig, etcdArgs, apiserverArgs }
}
