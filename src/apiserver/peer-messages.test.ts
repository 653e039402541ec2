// Messages between replicas: only replicas can make and open them, and each is for one replica, one request and a short time.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { type Dice, diceOf } from '../../test/prove/seeded-random.ts'
import { keptBy } from '../../test/support/heap.ts'
import { openSealer } from '../storage/encryption.ts'
import { sealsFor } from './encryption.ts'
import { openPeerMessages } from './peer-messages.ts'

const ring = (fill: number) => [{ id: 'k1', key: new Uint8Array(32).fill(fill) }]
const sealerOf = (fill: number) => openSealer({ keys: ring(fill), random: size => randomBytes(size) })
let time = Date.parse('2026-03-01T00:00:00Z')
const now = () => time
const open = (self: string, fill = 7) => openPeerMessages({ seals: sealsFor(sealerOf(fill), 'peer'), self, now })

describe('a request', () => {
  const [one, two, three] = [open('one'), open('two'), open('three')]
  const value = { query: { terms: [] } }

  test('reaches the replica that it is for, and its response comes back', () => {
    const { id, text } = one.request('two', value)
    assert.deepEqual(two.openRequest(text), { id, value })
    const response = two.response(id, { matches: [] })
    assert.deepEqual(one.openResponse('two', id, response), { matches: [] })
  })

  test('does not show its content', () => {
    const { text } = one.request('two', { user: 'canary' })
    const [, sealed = ''] = text.split(' ')
    const bytes = Buffer.from(sealed.split(':').at(-1) ?? '', 'base64url').toString('latin1')
    assert.doesNotMatch(text + bytes, /canary/)
  })

  test('is refused by another replica, under another id, and with another key ring', () => {
    const { text } = one.request('two', value)
    assert.equal(three.openRequest(text), undefined)
    const other = one.request('two', value)
    assert.equal(two.openRequest(other.text.slice(0, 36) + text.slice(36)), undefined)
    assert.equal(two.openRequest(open('one', 8).request('two', value).text), undefined)
  })

  test('is accepted once', () => {
    const { text } = one.request('two', value)
    assert.ok(two.openRequest(text))
    assert.equal(two.openRequest(text), undefined)
  })

  test('is remembered without its content', async () => {
    const receiver = open('two')
    const requests = 100
    const bytes = await keptBy(() => {
      for (let at = 0; at < requests; at++) {
        const { text } = one.request('two', { query: 'x'.repeat(40_000) })
        assert.ok(receiver.openRequest(Buffer.from(text).toString()))
      }
      return receiver
    })
    assert.ok(bytes < 1_000_000, `${bytes} bytes are kept for ${requests} requests`)
  })

  test('expires after a minute, in both directions, and cannot be repeated later', () => {
    const { text } = one.request('two', value)
    const late = one.request('two', value).text
    assert.ok(two.openRequest(text))
    const before = time
    for (const step of [-61_000, 61_000, 119_000, 121_000, 600_000]) {
      time = before + step
      assert.equal(two.openRequest(late), undefined, String(step))
      assert.equal(two.openRequest(text), undefined, String(step))
      assert.ok(two.openRequest(one.request('two', value).text))
    }
    time = before
  })

  test('is not a response, and a response is not a request', () => {
    const { id, text } = one.request('two', value)
    const [, sealed = ''] = text.split(' ')
    assert.equal(one.openResponse('two', id, sealed), undefined)
    const response = two.response(id, value)
    assert.equal(two.openRequest(`${id} ${response}`), undefined)
  })

  test('accepts a response of its target to this request alone', () => {
    const { id } = one.request('two', value)
    const other = one.request('two', value)
    assert.equal(one.openResponse('two', other.id, two.response(id, value)), undefined)
    assert.equal(one.openResponse('two', id, three.response(id, value)), undefined)
    assert.equal(one.openResponse('two', id, open('two', 8).response(id, value)), undefined)
  })

  test('no changed or random text is accepted', () => {
    const dice = diceOf('peer messages')
    const { text } = one.request('two', value)
    for (let round = 0; round < 2000; round++) {
      const hostile = round % 2 ? changed(text, dice) : randomBytes(dice(300)).toString('latin1')
      if (hostile !== text) assert.equal(two.openRequest(hostile), undefined, JSON.stringify(hostile))
    }
    assert.ok(two.openRequest(text))
  })
})

/** With one character replaced, removed or added. The unused bits of the last one carry nothing. */
function changed(text: string, dice: Dice): string {
  const at = dice(text.length - 1)
  const character = 'Az09-_: '[dice(8)] ?? ''
  return text.slice(0, at) + ['', character, character + text[at]][dice(3)] + text.slice(at + 1)
}
