// Access keys at a gateway: the end of their streams, revocations, and limits of reviews (D33).

import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import type { ReviewedKey } from '../../src/gateway/auth/token-review-cache.ts'
import { eventually, openBare } from '../support/wire.ts'
import { type Options, openBackend, openTestGateway, type TestGateway } from './in-process.ts'

const pods = '/kubernetes/cluster/prod/api/v1/pods'
const ada: ReviewedKey = { caller: { username: 'ada', groups: ['system:authenticated'] }, keyUid: 'uid-1' }

describe('access keys', () => {
  let gateway: TestGateway
  afterEach(() => gateway.close())

  async function open(options: Omit<Options, 'backend'>): Promise<TestGateway> {
    const backend = await openBackend((request, response) => {
      if (request.url?.includes('watch')) response.writeHead(200).flushHeaders()
      else response.end('{}')
    })
    backend.server.on('upgrade', (_, socket) => {
      socket.on('error', () => {})
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n')
      socket.resume().on('end', () => socket.end())
    })
    gateway = await openTestGateway({ ...options, backend })
    return gateway
  }
  const get = (key: string, query = '', more: { [name: string]: string } = {}) =>
    fetch(`${gateway.url}${pods}${query}`, { headers: { Authorization: `Bearer ${key}`, ...more } })

  test('a watch and a shell end when their key expires', async () => {
    let isOver = false
    await open({ review: async () => (isOver ? undefined : { ...ada, endsIn: 1500 }) })
    const watch = await get('plat_key', '?watch=1')
    const shell = await openBare(gateway.url)
    const lines = [
      `POST ${pods}/p/exec HTTP/1.1`,
      'Host: x',
      'Authorization: Bearer plat_key',
      'Connection: Upgrade',
      'Upgrade: SPDY/3.1',
    ]
    shell.socket.write(`${lines.join('\r\n')}\r\n\r\n`)
    await shell.until('101 Switching Protocols')
    isOver = true
    await Promise.all([assert.rejects(watch.text()), shell.ended()])
    assert.equal(gateway.streams.open, 0)
  })

  test('a key with rules for reads opens no shell, with whatever method', async () => {
    const scope = { rules: [{ verbs: ['get', 'list', 'watch'] }] }
    await open({ review: async () => ({ ...ada, caller: { ...ada.caller, scope } }) })
    assert.equal((await get('plat_key')).status, 200)
    assert.equal((await get('plat_key', '/p/log')).status, 200)
    for (const path of ['/p/exec?command=ls', '/p/attach', '/p/portforward', '/p/proxy/', '/p/proxy/metrics'])
      assert.equal((await get('plat_key', path)).status, 403, path)
    const refused = (await (await get('plat_key', '/p/exec')).json()) as { message: string }
    assert.match(refused.message, /cannot open a stream, which needs get and create, in cluster prod/)
    // Other kinds have other streams, such as the console of a virtual machine.
    const stream = await openBare(gateway.url)
    const lines = ['Host: x', 'Authorization: Bearer plat_key', 'Connection: Upgrade', 'Upgrade: SPDY/3.1']
    stream.socket.write(`GET ${pods}/p/console HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`)
    await stream.until('403 Forbidden')
    stream.socket.destroy()
  })

  test('a key whose lifetime was extended by use keeps its streams', async () => {
    let asked = 0
    await open({ review: async () => ({ ...ada, ...(asked++ === 0 ? { endsIn: 1200 } : {}) }) })
    const ending = new AbortController()
    const watch = await fetch(`${gateway.url}${pods}?watch=1`, {
      headers: { Authorization: 'Bearer plat_key' },
      signal: ending.signal,
    })
    await eventually('the gateway reviews the key again', async () => asked === 2)
    gateway.streams.recheck()
    assert.deepEqual([gateway.streams.open, gateway.streams.cut], [1, 0])
    ending.abort()
    await assert.rejects(watch.text())
  })

  test('streams of an expired key end even if the management API does not respond', async () => {
    let asked = 0
    await open({ review: async () => (asked++ ? new Promise(() => {}) : { ...ada, endsIn: 800 }) })
    await assert.rejects((await get('plat_key', '?watch=1')).text())
    assert.equal(gateway.streams.cut, 1)
  })

  test('a review is not cached beyond the expiry of the key', async () => {
    let asked = 0
    await open({ review: async () => (asked++ ? undefined : { ...ada, endsIn: 300 }) })
    assert.equal((await get('plat_key')).status, 200)
    await eventually('it is refused', async () => (await get('plat_key')).status === 401)
  })

  for (const [what, apart] of [
    ['ahead of', 30_000],
    ['behind', -30_000],
  ] as const) {
    test(`a revocation ends earlier streams of a key if the clock of the gateway is ${what} that of the management API`, async () => {
      await open({ review: async () => ada, now: () => Date.now() + apart })
      const watch = await get('plat_key', '?watch=1')
      await gateway.revoke({ keyUID: 'uid-1', reason: 'disabled' })
      await assert.rejects(watch.text())
    })

    test(`a key reviewed after a revocation is valid if the clock of the gateway is ${what} that of the management API`, async () => {
      await open({ review: async () => ada, now: () => Date.now() + apart })
      assert.equal((await get('plat_key')).status, 200)
      await gateway.revoke({ users: ['ada'], reason: 'left a team' })
      await eventually('it is heard', async () => gateway.revocations.size === 1)
      for (let count = 0; count < 5; count++) assert.equal((await get('plat_key')).status, 200)
    })
  }

  test('a review that began before a revocation and ended after it is repeated', async () => {
    const answers: ((found: ReviewedKey | undefined) => void)[] = []
    await open({ review: () => new Promise(resolve => answers.push(resolve)) })
    const answer = get('plat_key')
    await eventually('it is asked', async () => answers.length === 1)
    await gateway.revoke({ keyUID: 'uid-1', reason: 'deleted' })
    await eventually('it is heard', async () => gateway.revocations.size === 1)
    answers[0]?.(ada)
    await eventually('the gateway reviews it again', async () => answers.length === 2)
    answers[1]?.(undefined)
    assert.equal((await answer).status, 401)
  })

  test('concurrent reviews of unknown keys are limited, in total and per address; the next one gets 429 with Retry-After', async () => {
    const answers: (() => void)[] = []
    await open({ review: () => new Promise(resolve => answers.push(() => resolve(undefined))), behindProxy: true })
    const ask = (count: number, from: (index: number) => string) =>
      Array.from({ length: count }, async (_, index) => {
        const answer = await get(`plat_${from(index)}_${index}`, '', { 'X-Forwarded-For': from(index) })
        return `${answer.status} ${answer.headers.get('retry-after')}`
      })
    const one = ask(20, () => '10.0.0.1')
    await eventually('some wait, the others are refused', async () => answers.length === 16)
    const many = ask(100, index => `10.0.1.${index}`)
    await eventually('all the places are taken', async () => answers.length === 64)
    await eventually('and no more', async () => gateway.seen.filter(({ code }) => code === 429).length === 56)
    for (const answer of answers) answer()
    const told = [...(await Promise.all(one)), ...(await Promise.all(many))]
    assert.deepEqual([...new Set(told)].sort(), ['401 null', '429 1'])
    assert.equal(told.filter(text => text === '429 1').length, 56)
    const next = get('plat_next')
    await eventually('slots are free again', async () => answers.length === 65)
    answers[64]?.()
    assert.equal((await next).status, 401)
  })

  test('unknown keys from an address that sent many of them are not reviewed; known keys still work', async () => {
    const asked: string[] = []
    let time = Date.now()
    await open({
      review: async key => {
        asked.push(key)
        return key === 'plat_good' ? ada : undefined
      },
      guesses: 3,
      behindProxy: true,
      now: () => time,
    })
    const from = (key: string, address: string) => get(key, '', { 'X-Forwarded-For': address })
    assert.equal((await from('plat_good', '10.0.0.1')).status, 200)
    for (const key of ['plat_1', 'plat_2', 'plat_3']) assert.equal((await from(key, '10.0.0.1')).status, 401)
    const next = await from('plat_4', '10.0.0.1')
    assert.deepEqual([next.status, next.headers.get('retry-after')], [429, '300'])
    time += 20_000
    const later = await from('plat_5', '10.0.0.1')
    assert.deepEqual([later.status, later.headers.get('retry-after')], [429, '280'])
    assert.match(await later.text(), /too many unknown keys[^"]* 280 s/)
    assert.equal((await from('plat_good', '10.0.0.1')).status, 200)
    assert.equal((await from(await gateway.sign(), '10.0.0.1')).status, 200, 'a token does not wait')
    assert.equal((await from('plat_4', '10.0.0.2')).status, 401)
    assert.deepEqual(asked, ['plat_good', 'plat_1', 'plat_2', 'plat_3', 'plat_good', 'plat_4'])
  })
})
