// One key cannot starve another, over real sockets: in concurrent requests, in open watches, and in request rate.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { after, describe, test } from 'node:test'
import { type Server, startServer } from '../support/server.ts'
import { eventually, group, openWire } from '../support/wire.ts'

const keys = '/apis/management.platform.sh/v1/ownedaccesskeys'
const teams = '/apis/management.platform.sh/v1/teams'

async function open(...args: string[]) {
  const server = await startServer({ storage: 'memory', args })
  const flood = await server.request('POST', keys, { body: { spec: { user: 'flood' } } })
  await allow(server, 'flood')
  return { server, flood: flood.body.spec.key as string }
}

const allow = (server: Server, user: string) =>
  server.request('POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
    body: {
      metadata: { name: user },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'platform-admin' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
    },
  })

/** A request whose body never ends, or whose answer never does: it stays under way until it is destroyed. */
function hang(server: Server, key: string, method: string, path: string, headers: { [name: string]: string } = {}) {
  const authorization = `Bearer ${key}`
  const call = request(`${server.https}${path}`, {
    method,
    agent: false,
    ca: server.ca,
    headers: { authorization, ...headers },
  })
  call.on('error', () => {})
  return call
}
const codeOf = async (call: ClientRequest) => ((await once(call, 'response')) as [IncomingMessage])[0].statusCode

describe('a key that floods', () => {
  const started: Server[] = []
  after(() => Promise.all(started.map(server => server.stop())))

  test('gets only its share of the write slots; another key can write', async () => {
    const { server, flood } = await open('--limits-writes', '8', '--limits-share', '50')
    started.push(server)
    const half = { 'content-type': 'application/json', 'content-length': '1000' }
    const held = Array.from({ length: 4 }, () => hang(server, flood, 'POST', `${group}/teams`, half))
    for (const call of held) call.write('{')
    const wire = openWire(server)
    await eventually('four writes are in flight', async () =>
      /^apiserver_current_inflight_requests\{request_kind="mutating"\} 4$/m.test((await wire('/metrics')).text),
    )
    const fifth = await server.request('POST', teams, { key: flood, body: { metadata: { name: 'fifth' } } })
    assert.equal(fifth.status, 429, fifth.text)
    for (let index = 0; index < 20; index++) {
      const made = await server.request('POST', teams, { body: { metadata: { name: `calm-${index}` } } })
      assert.equal(made.status, 201, made.text)
    }
    for (const call of held) call.destroy()
  })

  test('gets only its share of the watch slots; another key can watch', async () => {
    const { server, flood } = await open('--limits-watches', '4', '--limits-share', '50')
    started.push(server)
    const watch = (key: string) => {
      const call = hang(server, key, 'GET', `${group}/teams?watch=true`)
      call.end()
      return call
    }
    const held = [watch(flood), watch(flood)]
    assert.deepEqual(await Promise.all(held.map(codeOf)), [200, 200])
    const third = watch(flood)
    assert.equal(await codeOf(third), 429)
    const calm = watch(server.adminKey)
    assert.equal(await codeOf(calm), 200)
    for (const call of [...held, third, calm]) call.destroy()
  })

  test('gets 429 above its rate, also while impersonating; another key does not', async () => {
    const { server, flood } = await open('--limits-rate', '1', '--limits-burst', '30')
    started.push(server)
    const as = (name: string) => ({ 'impersonate-user': name, 'impersonate-group': 'system:authenticated' })
    const flooding = Array.from({ length: 120 }, (_, index) =>
      server.request('GET', keys, { key: flood, headers: as(`someone-${index}`) }),
    )
    const calm = Array.from({ length: 10 }, () => server.request('GET', `${teams}/none`))
    const codes = (await Promise.all(flooding)).map(({ status }) => status)
    assert.deepEqual(
      (await Promise.all(calm)).map(({ status }) => status),
      new Array(10).fill(404),
    )
    const passed = codes.filter(code => code === 200).length
    assert.ok(passed >= 25 && passed < 60, `${passed} of 120 passed`)
    assert.equal(codes.filter(code => code === 429).length, 120 - passed)
    const { text } = await openWire(server)('/metrics')
    assert.match(text, new RegExp(`refused_total\\{reason="rate"\\} ${120 - passed}$`, 'm'))
  })
})
