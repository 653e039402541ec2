// A value of a document does not keep the whole document in memory.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keptBy } from '../../test/support/heap.ts'
import { type Decoded, decode } from './codec.ts'
import { decodeYaml } from './yaml-codec.ts'

const quarter = 256 * 1024
const documents = 100
const name = (index: number) => `an-object-with-a-long-name-${index}`

const comment = `#${'x'.repeat(quarter)}`
const bodies: readonly (readonly [string, (body: Uint8Array) => Decoded, (index: number) => string])[] = [
  ['a JSON string', decode, index => `{"name":"${name(index)}"}${' '.repeat(quarter)}`],
  ['a JSON string with an escape', decode, index => `{"name":"${name(index)}\\n"}${' '.repeat(quarter)}`],
  ['a plain YAML string', decodeYaml, index => `name: ${name(index)}\n${comment}`],
  ['a quoted YAML string', decodeYaml, index => `name: "${name(index)}"\n${comment}`],
  ['a YAML block', decodeYaml, index => `name: |\n  ${name(index)}\n${comment}`],
]

for (const [what, read, body] of bodies)
  test(`${what} outlives its document alone`, async () => {
    const bytes = await keptBy(() =>
      Array.from({ length: documents }, (_, index) => (read(Buffer.from(body(index))).value as { name: string }).name),
    )
    assert.ok(bytes < (documents * quarter) / 5, `${bytes} bytes are kept for ${documents} names`)
  })
