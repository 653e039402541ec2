// `platform config check` looks into the files that settings name, as the server does before it serves.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { UsageError } from '../host/command.ts'
import { configCheck } from './config-check.ts'

const full = `apiVersion: config.platform.sh/v1
kind: GatewayConfig
listen: 127.0.0.1:1
issuer: { url: https://platform.example.org }
clusters:
  - { name: prod, kubeconfig: prod.kubeconfig }
spaces: [{}]
`
const inside = `apiVersion: config.platform.sh/v1
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

test('a gateway.yaml that serve would refuse is refused by config check, however it is named', async context => {
  const file = openFiles(context)
  context.mock.method(console, 'log', () => {})
  const missing = file('none.yaml')
  const given = file('gateway.yaml', full)
  const settings = (named: string) =>
    file('platform.yaml', `apiVersion: config.platform.sh/v1\nkind: ServerConfig\ngateway: { config: ${named} }\n`)
  for (const [named, told] of [
    [missing, /cannot read \S+none\.yaml: there is no such file/],
    [
      given,
      /gateway\.yaml:3:1: listen is for a gateway of its own[\s\S]*spaces\[0\]\.name is missing[\s\S]*cannot read \S+prod\.kubeconfig: there is no such file/,
    ],
  ] as const) {
    assert.match(await problemsOf(['--gateway-config', named]), told)
    assert.match(await problemsOf([], { PLATFORM_GATEWAY_CONFIG: named }), told)
    assert.match(await problemsOf(['--config', settings(named)]), told)
  }
})

test('what is wrong with the gateway.yaml and with the audit policy is told at once', async context => {
  const file = openFiles(context)
  const args = ['--gateway-config', file('gateway.yaml', full), '--audit-policy', file('none')]
  const told = await problemsOf(args)
  assert.match(told, /^audit\.policy: cannot read \S+none: there is no such file$/m)
  assert.match(told, /listen is for a gateway of its own/)
  assert.doesNotMatch(await problemsOf([...args, '--audit-log', 'off']), /audit/)
})

test('config check prints the settings where the files that they name can be used', async context => {
  const file = openFiles(context)
  const log = context.mock.method(console, 'log', () => {})
  file('prod.kubeconfig', kubeconfig)
  const given = file('gateway.yaml', inside)
  assert.equal(await problemsOf(['--gateway-config', given]), '')
  assert.match(String(log.mock.calls[0]?.arguments[0]), new RegExp(`^gateway\\.config: ${given}$`, 'm'))
})
