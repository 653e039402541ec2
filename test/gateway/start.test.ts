// Starting a gateway: what --check finds, when it says that it is ready, and what it tells while the service is away.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { makeAuthority } from '../../src/serving/certificate.ts'
import { keys, must } from '../access/people.ts'
import { exec } from '../support/exec.ts'
import { type Server, startServer } from '../support/server.ts'
import { eventually } from '../support/wire.ts'
import { agentKey, configOf, invite, startGateway } from './stage.ts'

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

  test('--check tells everything that is wrong with the files at once', async () => {
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
      /issuer\.ca: .*no-ca\.crt holds no certificate/,
      /service\.keyFile: .*empty\.key is empty/,
      /tls: .*missing\.crt/,
      /audit\.policy: /,
      /cluster prod: cannot read .*missing\.kubeconfig/,
    ])
      assert.match(stderr, words)
  })

  test('--check asks the service, and tells a key that it does not take or that is no agent’s', async () => {
    put('agent.key', await agentKey(service))
    const fine = await check({})
    assert.deepEqual([fine.code, fine.stderr], [0, ''])
    assert.match(fine.stdout, /can be used/)
    put('agent.key', 'plat_nobody')
    const unknown = await check({})
    assert.equal(unknown.code, 2)
    assert.match(unknown.stderr, /service\.keyFile: the service does not take the access key in .*agent\.key/)
    put('agent.key', (await invite(service, 'nobody')).key)
    const other = await check({})
    assert.equal(other.code, 2)
    assert.match(other.stderr, /service\.keyFile: .* may not .*scope role agent/)
  })

  test('--check names the setting where the CA is another one, and warns where the service cannot be reached', async () => {
    put('agent.key', await agentKey(service))
    put('other-ca.crt', makeAuthority(Date.now()).certificate)
    const wrong = await check({ issuer: { url: service.https, ca: 'other-ca.crt' } })
    assert.equal(wrong.code, 2)
    assert.match(wrong.stderr, /its certificate is not trusted.*issuer\.ca/)
    assert.ok(!wrong.stderr.includes('certificate-authority-data'), wrong.stderr)
    const closed = createServer().listen(0, '127.0.0.1')
    await new Promise(resolve => closed.once('listening', resolve))
    const { port } = closed.address() as { port: number }
    await new Promise(resolve => closed.close(resolve))
    const away = await check({ issuer: { url: `https://127.0.0.1:${port}`, ca: 'service-ca.crt' } })
    assert.equal(away.code, 0)
    assert.match(away.stderr, /^warning: .*cannot reach https:\/\/127\.0\.0\.1:\d+: nobody listens there/m)
    assert.match(away.stdout, /can be used/)
  })

  test('it is ready when it has heard from the service and not before; failures are told in one line, and not again and again', async () => {
    const door = await openDoor(service.https)
    const secret = 'hush-hush'
    const gateway = await startGateway(
      service,
      {
        service: { url: door.url, keyFile: 'agent.key' },
        issuer: { url: service.https, ca: 'service-ca.crt', keySet: `${door.url}/.well-known/jwks.json` },
        clusters: [{ name: 'broken', kubeconfig: 'slow.json' }],
      },
      { ready: /(refuses everything until)/, kubeconfig: pluginThatFails(secret) },
    )
    assert.ok(!gateway.output().includes('is ready'), gateway.output())
    await eventually('it has tried some times', async () => door.refused > 8)
    const told = gateway.output().split('\n')
    for (const what of ['fetching the keys of the issuer', 'following revocations']) {
      const lines = told.filter(line => line.includes(`${what} failed`))
      assert.equal(lines.length, 1, lines.join('\n'))
      assert.match(JSON.parse(lines[0] ?? '').msg, /failed; trying again: cannot reach/)
    }
    assert.ok(!gateway.output().includes('"stack"'), gateway.output())
    door.open()
    await eventually('it is ready', async () => /gateway is ready: (\S+)/.test(gateway.output()))
    const url = /gateway is ready: (\S+)/.exec(gateway.output())?.[1] ?? ''
    const ada = await invite(service, 'ada')
    const answer = await gateway.at(url).request('GET', '/kubernetes/cluster/broken/api', { key: await ada.mint() })
    assert.equal(answer.status, 502)
    assert.match(answer.text, /the gateway has no credentials for cluster broken/)
    for (const word of [secret, '/bin/sh']) assert.ok(!answer.text.includes(word), answer.text)
    await eventually('its own log says why', async () => gateway.output().includes(secret))
    await must(service.request('DELETE', `${keys}/${ada.name}`))
    await gateway.stop()
    door.close()
  })
})

const pluginThatFails = (words: string) => {
  const exec = {
    apiVersion: 'client.authentication.k8s.io/v1',
    command: '/bin/sh',
    args: ['-c', `echo ${words} >&2; exit 3`],
    interactiveMode: 'Never',
  }
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'a',
    contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
    clusters: [{ name: 'a', cluster: { server: 'https://127.0.0.1:1' } }],
    users: [{ name: 'a', user: { exec } }],
  })
}

/** A way to the service that is shut at first. */
async function openDoor(to: string) {
  const sockets = new Set<Socket>()
  const state = { isOpen: false, refused: 0 }
  const server = createServer(socket => {
    socket.on('error', () => {})
    if (!state.isOpen) {
      state.refused++
      return void socket.destroy()
    }
    const { hostname, port } = new URL(to)
    const other = connect(Number(port), hostname)
    for (const one of [socket, other]) {
      sockets.add(one)
      one
        .on('error', () => {})
        .on('close', () => {
          socket.destroy()
          other.destroy()
        })
    }
    socket.pipe(other).pipe(socket)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `https://127.0.0.1:${(server.address() as { port: number }).port}`,
    get refused() {
      return state.refused
    },
    open() {
      state.isOpen = true
    },
    close() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}
