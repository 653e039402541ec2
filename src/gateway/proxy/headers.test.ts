// The gateway remembers what it does with a header only for short names: clients and clusters can send any number of others.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { keptBy } from '../../../test/support/heap.ts'
import type { Request } from '../../serving/exchange.ts'
import { checkInbound, responseHeaders } from './headers.ts'

const inbound = (...rawHeaders: string[]) => ({ rawHeaders, headers: {} }) as unknown as Request
const longName = (at: number) => `x-${at}-${'a'.repeat(15_000)}`
const names = 500

describe('names of headers', () => {
  test('the gateway keeps no long names that clients send', async () => {
    const bytes = await keptBy(() => {
      for (let at = 0; at < names; at++) checkInbound(inbound(longName(at), 'v'))
    })
    assert.ok(bytes < 1_000_000, `${bytes} bytes are kept for ${names} names`)
  })

  test('the gateway keeps no long names that clusters send', async () => {
    const bytes = await keptBy(() => {
      for (let at = 0; at < names; at++) responseHeaders('id', [longName(at), 'v'], undefined)
    })
    assert.ok(bytes < 1_000_000, `${bytes} bytes are kept for ${names} names`)
  })

  test('a long name has the same effect each time', () => {
    const long = `Impersonate-Extra-${'a'.repeat(100)}`
    for (const name of ['Impersonate-User', long, long])
      assert.throws(() => checkInbound(inbound(name, 'root')), { code: 403 }, name)
    for (let round = 0; round < 2; round++)
      assert.deepEqual(responseHeaders('id', [longName(0), 'v', 'Set-Cookie', 'c'], undefined), [
        'Audit-Id',
        'id',
        longName(0),
        'v',
      ])
  })
})
