// Claims of brought secrets decide by their slot, also if the index of the server lacks a key.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiError } from '../api/errors.ts'
import type { Resource } from '../api/object.ts'
import { slotName } from '../kinds/access-key-slot.ts'
import { claimDigest } from './brought-keys.ts'

const wanted = `abc${'0'.repeat(61)}`
const neighbour = `abc${'1'.repeat(61)}`
const elsewhere = 'd'.repeat(64)
const caller = { username: 'admin', groups: [] }

const keyOf = (name: string, digest: string, previous?: string): Resource =>
  ({
    metadata: { name, uid: `uid-${name}` },
    status: { digest, ...(previous ? { previous: { digest: previous, until: '2026-01-02T00:00:00Z' } } : {}) },
  }) as unknown as Resource

/** The slot after a claim, over one with these keys. The index of this server has not seen any of them yet. */
function claimOver(stored: readonly Resource[], listed = stored.map(({ metadata }) => metadata.name ?? '')) {
  const companion = claimDigest(
    {
      keyNamed: name => stored.find(({ metadata }) => metadata.name === name),
      isDigestTaken: (_, __, { uid, holders }) => holders.some(one => one !== uid),
    },
    caller,
    keyOf('new', wanted),
  )
  const slot = { metadata: { name: slotName(wanted) }, spec: { keys: listed } } as unknown as Resource
  return companion.merge?.(slot)?.['spec']
}

const isInUse = (error: unknown) => error instanceof ApiError && error.details?.causes?.[0]?.field === 'spec.key'

test('a claim fails if a key in the slot has the secret, also if the index lacks that key', () => {
  assert.throws(() => claimOver([keyOf('other', wanted)]), isInUse)
  assert.throws(() => claimOver([keyOf('neighbour', neighbour), keyOf('other', wanted)]), isInUse)
  assert.throws(() => claimOver([keyOf('rotated', elsewhere, wanted)]), isInUse)
})

test('a claim keeps the other keys of the slot, and drops those that left it', () => {
  const stored = [keyOf('neighbour', neighbour), keyOf('left', elsewhere), keyOf('rotated', elsewhere, neighbour)]
  assert.deepEqual(claimOver(stored, ['neighbour', 'left', 'rotated', 'deleted']), {
    keys: ['neighbour', 'rotated', 'new'],
  })
  assert.deepEqual(claimOver([keyOf('new', wanted)]), { keys: ['new'] })
})
