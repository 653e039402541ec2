// Keys of an issuer: withdrawn ones end, and the issuer does not choose addresses of this host.

import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { test } from 'node:test'
import type { Json } from '../../api/object.ts'
import { openIssuerKeys } from './issuer-keys.ts'

const url = 'https://issuer.example'
const jwk = {
  ...generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' }),
  kid: 'one',
} as unknown as Json

function open(keysUrl: string) {
  const stage = { keys: [jwk], isDown: false, time: 0, failures: [] as unknown[], withdrawals: 0 }
  const keys = openIssuerKeys({
    url,
    discoveryURL: `${url}/config`,
    fetchJson: async asked => {
      if (stage.isDown) throw new Error('down')
      return asked === keysUrl ? { keys: stage.keys } : { issuer: url, jwks_uri: keysUrl }
    },
    close: () => {},
    now: () => stage.time,
    failed: error => void stage.failures.push(error),
    worked: () => {},
    withdrawn: () => void stage.withdrawals++,
  })
  return { keys, stage }
}

test('an empty key set withdraws every key', async t => {
  const { keys, stage } = open(`${url}/keys`)
  t.after(keys.stop)
  const key = await keys.keyFor('one', 'ES256')
  assert.ok(key && keys.isPublished(key))
  stage.keys = []
  stage.time += 60_000
  assert.equal(await keys.keyFor('two', 'ES256'), undefined)
  assert.deepEqual([keys.isPublished(key), stage.withdrawals], [false, 1])
})

test('keys end a day after the last contact', async t => {
  const { keys, stage } = open(`${url}/keys`)
  t.after(keys.stop)
  const key = await keys.keyFor('one', 'ES256')
  stage.isDown = true
  stage.time += 25 * 3600 * 1000
  await keys.keyFor('two', 'ES256')
  assert.ok(key && !keys.isPublished(key))
})

test('a remote issuer cannot send requests to this host', async t => {
  const { keys, stage } = open('http://127.0.0.1:9999/keys')
  t.after(keys.stop)
  await assert.rejects(keys.keyFor('one', 'ES256'))
  assert.match(String(stage.failures[0]), /jwks_uri/)
})
