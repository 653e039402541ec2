// A slice of the model-based test of sign-in. `npm run prove` runs more.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { proveSignIn } from './run.ts'

for (const seed of ['one', 'two'])
  test(`access follows the identity provider (seed ${seed})`, async () => {
    const { violations, observed, accepted } = await proveSignIn(seed, 120)
    assert.deepEqual(violations, [])
    assert.ok(accepted > observed / 10, `${accepted} of ${observed} requests were accepted`)
  })
