// `platform config check` validates the files that settings name, like the server does.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { UsageError } from '../host/command.ts'
import { issueCertificate, makeAuthority } from '../serving/certificate.ts'
import { configCheck } from './config-check.ts'

const full = `apiVersion: config.platform.sh/v1
kind: GatewayConfig
listen: 127.0.0.1:1
issuer: { url: https://platform.example.org }
clusters:
  - { name: prod, kubeconfig: prod.kubeconfig }
spaces: [{}]
`
const internalClient = `apiVersion: config.platform.sh/v1
kind: GatewayConfig
clusters:
  - { name: prod, kubeconfig: prod.kubeconfig }
`
const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{ name: a, cluster: { server: 'https://127.0.0.1:1' } }]
users: [{ name: a, user: { token: x } }]
contexts: [{ name: a, context: { cluster: a, user: a } }]
current-context: a
`

function openFiles(context: TestContext) {
  const directory = mkdtempSync(join(tmpdir(), 'platform-config-'))
  context.after(() => rmSync(directory, { recursive: true }))
  return (name: string, text?: string) => {
    const file = join(directory, name)
    if (text !== undefined) writeFileSync(file, text)
    return file
  }
}

async function problemsOf(args: readonly string[], env: { [name: string]: string } = {}): Promise<string> {
  try {
    await configCheck(args, env)
  } catch (error) {
    assert.ok(error instanceof UsageError, String(error))
    return error.problems.join('\n')
  }
  return ''
}

test('an invalid gateway.yaml is rejected, whether a flag, a variable or the file names it', async context => {
  const file = openFiles(context)
  context.mock.method(console, 'log', () => {})
  const missing = file('none.yaml')
  const given = file('gateway.yaml', full)
  const settings = (named: string) =>
    file('platform.yaml', `apiVersion: config.platform.sh/v1\nkind: ServerConfig\ngateway: { config: ${named} }\n`)
  for (const [named, expected] of [
    [missing, /cannot read \S+none\.yaml: there is no such file/],
    [
      given,
      /gateway\.yaml:3:1: listen is only for a standalone gateway[\s\S]*spaces\[0\]\.name is missing[\s\S]*cannot read \S+prod\.kubeconfig: there is no such file/,
    ],
  ] as const) {
    assert.match(await problemsOf(['--gateway-config', named]), expected)
    assert.match(await problemsOf([], { PLATFORM_GATEWAY_CONFIG: named }), expected)
    assert.match(await problemsOf(['--config', settings(named)]), expected)
  }
})

test('problems of the gateway.yaml and the audit policy are reported together', async context => {
  const file = openFiles(context)
  const args = ['--gateway-config', file('gateway.yaml', full), '--audit-policy', file('none')]
  const problems = await problemsOf(args)
  assert.match(problems, /^audit\.policy: cannot read \S+none: there is no such file$/m)
  assert.match(problems, /listen is only for a standalone gateway/)
  assert.doesNotMatch(await problemsOf([...args, '--audit-log', 'off']), /audit/)
})

test('config check prints the settings if all named files are valid', async context => {
  const file = openFiles(context)
  const log = context.mock.method(console, 'log', () => {})
  file('prod.kubeconfig', kubeconfig)
  const given = file('gateway.yaml', internalClient)
  assert.equal(await problemsOf(['--gateway-config', given]), '')
  assert.match(String(log.mock.calls[0]?.arguments[0]), new RegExp(`^gateway\\.config: ${given}$`, 'm'))
})

test('certificates, keys and the master key are opened: unreadable, mismatching and expired ones are reported', async context => {
  const file = openFiles(context)
  context.mock.method(console, 'log', () => {})
  const year = 365 * 24 * 3600 * 1000
  const authority = makeAuthority(Date.now())
  const [one, two] = [0, 0].map(() => issueCertificate(authority, ['localhost'], Date.now())) as [
    ReturnType<typeof issueCertificate>,
    ReturnType<typeof issueCertificate>,
  ]
  const old = issueCertificate(authority, ['localhost'], Date.now() - 2 * year)
  const tls = (certificate: string, key: string) => ['--tls-cert', certificate, '--tls-key', key]
  const [cert, key] = [file('one.crt', one.certificate), file('one.key', one.key)]
  assert.equal(await problemsOf(tls(cert, key)), '')
  for (const [args, expected] of [
    [tls(file('none.crt'), key), /^tlsCert and tlsKey: cannot read \S+none\.crt: there is no such file$/],
    [tls(cert, file('two.key', two.key)), /^tlsCert and tlsKey: \S+one\.crt and \S+two\.key do not match/],
    [tls(file('old.crt', old.certificate), file('old.key', old.key)), /^tlsCert: \S+old\.crt expired at \d{4}-/],
    [[...tls(cert, key), '--tls-ca', file('none.crt')], /^tlsCa: cannot read \S+none\.crt: there is no such file$/],
    [[...tls(cert, key), '--tls-ca', key], /^tlsCa: \S+one\.key does not contain a PEM certificate$/],
    [['--tls-ca', cert], /^tlsCa requires tlsCert$/],
    [['--master-key', file('none.key')], /^masterKey: cannot read \S+none\.key: there is no such file$/],
    [['--master-key', file('junk.key', 'plat_secret')], /^masterKey: /],
    [['--master-key', 'env:NOT_SET'], /^masterKey: the environment variable NOT_SET is not set$/],
  ] as const) {
    const problems = await problemsOf(args)
    assert.match(problems, expected)
    assert.doesNotMatch(problems, /plat_secret|PRIVATE/)
  }
  const missing = [...tls(file('none.crt'), file('none.key')), '--tls-ca', file('none.ca')]
  const several = await problemsOf([...missing, '--master-key', file('none.master')])
  assert.deepEqual(several.match(/none\.\w+(?=: there is no such file$)/gm), [
    'none.crt',
    'none.key',
    'none.ca',
    'none.master',
  ])
})

test('the files of etcd are opened, with all problems at once', async context => {
  const file = openFiles(context)
  context.mock.method(console, 'log', () => {})
  const authority = makeAuthority(Date.now())
  const issue = (at: number) => issueCertificate(authority, ['localhost'], at)
  const [one, two, old] = [issue(Date.now()), issue(Date.now()), issue(Date.now() - 2 * 365 * 24 * 3600 * 1000)]
  const ca = file('ca.crt', authority.certificate)
  const args = (...[from, cert, key]: [string, string, string]) => [
    ...['--storage', 'etcd', '--etcd-endpoints', 'https://127.0.0.1:2379'],
    ...['--etcd-ca', from, '--etcd-cert', cert, '--etcd-key', key],
  ]
  const [cert, key] = [file('one.crt', one.certificate), file('one.key', one.key)]
  assert.equal(await problemsOf(args(ca, cert, key)), '')
  const none = (name: string) => `cannot read ${file(name)}: there is no such file`
  assert.equal(
    await problemsOf([...args(file('none.ca'), file('none.crt'), file('none.key')), '--audit-policy', file('none')]),
    [
      `audit.policy: ${none('none')}`,
      `etcd.ca: ${none('none.ca')}`,
      `etcd.cert: ${none('none.crt')}`,
      `etcd.key: ${none('none.key')}`,
    ].join('\n'),
  )
  for (const [given, expected] of [
    [args(key, cert, key), /^etcd\.ca: \S+one\.key does not contain a PEM certificate$/],
    [args(ca, cert, file('two.key', two.key)), /^etcd\.cert and etcd\.key: \S+one\.crt and \S+two\.key do not match/],
    [
      args(ca, file('old.crt', old.certificate), file('old.key', old.key)),
      /^etcd\.cert: \S+old\.crt expired at \d{4}-/,
    ],
  ] as const) {
    const problems = await problemsOf(given)
    assert.match(problems, expected)
    assert.doesNotMatch(problems, /PRIVATE/)
  }
})
