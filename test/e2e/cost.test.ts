// A slice of the cost prover (test/prove/cost): one request of a signed-in user costs the main thread what its size is worth, and no more.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type Cost, measure } from '../prove/cost/meter.ts'
import { longestStretch, mostGrowth, proveCost } from '../prove/cost/run.ts'
import { openSystem, type System } from '../prove/cost/system.ts'

const ours = '/kubernetes/management/apis/management.platform.sh/v1'
const rbac = '/kubernetes/management/apis/rbac.authorization.k8s.io/v1'

test('every field of a key and a team, stretched in every way to write it', { timeout: 120_000 }, async context => {
  const isInSlice = (what: string) => /^(OwnedAccessKey|Team) \S+ by (create by JSON|merge patch|apply)$/.test(what)
  const { measured, slowest, findings } = await proveCost(isInSlice)
  assert.ok(measured > 100, `${measured} measured`)
  assert.deepEqual(findings, [])
  context.diagnostic(`${measured} fields and ways; the slowest, ${slowest.what}: ${slowest.longest.toFixed(0)} ms`)
})

describe('inputs that once stalled the server', { timeout: 120_000 }, () => {
  let system: System
  before(async () => {
    system = await openSystem()
  })
  after(() => system.close())

  const ask = async (method: string, url: string, body?: unknown, type = 'application/json', key = system.adminKey) => {
    const text =
      body === undefined || typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body)
    return system.ask({
      method,
      url,
      headers: { authorization: `Bearer ${key}`, ...(body === undefined ? {} : { 'content-type': type }) },
      ...(text === undefined ? {} : { body: text as string }),
    })
  }
  const best = async (work: () => Promise<unknown>): Promise<Cost> => {
    const found: Cost[] = []
    for (let tries = 0; tries < 3; tries++) found.push(await measure(work))
    return {
      total: Math.min(...found.map(one => one.total)),
      longest: Math.min(...found.map(one => one.longest)),
    }
  }
  /** Linear in its size, and short. */
  const holds = (half: Cost, whole: Cost) => {
    assert.ok(whole.total <= mostGrowth * Math.max(half.total, 8), `${half.total} ms became ${whole.total} ms`)
    assert.ok(whole.longest <= longestStretch, `${whole.longest} ms without a break`)
  }
  const many = <T>(count: number, make: (at: number) => T) => Array.from({ length: count }, (_, at) => make(at))

  test('protobuf with many empty finalizers', async () => {
    // k8s\0, then the type of the message and a ClusterRole whose metadata has empty finalizers (field 14, length 0).
    const message = (count: number) => {
      const field = (number: number, bytes: Buffer) => {
        const length: number[] = []
        for (let rest = bytes.length; ; rest = Math.floor(rest / 128)) {
          length.push(rest >= 128 ? (rest % 128) + 128 : rest)
          if (rest < 128) break
        }
        return Buffer.concat([Buffer.from([number * 8 + 2, ...length]), bytes])
      }
      const finalizers = Buffer.alloc(count * 2)
      for (let at = 0; at < count; at++) finalizers[at * 2] = 14 * 8 + 2
      const type = Buffer.concat([
        field(1, Buffer.from('rbac.authorization.k8s.io/v1')),
        field(2, Buffer.from('ClusterRole')),
      ])
      return Buffer.concat([Buffer.from('k8s\0'), field(1, type), field(2, field(1, finalizers))])
    }
    const send = (count: number) =>
      best(() => ask('POST', `${rbac}/clusterroles`, message(count), 'application/vnd.kubernetes.protobuf'))
    holds(await send(20_000), await send(40_000))
  })

  for (const [what, spec] of Object.entries({
    'scope.rules': (count: number) => ({
      scope: { rules: many(count, at => ({ verbs: ['get'], namespaces: [`n${at}`] })) },
    }),
    'scope.projects': (count: number) => ({ scope: { projects: many(count, at => ({ project: `p${at}` })) } }),
  }))
    test(`a key with as many ${what} as there may be, then a patch`, async () => {
      const cost = async (count: number) => {
        const name = `key-${what.replace('.', '-').toLowerCase()}-${count}`
        assert.equal(
          (await ask('POST', `${ours}/ownedaccesskeys`, { metadata: { name }, spec: spec(count) })).code,
          201,
        )
        let turn = 0
        return best(() =>
          ask(
            'PATCH',
            `${ours}/ownedaccesskeys/${name}`,
            { spec: { displayName: `${turn++}` } },
            'application/merge-patch+json',
          ),
        )
      }
      holds(await cost(125), await cost(250))
      const beyond = await ask('POST', `${ours}/ownedaccesskeys`, { spec: spec(251) })
      assert.equal(beyond.code, 422)
      assert.match(beyond.text, /must have at most 250 items/)
    })

  test('a key with many labels, then one label changed', async () => {
    const labels = (count: number) => Object.fromEntries(many(count, at => [`k${at}`, 'v']))
    const cost = async (count: number) => {
      assert.equal(
        (await ask('POST', `${ours}/ownedaccesskeys`, { metadata: { name: `labels-${count}`, labels: labels(count) } }))
          .code,
        201,
      )
      let turn = 0
      return best(() =>
        ask(
          'PATCH',
          `${ours}/ownedaccesskeys/labels-${count}`,
          { metadata: { labels: { k1: `${turn++}` } } },
          'application/merge-patch+json',
        ),
      )
    }
    holds(await cost(125), await cost(250))
    assert.match(
      (await ask('POST', `${ours}/ownedaccesskeys`, { metadata: { labels: labels(251) } })).text,
      /at most 250 items/,
    )
  })

  test('an object that would be stored with more than 1 MiB, or a secret with 320 KiB beside its data, is 413', async () => {
    const team = (size: number) =>
      ask('POST', `${ours}/teams`, { metadata: { generateName: 'large-' }, spec: { description: 'x'.repeat(size) } })
    assert.equal((await team(1000 * 1024)).code, 201)
    const refused = await team(1024 * 1024)
    assert.equal(refused.code, 413)
    assert.match(refused.text, /at most 1048576 are allowed/)
    const data = { a: Buffer.alloc(512 * 1024).toString('base64') }
    const secret = (size: number) =>
      ask('POST', `${ours}/namespaces/large/sharedsecrets`, {
        metadata: { generateName: 'large-' },
        spec: { data, description: 'x'.repeat(size) },
      })
    assert.equal((await secret(300 * 1024)).code, 201)
    assert.match((await secret(320 * 1024)).text, /at most 327680 are allowed, data not counted/)
  })

  test('lists by somebody who may see none of 300 large secrets of others', async () => {
    const data = { a: Buffer.alloc(200_000).toString('base64') }
    for (const at of many(300, index => index))
      assert.equal(
        (
          await ask('POST', `${ours}/namespaces/default/sharedsecrets`, {
            metadata: { name: `s${at}` },
            spec: { data },
          })
        ).code,
        201,
      )
    const { text } = await ask('POST', `${ours}/ownedaccesskeys`, { spec: { user: 'mallory' } })
    const key = (JSON.parse(text) as { spec: { key: string } }).spec.key
    const list = () => ask('GET', `${ours}/sharedsecrets`, undefined, '', key)
    assert.deepEqual(JSON.parse((await list()).text).items, [])
    const cost = await best(list)
    assert.ok(cost.total <= longestStretch / 2, `${cost.total} ms for a list that shows nothing`)
  })
})
