// Typical kubeconfigs: contexts, all kinds of credentials, and all possible problems.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inClusterAccess, isInCluster } from './in-cluster.ts'
import { KubeconfigError, readKubeconfig } from './kubeconfig.ts'

const pem = Buffer.from('-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n').toString('base64')

const config = (over: { cluster?: object; user?: object; context?: object } = {}) =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'one',
    contexts: [
      { name: 'one', context: { cluster: 'c', user: 'u', ...over.context } },
      { name: 'two', context: { cluster: 'c', user: 'nobody' } },
    ],
    clusters: [{ name: 'c', cluster: { server: 'https://host:6443/', ...over.cluster } }],
    users: [{ name: 'u', user: { ...over.user } }],
  })
const read = (text: string, context?: string) =>
  readKubeconfig(Buffer.from(text), { file: 'kubeconfig', directory: '/home/me', context })

test('the chosen context has server, namespace and credentials', () => {
  const access = read(config({ context: { namespace: 'team' }, user: { token: 'secret' } }))
  assert.deepEqual(access, { server: 'https://host:6443', insecure: false, namespace: 'team', token: 'secret' })
})

test('data takes precedence over files, a token file over a token, and files are relative to the kubeconfig', () => {
  const access = read(
    config({
      cluster: { 'certificate-authority-data': pem, 'certificate-authority': 'ca.crt' },
      user: { token: 'secret', tokenFile: 'token', 'client-certificate': '/abs/c.crt', 'client-key': 'c.key' },
    }),
  )
  assert.match('text' in (access.ca ?? {}) ? (access.ca as { text: string }).text : '', /BEGIN CERTIFICATE/)
  assert.equal(access.token, undefined)
  assert.equal(access.tokenFile, '/home/me/token')
  assert.deepEqual([access.certificate, access.key], [{ file: '/abs/c.crt' }, { file: '/home/me/c.key' }])
})

test('all problems are reported together, without secrets', () => {
  const bad = config({
    cluster: {
      server: 'host',
      'insecure-skip-tls-verify': true,
      'certificate-authority': 'ca',
      'proxy-url': 'socks5://x',
    },
    user: {
      token: 'hunter2',
      'client-key-data': Buffer.from('hunter2').toString('base64'),
      'client-certificate': 'c',
      'auth-provider': { name: 'gcp' },
      exec: { apiVersion: 'client.authentication.k8s.io/v1alpha1', args: [1], interactiveMode: 'Always' },
    },
  })
  assert.throws(
    () => read(bad),
    (error: unknown) => {
      assert.ok(error instanceof KubeconfigError)
      assert.deepEqual(error.problems, [
        'kubeconfig: the cluster requires a server URL such as https://host:6443',
        'kubeconfig: insecure-skip-tls-verify and certificate-authority cannot be combined',
        'kubeconfig: client-key-data must be base64-encoded PEM',
        'kubeconfig: client-certificate and client-key must be set together',
        'kubeconfig: proxy-url must start with http:// or https://',
        'kubeconfig: auth-provider is no longer supported, as in kubectl: use an exec plugin instead',
        'kubeconfig: exec.apiVersion must be client.authentication.k8s.io/v1 or v1beta1',
        'kubeconfig: exec.command is missing',
        'kubeconfig: exec.args must be a list of strings',
        'kubeconfig: exec.interactiveMode Always requires a terminal, which is not available here: use an exec plugin that does not prompt',
      ])
      return true
    },
  )
})

test('a missing context, cluster or user is reported, with the existing ones', () => {
  assert.throws(() => read(config(), 'three'), /unknown context "three"; known contexts: "one", "two"/)
  assert.throws(
    () => read(config(), 'two'),
    /the context "two" refers to the user "nobody", which does not exist in this file/,
  )
  assert.throws(() => read('sync: {toHost: {}}'), /is not a kubeconfig: it has neither clusters nor contexts nor users/)
  assert.throws(() => read('{}'), /no context is selected: set current-context, or choose one of none/)
  assert.throws(() => read('[]'), /is not a kubeconfig: it must be a map/)
  assert.throws(() => read('a: ['), /is not a kubeconfig: line 1/)
})

test('in a pod the service account is used; outside of one the error says what is missing', () => {
  const env = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' }
  const files: { [file: string]: string } = { '/sa/token': 't', '/sa/namespace': 'team\n' }
  const inside = { env, readText: (file: string) => files[file], directory: '/sa' }
  assert.equal(isInCluster(inside), true)
  assert.deepEqual(inClusterAccess(inside), {
    server: 'https://[fd00::1]:443',
    namespace: 'team',
    ca: { file: '/sa/ca.crt' },
    insecure: false,
    tokenFile: '/sa/token',
  })
  assert.throws(() => inClusterAccess({ env: {}, readText: () => undefined }), /not running in a pod/)
})
