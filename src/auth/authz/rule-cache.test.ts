// The cache of rules is bounded by bytes: a caller chooses the names of users and namespaces in a review.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { keptBy } from '../../../test/support/heap.ts'
import { type Holder, openRuleCache } from './rule-cache.ts'

const holder = (username: string): Holder => ({ username, groups: ['system:authenticated'] })
const open = () => openRuleCache<number>(() => undefined)

describe('the rule cache', () => {
  test('all holders of a name share their rules until something changes', () => {
    const cache = open()
    cache.of(holder('ada')).set('default', 1)
    assert.equal(cache.of(holder('ada')).get('default'), 1)
    assert.equal(cache.of(holder('ben')).get('default'), undefined)
    cache.forget()
    assert.equal(cache.of(holder('ada')).get('default'), undefined)
  })

  test('keeps a namespace only if it can exist, without the text that it was cut from', async () => {
    const cache = open()
    const spaces = cache.of(holder('ada'))
    for (const [length, kept] of [
      [253, 1],
      [254, undefined],
    ] as const) {
      spaces.set('n'.repeat(length), 1)
      assert.equal(spaces.get('n'.repeat(length)), kept, String(length))
    }
    const bytes = await keptBy(() => {
      for (let at = 0; at < 60; at++) spaces.set(`${at}`.padStart(250_000, 'n'), at)
      for (let at = 0; at < 60; at++) spaces.set(`a-long-name-${at}?${'x'.repeat(250_000)}`.slice(0, 14), at)
      return spaces
    })
    assert.ok(bytes < 1_000_000, `${bytes} bytes are kept for 120 namespaces`)
  })

  test('keeps at most 64 namespaces of a holder', () => {
    const spaces = open().of(holder('ada'))
    for (let at = 0; at < 1000; at++) spaces.set(`n${at}`, at)
    const kept = Array.from({ length: 1000 }, (_, at) => spaces.get(`n${at}`)).filter(one => one !== undefined)
    assert.ok(kept.length <= 64, `${kept.length} namespaces are kept`)
    assert.equal(spaces.get('n999'), 999)
  })

  test('a holder with very long names keeps its rules only as long as it exists', async () => {
    const cache = open()
    const long = holder('u'.repeat(8192))
    cache.of(long).set('default', 1)
    assert.equal(cache.of(long).get('default'), 1)
    const bytes = await keptBy(() => {
      for (let at = 0; at < 60; at++) cache.of(holder(`${at}`.padStart(250_000, 'u'))).set('default', at)
      return cache
    })
    assert.ok(bytes < 1_000_000, `${bytes} bytes are kept for 60 holders`)
  })
})
