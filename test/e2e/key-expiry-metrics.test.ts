// Metrics about the expiry of access keys: how many expire soon, and when the next one does.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startServer } from '../support/server.ts'

const keys = '/apis/management.platform.sh/v1/ownedaccesskeys'
const day = 86_400

test('the metrics count the valid keys that expire soon, with a fixed number of series', async t => {
  const server = await startServer({ storage: 'memory' })
  t.after(() => server.stop())
  const read = async () => {
    const answer = await fetch(`${server.http}/metrics`, { headers: { Authorization: `Bearer ${server.adminKey}` } })
    const lines = (await answer.text()).split('\n').filter(line => line.startsWith('platform_access_key'))
    return new Map(lines.map(line => line.split(' ') as [string, string]))
  }
  const expiring = (metrics: ReadonlyMap<string, string>) =>
    ['24h', '168h', '720h'].map(within => metrics.get(`platform_access_keys_expiring{within="${within}"}`))
  const next = 'platform_access_key_next_expiry_timestamp_seconds'
  const before = await read()
  assert.deepEqual([expiring(before), before.get(next)], [['0', '0', '0'], undefined])
  // A key that lives for less than a day is renewed by a program, and a sliding one by its use.
  for (const [name, spec] of Object.entries({
    soon: { ttl: day },
    week: { ttl: 5 * day },
    month: { ttl: 20 * day },
    year: { ttl: 365 * day },
    forever: {},
    brief: { ttl: 3600 },
    sliding: { ttl: 2 * day, ttlAfterLastActivity: true },
    disabled: { ttl: day, disabled: true },
  })) {
    const { status, body } = await server.request('POST', keys, {
      body: { metadata: { name }, spec: { user: 'ada', ...spec } },
    })
    assert.equal(status, 201, body?.message)
  }
  const { body } = await server.request('GET', `${keys}/soon`)
  const after = await read()
  assert.deepEqual(expiring(after), ['1', '2', '3'])
  assert.equal(Number(after.get(next)), Date.parse(body.metadata.creationTimestamp) / 1000 + day)
  assert.equal(after.size, before.size + 1)
})
