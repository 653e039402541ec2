// The life of gateways beside a service that comes and goes: kubectl through them, rotation under load, reload, reports, the central route.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { keys, must, rbac, teams } from '../access/people.ts'
import { exec } from '../support/exec.ts'
import { findKubectls } from '../support/kubectl.ts'
import { notRun } from '../support/missing-tool.ts'
import type { Server } from '../support/server.ts'
import { eventually } from '../support/wire.ts'
import {
  authority,
  type GatewayProcess,
  type GatewayStage,
  openGatewayStage,
  type Person,
  sendTooMuch,
  startGateway,
} from './gateway-fixture.ts'
import { openBackend } from './in-process.ts'

const program = join(import.meta.dirname, '../../bin/platform.js')
const prod = '/kubernetes/cluster/prod'

/** Everything to ada on a cluster but other people's keys. */
async function letWork(cluster: Server, user: string): Promise<void> {
  const rules = [{ verbs: ['*'], apiGroups: ['*'], resources: ['teams', 'sharedsecrets'] }]
  await must(cluster.request('POST', `${rbac}/clusterroles`, { body: { metadata: { name: 'work' }, rules } }))
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'work' }
  const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }]
  const body = { metadata: { name: 'work' }, roleRef, subjects }
  await must(cluster.request('POST', `${rbac}/clusterrolebindings`, { body }))
}

describe('gateways', () => {
  let stage: GatewayStage
  let first: GatewayProcess
  let second: GatewayProcess
  let ada: Person
  before(async () => {
    stage = await openGatewayStage()
    ;[first, second] = stage.gateways as [GatewayProcess, GatewayProcess]
    ada = await stage.invite('ada')
    for (const cluster of stage.clusters) await letWork(cluster, 'ada')
  })
  after(() => stage.close())

  const asks = (gateway: GatewayProcess, path: string, key: string) => gateway.request('GET', path, { key })

  test('kubectl gets, lists, watches, applies and deletes with a token, at both clusters', async t => {
    const [kubectl] = (await findKubectls()).toReversed()
    if (!kubectl) return notRun('kubectl ≥ 1.29')
    const token = await ada.mint()
    for (const [gateway, name] of [
      [first, 'prod'],
      [second, 'dev'],
    ] as const) {
      const home = gateway.directory
      writeFileSync(join(home, 'gateway-ca.crt'), authority.certificate)
      const flags = [
        `--server=${gateway.url}/kubernetes/cluster/${name}`,
        `--certificate-authority=${join(home, 'gateway-ca.crt')}`,
        `--token=${token}`,
        `--cache-dir=${join(home, 'cache')}`,
      ]
      const env = { PATH: process.env['PATH'], HOME: home, KUBERC: 'off', KUBECONFIG: '/dev/null' }
      const run = async (words: string, stdin = '') => {
        const { code, stdout, stderr } = await exec(kubectl.file, [...words.split(' '), ...flags], { stdin, env })
        assert.equal(code, 0, `kubectl ${words}: ${stdout}${stderr}`)
        return stdout
      }
      const team = { apiVersion: 'management.platform.sh/v1', kind: 'Team', metadata: { name: `t-${name}` }, spec: {} }
      assert.match(await run('apply -f -', JSON.stringify(team)), /created/)
      const changed = { ...team, spec: { displayName: 'Named' } }
      assert.match(await run('apply -f -', JSON.stringify(changed)), /configured/)
      assert.match(await run(`get team t-${name} -o jsonpath={.spec.displayName}`), /^Named$/)
      assert.match(await run('get teams'), new RegExp(`t-${name}`))
      const seen = follow(kubectl.file, ['get', 'teams', '--watch', '--show-labels', ...flags], env)
      t.after(seen.stop)
      await seen.until(`t-${name}`)
      await run(`label team t-${name} a=b`)
      await seen.until('a=b')
      seen.stop()
      assert.match(await run('get teams -l a=b'), new RegExp(`t-${name}`))
      assert.match(await run(`delete team t-${name}`), /deleted/)
      const { stderr } = await exec(kubectl.file, ['get', 'namespaces', ...flags], { env })
      assert.match(stderr, /User "ada" cannot list resource "namespaces"/)
    }
  })

  test('a rotation of the signing key under load fails no request', async t => {
    let token = await ada.mint()
    const codes = new Map<number, number>()
    let isOver = false
    t.after(() => {
      isOver = true
    })
    const load = Array.from({ length: 8 }, async () => {
      while (!isOver) {
        const { status } = await asks(first, `${prod}${teams}`, token)
        codes.set(status, (codes.get(status) ?? 0) + 1)
      }
    })
    const kids = new Set<string>()
    const renew = async () => {
      token = await ada.mint()
      kids.add(JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()).kid)
    }
    await renew()
    const { code, stdout } = await exec(process.execPath, [
      program,
      'token',
      'rotate-key',
      '--kubeconfig',
      stage.service.kubeconfig,
    ])
    assert.equal(code, 0)
    assert.match(stdout, /^signing key signing-\S+ created/)
    await eventually('the new key signs', async () => {
      await renew()
      return kids.size === 2
    })
    for (let count = 0; count < 5; count++) await renew()
    isOver = true
    await Promise.all(load)
    assert.deepEqual([...codes.keys()], [200])
    assert.ok((codes.get(200) ?? 0) > 20)
  })

  test('platform token revoke invalidates issued tokens at both gateways, and no later ones', async () => {
    const guest = await stage.invite('ada')
    const token = await guest.mint()
    for (const [gateway, name] of [
      [first, 'prod'],
      [second, 'dev'],
    ] as const)
      assert.equal((await asks(gateway, `/kubernetes/cluster/${name}${teams}`, token)).status, 200)
    const revoke = (...args: string[]) =>
      exec(process.execPath, [program, 'token', 'revoke', '--yes', '--kubeconfig', stage.service.kubeconfig, ...args])
    assert.match((await revoke()).stderr, /select the tokens with/)
    const { code, stdout } = await revoke('--key', guest.name, '--reason', 'lost laptop')
    assert.equal(code, 0)
    assert.match(stdout, new RegExp(`tokens of the key ${guest.name} issued until \\S+ are no longer valid`))
    for (const [gateway, name] of [
      [first, 'prod'],
      [second, 'dev'],
    ] as const)
      await eventually('the token is refused', async () => {
        const { status, text } = await asks(gateway, `/kubernetes/cluster/${name}${teams}`, token)
        if (status === 401) assert.match(text, /lost laptop/)
        return status === 401
      })
    const then = Date.now()
    await eventually('a second has passed', async () => Date.now() - then > 1100)
    assert.equal((await asks(first, `${prod}${teams}`, await guest.mint())).status, 200)
  })

  test('a changed file is reloaded; an invalid one changes nothing and is reported', async () => {
    const token = await ada.mint()
    const cluster = stage.clusters[0] as Server
    const good = {
      clusters: [
        { name: 'prod', kubeconfig: cluster.kubeconfig },
        { name: 'more', kubeconfig: cluster.kubeconfig },
      ],
    }
    assert.equal((await asks(first, `/kubernetes/cluster/more${teams}`, token)).status, 404)
    first.write(good)
    await eventually(
      'it leads there',
      async () => (await asks(first, `/kubernetes/cluster/more${teams}`, token)).status === 200,
    )
    first.write({ ...good, clusters: [{ nam: 'prod' }], lisen: 'x' })
    await eventually('it is said', async () => first.output().includes('keeping the previous configuration'))
    assert.match(first.output(), /unknown key lisen; did you mean listen\?/)
    assert.match(first.output(), /unknown key clusters\[0\]\.nam/)
    assert.equal((await asks(first, `/kubernetes/cluster/more${teams}`, token)).status, 200)
    first.write(good)
  })

  test('a stopping gateway finishes requests, ends streams, and accepts nothing new', async t => {
    const waiting = new Map<string, ServerResponse>()
    const slow = await openBackend((request, response) => {
      if (request.method === 'POST') return // what the gateway may do there, which it asks for itself
      if (request.url?.includes('watch')) response.writeHead(200).flushHeaders()
      waiting.set(request.url ?? '', response)
    })
    t.after(() => slow.close())
    const gateway = await startGateway(
      stage.service,
      { clusters: [{ name: 'slow', kubeconfig: 'slow.json' }] },
      { slow: slow.url },
    )
    t.after(() => gateway.stop())
    const token = await ada.mint()
    const path = '/kubernetes/cluster/slow/api/v1/pods'
    const under = asks(gateway, path, token)
    const watch = gateway.watch(path, { key: token }).next()
    const cut = assert.rejects(watch)
    await eventually('both are there', async () => waiting.size === 2)
    const ended = gateway.stop()
    await cut
    waiting.get('/api/v1/pods')?.end('{}')
    assert.equal((await under).status, 200)
    await ended
    await assert.rejects(asks(gateway, path, token))
  })

  test('use at a gateway updates lastActivity, and the audit log of the gateway names the token', async () => {
    const guest = await stage.invite('ada', { displayName: 'only elsewhere' })
    const token = await guest.mint()
    const lastActivity = async () =>
      (await must(stage.service.request('GET', `${keys}/${guest.name}`))).status?.lastActivity as string | undefined
    const minted = await lastActivity()
    const began = Date.parse(minted ?? '')
    await eventually('a second has passed', async () => Date.now() - began > 2000)
    const body = { metadata: { name: 'seen' }, spec: {} }
    await must(first.request('POST', `${prod}${teams}`, { key: token, body }))
    await first.stop()
    const shown = await lastActivity()
    assert.ok(Date.parse(shown ?? '') > began, `${minted} ${shown}`)
  })

  test('a connection closed for its headers is counted, and logged once', async () => {
    for (let count = 0; count < 3; count++) await sendTooMuch(second.url, authority.certificate)
    await eventually('all are counted', async () => {
      const metrics = await (await fetch(`${second.status}/metrics`)).text()
      return /^gateway_broken_connections_total{why="Protocol error"} 3$/m.test(metrics)
    })
    const told = () =>
      second.output().match(/"why":"Protocol error".*closed an HTTP\/2 connection after a protocol error/g)?.length ?? 0
    await eventually('it is told', async () => told() > 0)
    assert.equal(told(), 1)
    assert.ok(!second.output().includes('AAAA'))
  })

  test('issued tokens still work while the management API is unreachable; readiness and metrics show the feed', async () => {
    const dev = `/kubernetes/cluster/dev${teams}`
    const token = await ada.mint()
    await stage.service.kill()
    for (let count = 0; count < 10; count++) assert.equal((await asks(second, dev, token)).status, 200)
    assert.equal((await asks(second, dev, ada.key)).status, 503, 'the gateway must review a key')
    assert.equal((await asks(second, '/readyz', '')).status, 200)
    const ready = await (await fetch(`${second.status}/readyz?verbose`)).text()
    assert.match(ready, /^\[\+\]revocations ok: last contact \d+ s ago$/m)
    const metrics = await (await fetch(`${second.status}/metrics`)).text()
    assert.match(metrics, /^gateway_revocations_age_seconds \d+(\.\d+)?$/m)
    assert.match(metrics, /^gateway_requests_total{target="Cluster",code="200"} \d+$/m)
  })
})

/** A running command, and its output so far. */
function follow(file: string, args: readonly string[], env: NodeJS.ProcessEnv) {
  const child = spawn(file, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let printed = ''
  child.stdout.on('data', chunk => {
    printed += chunk
  })
  return {
    until: (text: string) => eventually(`it prints ${text}`, async () => printed.includes(text)),
    stop: () => child.kill('SIGKILL'),
  }
}
