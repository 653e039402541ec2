// Starting a gateway: the results of --check, readiness, and the log while the management API is unreachable.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { makeAuthority } from '../../src/serving/certificate.ts'
import { exec } from '../support/exec.ts'
import { freePort } from '../support/ports.ts'
import { type Server, startServer } from '../support/server.ts'
import { agentKey, configOf, invite, startGateway } from './gateway-fixture.ts'

const program = join(import.meta.dirname, '../../bin/platform.js')

describe('platform gateway', () => {
  let service: Server
  let directory: string
  before(async () => {
    service = await startServer({ storage: 'memory' })
    directory = mkdtempSync(join(tmpdir(), 'platform-check-'))
  })
  after(async () => {
    await service.stop()
    rmSync(directory, { recursive: true })
  })

  const put = (name: string, text: string) => writeFileSync(join(directory, name), text)
  async function check(over: object) {
    put('service-ca.crt', service.ca)
    put('gateway.yaml', JSON.stringify(configOf(service, { tls: { directory: 'tls' }, ...over })))
    return exec(process.execPath, [program, 'gateway', '--config', join(directory, 'gateway.yaml'), '--check'])
  }

  test('--check reports all problems of the files together', async () => {
    put('empty.key', '\n')
    put('no-ca.crt', 'hello')
    put('policy.yaml', 'kind: Nothing')
    const { code, stderr } = await check({
      issuer: { url: service.https, ca: 'no-ca.crt' },
      service: { keyFile: 'empty.key' },
      tls: { certificate: 'missing.crt', key: 'missing.key' },
      audit: { policy: 'policy.yaml' },
      clusters: [{ name: 'prod', kubeconfig: 'missing.kubeconfig' }],
    })
    assert.equal(code, 2, stderr)
    for (const words of [
      /issuer\.ca: .*no-ca\.crt does not contain a PEM certificate/,
      /service\.keyFile: .*empty\.key is empty/,
      /tls: .*missing\.crt/,
      /audit\.policy: /,
      /cluster prod: cannot read .*missing\.kubeconfig: there is no such file/,
    ])
      assert.match(stderr, words)
  })

  test('problems of the configuration and of the files it names are reported together, by --check and at startup', async () => {
    put('empty.key', '\n')
    const over = {
      listen: 'here',
      lisen: 1,
      service: { keyFile: 'empty.key' },
      issuer: { url: service.https, ca: 7 },
      tls: { certificate: 'missing.crt', key: 'missing.key' },
      clusters: [{ name: 'Prod', kubeconfig: 'missing.kubeconfig' }, { name: 5 }],
    }
    const checked = await check(over)
    const started = await exec(process.execPath, [program, 'gateway', '--config', join(directory, 'gateway.yaml')])
    for (const { code, stderr } of [checked, started]) {
      assert.equal(code, 2, stderr)
      for (const words of [
        /gateway\.yaml:1:\d+: listen must be HOST:PORT/,
        /unknown key lisen/,
        /service\.keyFile: .*empty\.key is empty/,
        /issuer\.ca must be a string/,
        /tls: .*missing\.crt/,
        /clusters\[0\]\.name must consist of lower-case/,
        /cluster Prod: cannot read .*missing\.kubeconfig/,
        /clusters\[1\]\.name must be a string/,
      ])
        assert.match(stderr, words)
    }
    assert.equal(started.stderr, checked.stderr)
  })

  test('--check reports an issuer with another name, or without metadata', async () => {
    put('agent.key', await agentKey(service))
    const { port } = new URL(service.https)
    const other = await check({
      issuer: { url: `https://localhost:${port}`, ca: 'service-ca.crt' },
      service: { keyFile: 'agent.key', url: service.https },
    })
    assert.equal(other.code, 2, other.stderr)
    assert.match(
      other.stderr,
      /issuer\.url: the issuer at https:\/\/localhost:\d+ identifies itself as "https:\/\/127\.0\.0\.1:\d+"/,
    )
    const none = await check({
      issuer: { url: `${service.https}/nowhere`, ca: 'service-ca.crt' },
      service: { keyFile: 'agent.key', url: service.https },
    })
    assert.equal(none.code, 2, none.stderr)
    assert.match(none.stderr, /issuer\.url: the issuer returned 40[14] for its metadata/)
    assert.match(none.stderr, /issuer\.keySet: the issuer returned 40[14] for its key set/)
  })

  test('--check warns about a key with more permissions than a gateway needs', async () => {
    put('agent.key', service.adminKey)
    const { code, stderr, stdout } = await check({})
    assert.equal(code, 0, stderr)
    assert.match(stderr, /^warning: .*service\.keyFile: .* has more permissions than a gateway needs/m)
    assert.match(stdout, /is valid/)
  })

  test('--check reports clusters that reject the credentials, deny impersonation, or are unreachable', async () => {
    put('agent.key', await agentKey(service))
    const clusterAt = (server: string, token: string) => {
      const user = { name: 'a', user: { token } }
      const cluster = { name: 'a', cluster: { server, 'certificate-authority': 'service-ca.crt' } }
      const context = { name: 'a', context: { cluster: 'a', user: 'a' } }
      const whole = { 'current-context': 'a', clusters: [cluster], users: [user], contexts: [context] }
      return JSON.stringify({ apiVersion: 'v1', kind: 'Config', ...whole })
    }
    const there = `${service.https}/kubernetes/management`
    put('fine.json', clusterAt(there, service.adminKey))
    put('refused.json', clusterAt(there, 'plat_nobody'))
    put('nobody.json', clusterAt(there, (await invite(service, 'nobody')).key))
    put('away.json', clusterAt('https://127.0.0.1:1', service.adminKey))
    const away = { name: 'away', kubeconfig: 'away.json' }
    const fine = { name: 'fine', kubeconfig: 'fine.json' }
    const ok = await check({ clusters: [fine] })
    assert.deepEqual([ok.code, ok.stderr], [0, ''])
    const one = await check({ clusters: [fine, away] })
    assert.equal(one.code, 1, one.stderr)
    assert.match(one.stderr, /gateway\.yaml: cluster away: cannot reach https:\/\/127\.0\.0\.1:1: connection refused/)
    assert.equal(one.stdout, '')
    const refused = { name: 'refused', kubeconfig: 'refused.json' }
    const nobody = { name: 'nobody', project: 'web', kubeconfig: 'nobody.json' }
    const all = await check({ clusters: [fine, away, refused], virtualClusters: [nobody] })
    assert.equal(all.code, 2, all.stderr)
    assert.match(all.stderr, /cluster refused rejected the credentials of the gateway/)
    assert.match(
      all.stderr,
      /virtual cluster nobody of project web: the gateway has no permission to impersonate users, groups, userextras\/authentication\.platform\.sh\/key, userextras\/authentication\.platform\.sh\/token on this cluster/,
    )
    assert.match(all.stderr, /cluster away: cannot reach/)
    assert.ok(!all.stderr.includes('plat_nobody'), all.stderr)
  })

  test('--check reports a key that the management API rejects, or that lacks the scope role agent', async () => {
    put('agent.key', await agentKey(service))
    const fine = await check({})
    assert.deepEqual([fine.code, fine.stderr], [0, ''])
    assert.match(fine.stdout, /is valid/)
    put('agent.key', 'plat_nobody')
    const unknown = await check({})
    assert.equal(unknown.code, 2)
    assert.match(unknown.stderr, /service\.keyFile: the management API rejected the access key in .*agent\.key/)
    put('agent.key', (await invite(service, 'nobody')).key)
    const other = await check({})
    assert.equal(other.code, 2)
    assert.match(other.stderr, /service\.keyFile: .* does not have the role platform-gateway/)
  })

  test('--check distinguishes a key without the agent scope from a user without the role, and says how to grant it', async () => {
    const roles = (role: string) => ({ scope: { roles: [{ role }] } })
    put('agent.key', (await invite(service, 'gateway-prod', roles('agent'))).key)
    const unbound = await check({})
    assert.equal(unbound.code, 2)
    assert.match(
      unbound.stderr,
      /service\.keyFile: .*agent\.key does not have the role platform-gateway: .*; to grant it, run kubectl create clusterrolebinding gateway --clusterrole=platform-gateway --user=gateway-prod$/m,
    )
    assert.ok(!unbound.stderr.includes('scope role'), unbound.stderr)
    put('agent.key', (await invite(service, 'admin', roles('metrics-reader'))).key)
    const confined = await check({})
    assert.equal(confined.code, 2)
    assert.match(
      confined.stderr,
      /service\.keyFile: the scope of the access key in .*agent\.key is too narrow .* scope role agent$/m,
    )
    assert.ok(!confined.stderr.includes('clusterrolebinding'), confined.stderr)
  })

  test('--check names the setting of a wrong CA, and exits with 1 if the management API is unreachable', async () => {
    put('agent.key', await agentKey(service))
    put('other-ca.crt', makeAuthority(Date.now()).certificate)
    const wrong = await check({ issuer: { url: service.https, ca: 'other-ca.crt' } })
    assert.equal(wrong.code, 2)
    assert.match(wrong.stderr, /its certificate is not trusted.*issuer\.ca/)
    assert.ok(!wrong.stderr.includes('certificate-authority-data'), wrong.stderr)
    const away = await check({ issuer: { url: `https://127.0.0.1:${await freePort()}`, ca: 'service-ca.crt' } })
    assert.equal(away.code, 1)
    for (const what of ['issuer', 'service'])
      assert.match(
        away.stderr,
        new RegExp(`gateway\\.yaml: ${what}: cannot reach https://127\\.0\\.0\\.1:\\d+: connection refused`),
      )
    assert.equal(away.stdout, '')
  })

  test('it runs with the memory settings of a gateway, in the same process', async () => {
    const gateway = await startGateway(service, {})
    const of = (file: string) => readFileSync(`/proc/${gateway.pid}/${file}`, 'utf8').split('\0')
    try {
      assert.ok(of('cmdline').includes('--max-semi-space-size=16'), of('cmdline').join(' '))
      assert.ok(of('environ').includes('MALLOC_MMAP_THRESHOLD_=32768'))
    } finally {
      await gateway.stop()
    }
  })
})
