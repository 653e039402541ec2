// The log of a running gateway: contact with the management API, its own key, and problems of clusters and issuer.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { keys, must, rbac } from '../access/people.ts'
import { kubeconfigOf } from '../support/kubeconfig.ts'
import { type Server, startServer } from '../support/server.ts'
import { eventually } from '../support/wire.ts'
import { type GatewayProcess, invite, startGateway } from './gateway-fixture.ts'

describe('the log of a gateway', { timeout: 120_000 }, () => {
  let service: Server
  before(async () => {
    service = await startServer()
  })
  after(() => service.stop())

  const says = (gateway: GatewayProcess, words: RegExp) =>
    eventually(`it says ${words}`, async () => words.test(gateway.output()))

  test('it is ready after the first contact with the management API; repeated failures are one log line', async t => {
    const door = await openDoor(service.https)
    t.after(() => door.close())
    const secret = 'hush-hush'
    const gateway = await startGateway(
      service,
      {
        service: { url: door.url, keyFile: 'agent.key' },
        issuer: { url: service.https, ca: 'service-ca.crt', keySet: `${door.url}/.well-known/jwks.json` },
        clusters: [{ name: 'broken', kubeconfig: 'slow.json' }],
      },
      { ready: /(rejecting requests until)/, kubeconfig: pluginThatFails(secret) },
    )
    t.after(() => gateway.stop())
    assert.ok(!gateway.output().includes('is ready'), gateway.output())
    await eventually('it has tried some times', async () => door.refused > 8)
    const told = gateway.output().split('\n')
    for (const what of ['fetching the signing keys of the issuer', 'watching revocations']) {
      const lines = told.filter(line => line.includes(`${what} failed`))
      assert.equal(lines.length, 1, lines.join('\n'))
      assert.match(JSON.parse(lines[0] ?? '').msg, /failed, retrying: cannot reach/)
    }
    assert.ok(!gateway.output().includes('"stack"'), gateway.output())
    door.open()
    await eventually('it is ready', async () => /gateway is ready: (\S+)/.test(gateway.output()))
    for (const what of ['fetching the signing keys of the issuer', 'watching revocations'])
      await eventually(`${what} is reported to work`, async () => gateway.output().includes(`${what} recovered after`))
    const url = /gateway is ready: (\S+)/.exec(gateway.output())?.[1] ?? ''
    const ada = await invite(service, 'ada')
    const answer = await gateway.at(url).request('GET', '/kubernetes/cluster/broken/api', { key: await ada.mint() })
    assert.equal(answer.status, 502)
    assert.match(answer.text, /the gateway has no valid credentials for cluster broken/)
    for (const word of [secret, '/bin/sh']) assert.ok(!answer.text.includes(word), answer.text)
    await eventually('its own log says why', async () => gateway.output().includes(secret))
    await must(service.request('DELETE', `${keys}/${ada.name}`))
  })

  test('a management API that comes back is noticed before its next event, and logged', async t => {
    const door = await openDoor(service.https)
    t.after(() => door.close())
    door.open()
    const gateway = await startGateway(service, { service: { url: door.url, keyFile: 'agent.key' } })
    t.after(() => gateway.stop())
    const age = async () =>
      Number(
        /^gateway_revocations_age_seconds (\S+)$/m.exec(await (await fetch(`${gateway.status}/metrics`)).text())?.[1],
      )
    door.shut()
    await says(gateway, /watching revocations failed, retrying: cannot reach/)
    await eventually('a while has gone by', async () => (await age()) > 2)
    door.open()
    await says(gateway, /watching revocations recovered after \d+ s/)
    // The next bookmark, without any event, would come after a minute.
    await eventually('it is heard', async () => (await age()) < 2)
  })

  test('a rejected key of the gateway is logged with its file; clients do not see that error as theirs', async t => {
    const body = { spec: { user: 'admin', scope: { roles: [{ role: 'agent' }] } } }
    const { metadata, spec } = await must(service.request('POST', keys, { body }))
    const keyFile = join(mkdtempSync(join(tmpdir(), 'platform-own-')), 'own.key')
    t.after(() => rmSync(dirname(keyFile), { recursive: true }))
    writeFileSync(keyFile, spec.key)
    const ada = await invite(service, 'bea')
    const gateway = await startGateway(service, { service: { keyFile } })
    t.after(() => gateway.stop())
    await must(service.request('DELETE', `${keys}/${metadata.name}`))
    await says(
      gateway,
      /watching revocations failed.* the management API rejected the access key in \S+own\.key \(service\.keyFile\): /,
    )
    const { status, text } = await gateway.request('GET', '/kubernetes/cluster/prod/api', { key: ada.key })
    assert.equal(status, 503)
    assert.match(text, /rejected the gateway's own access key; ask the operator/)
    assert.ok(!text.includes('deleted'), text)
  })

  test('the results of --check for clusters and issuer are logged at startup and after a change', async t => {
    const nobody = await invite(service, 'half')
    const name = 'half-impersonator'
    const rules = [{ apiGroups: [''], resources: ['users'], verbs: ['impersonate'] }]
    await must(service.request('POST', `${rbac}/clusterroles`, { body: { metadata: { name }, rules } }))
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name }
    const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'half' }]
    await must(
      service.request('POST', `${rbac}/clusterrolebindings`, { body: { metadata: { name }, roleRef, subjects } }),
    )
    const server = `${service.https}/kubernetes/management`
    const half = { name: 'half', kubeconfig: 'slow.json' }
    const wrong =
      /"level":50.*cluster half: the gateway has no permission to impersonate groups, userextras\S+, userextras\S+ on this cluster/g
    const kubeconfig = kubeconfigOf(server, { token: nobody.key, ca: service.ca })
    const gateway = await startGateway(service, { clusters: [half] }, { kubeconfig })
    t.after(() => gateway.stop())
    await says(gateway, wrong)
    gateway.write({ clusters: [half], limits: { reads: 100 } })
    await eventually('it is logged again', async () => gateway.output().match(wrong)?.length === 2)
    const called = service.https.replace('127.0.0.1', 'localhost')
    gateway.write({ clusters: [half], issuer: { url: called, ca: 'service-ca.crt' } })
    await says(
      gateway,
      /reload failed .*keeping the previous configuration: .*issuer\.url: the issuer at https:\/\/localhost:\d+ identifies itself as/,
    )
    const misled = await startGateway(service, { issuer: { url: called, ca: 'service-ca.crt' } })
    t.after(() => misled.stop())
    await says(misled, /"level":50.*issuer\.url: the issuer at https:\/\/localhost:\d+ identifies itself as/)
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
    shut() {
      state.isOpen = false
      for (const socket of sockets) socket.destroy()
    },
    close() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}
