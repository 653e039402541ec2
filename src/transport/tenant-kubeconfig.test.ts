// A kubeconfig supplied by a tenant: it cannot run programs of the host or send files of the host.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KubeconfigError, type KubeconfigOptions, readKubeconfig } from './kubeconfig.ts'

const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: 'aws', args: ['eks'], interactiveMode: 'Never' }
const pem = Buffer.from('-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n').toString('base64')

const config = ({ cluster = {}, user = {}, users = [] as object[] }) =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'one',
    contexts: [{ name: 'one', context: { cluster: 'c', user: 'admin@vc' } }],
    clusters: [{ name: 'c', cluster: { server: 'https://vc.example.org', ...cluster } }],
    users: [{ name: 'admin@vc', user }, ...users],
  })
const options = { file: 'v.yaml', directory: '/home/operator' }
const strict = { side: 'virtual', allowExec: false, allowFiles: false }
const read = (parts: Parameters<typeof config>[0], tenant: KubeconfigOptions['tenant'] = strict) =>
  readKubeconfig(Buffer.from(config(parts)), { ...options, ...(tenant && { tenant }) })
const problemsOf = (parts: Parameters<typeof config>[0], tenant = strict): readonly string[] => {
  try {
    read(parts, tenant)
    return []
  } catch (error) {
    if (error instanceof KubeconfigError) return error.problems
    throw error
  }
}

test('an exec plugin is rejected with its user and command; allowExec allows it', () => {
  assert.deepEqual(problemsOf({ user: { exec } }), [
    'v.yaml: user "admin@vc" runs the command "aws" (exec), but a tenant\'s kubeconfig must not run programs on the host: use a token or a client certificate, or --allow-exec virtual if you trust the file',
  ])
  assert.equal(read({ user: { exec } }, { ...strict, allowExec: true }).exec?.command, 'aws')
  assert.equal(readKubeconfig(Buffer.from(config({ user: { exec } })), options).exec?.command, 'aws')
})

test('an auth provider is rejected with its user and name, whatever is allowed', () => {
  const user = { 'auth-provider': { name: 'gcp', config: { 'cmd-path': '/bin/sh' } } }
  for (const tenant of [strict, { ...strict, allowExec: true, allowFiles: true }])
    assert.match(problemsOf({ user }, tenant).join('\n'), /user "admin@vc" has the auth-provider "gcp"/)
})

test('users of other contexts are ignored', () => {
  assert.deepEqual(problemsOf({ user: { token: 't' }, users: [{ name: 'other', user: { exec } }] }), [])
})

test('file paths are rejected, each with its field; inline data is not; allowFiles allows paths', () => {
  const files = {
    cluster: { 'certificate-authority': '/etc/kubernetes/pki/ca.crt' },
    user: { 'client-certificate': 'c.crt', 'client-key': '../c.key', tokenFile: '/var/run/secrets/token' },
  }
  assert.deepEqual(
    problemsOf(files).map(problem => problem.slice(0, problem.indexOf(', but'))),
    [
      'v.yaml: cluster "c" names the file "/etc/kubernetes/pki/ca.crt" (certificate-authority)',
      'v.yaml: user "admin@vc" names the file "c.crt" (client-certificate)',
      'v.yaml: user "admin@vc" names the file "../c.key" (client-key)',
      'v.yaml: user "admin@vc" names the file "/var/run/secrets/token" (tokenFile)',
    ],
  )
  assert.match(problemsOf(files)[0] ?? '', /use certificate-authority-data, or --allow-files virtual/)
  assert.match(problemsOf(files)[3] ?? '', /use token, or --allow-files virtual/)
  assert.equal(read(files, { ...strict, allowFiles: true }).tokenFile, '/var/run/secrets/token')
  const inside = {
    cluster: { 'certificate-authority-data': pem, 'certificate-authority': 'not-read' },
    user: { 'client-certificate-data': pem, 'client-key-data': pem, token: 't' },
  }
  assert.deepEqual(problemsOf(inside), [])
})

test('a token file is rejected even with a token, because the file would be read', () => {
  assert.equal(problemsOf({ user: { token: 't', tokenFile: '/etc/shadow' } }).length, 1)
})

test('a proxy is rejected: the operator decides how connections leave the host', () => {
  assert.match(
    problemsOf({ cluster: { 'proxy-url': 'http://user:hunter2@10.0.0.1:3128' }, user: { token: 't' } }).join('\n'),
    /cluster "c" sets a proxy \(proxy-url\).*set HTTPS_PROXY/,
  )
  assert.doesNotMatch(problemsOf({ cluster: { 'proxy-url': 'http://u:hunter2@p' } }).join('\n'), /hunter2/)
})

test('fields that stay between the tenant and its own server are allowed', () => {
  const access = read({
    cluster: { 'insecure-skip-tls-verify': true, 'tls-server-name': 'vc' },
    user: { username: 'u', password: 'p' },
  })
  assert.deepEqual([access.insecure, access.serverName, access.username], [true, 'vc', 'u'])
})

test('names from the file cannot break a line of the message or fill the screen', () => {
  const [problem = ''] = problemsOf({ user: { exec: { ...exec, command: `a\nplatform: fine ${'x'.repeat(500)}` } } })
  assert.doesNotMatch(problem, /\n/)
  assert.ok(problem.length < 400)
})
