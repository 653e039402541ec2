// A writer hands over what its text is indexed by. The store derives the same from the text when it starts again.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import type { Resource } from '../api/object.ts'
import { kinds } from '../kinds/index.ts'
import { openSealer } from '../storage/encryption.ts'
import { labelsOf, sharedLabels } from '../storage/labels.ts'
import { encode } from './object-codec.ts'
import { indexTerms } from './visibility-index.ts'

const sealer = openSealer({ keys: [{ id: 'test', key: randomBytes(32) }], random: size => randomBytes(size) })

for (const kind of kinds.filter(({ stored }) => stored))
  test(`${kind.plural}: the index of a write is that of its text`, () => {
    const labels = { app: 'x', 'example.com/ü': '"' }
    for (const extra of [{}, { labels }, { labels: {} }]) {
      const { metadata, ...rest } = kind.sample as unknown as Resource
      const object = { ...rest, metadata: { ...metadata, ...extra, uid: 'u' } } as Resource
      const { text, index } = encode({ sealer }, kind, object)
      assert.equal(sharedLabels(index?.labels), labelsOf(text))
      assert.deepEqual(index?.terms, indexTerms(kind, JSON.parse(text.toString()) as Resource))
    }
  })
