// Every `yaml patch` block of docs/PATCHES.md: its comments say what goes in and what comes out, and both are tried.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { parse } from 'yaml'
import type { Json, JsonObject } from '../../src/api/object.ts'
import { defaultConfig } from '../../src/vcluster/config/config.ts'
import { openPatcher } from '../../src/vcluster/patch/apply.ts'
import { cloneJson, readAt, writeAt } from '../../src/vcluster/patch/edit.ts'
import { checkPatches, type Patch } from '../../src/vcluster/patch/patch.ts'
import { matchPath, parsePath } from '../../src/vcluster/patch/path.ts'
import { openSandbox } from '../../src/vcluster/patch/sandbox.ts'
import { blocksOf, readDocument } from '../support/docs.ts'

const page = readDocument('docs/PATCHES.md')
const blocks = blocksOf(page).filter(block => block.how === 'yaml patch')
const sandbox = openSandbox({ workers: 1 })
after(() => sandbox.close())

const virtual: JsonObject = {
  apiVersion: 'v1',
  kind: 'Endpoints',
  metadata: { name: 'web', namespace: 'default', labels: {}, annotations: {} },
  subsets: [{ addresses: [{ ip: '10.0.0.7' }, { ip: '10.0.0.8' }], ports: [{ port: 8080 }] }],
}
const wayOf = (path: string) => parsePath(path).map(one => ('key' in one ? (one.index ?? one.key) : '*'))

/** The sample with a value at a place. */
function holding(path: string, value: Json): JsonObject {
  const object = cloneJson(virtual)
  writeAt(object, wayOf(path), value)
  return object
}

for (const { text, line } of blocks) {
  const patch = parse(text) as Patch
  const examples = [...text.matchAll(/^# (.+?): (.+) (→|←) (.+)$/gm)]
  test(`docs/PATCHES.md:${line}: ${patch.path || '""'} does what its ${examples.length} examples say`, async () => {
    assert.deepEqual(checkPatches([patch]), [])
    assert.ok(examples.length)
    const vcluster = { name: 'my-vc', namespace: 'team-a', config: defaultConfig() as unknown as JsonObject }
    const patcher = openPatcher({ patches: [patch], vcluster, sandbox })
    for (const [, path = '', left = '', arrow, right = ''] of examples) {
      const isBack = arrow === '←'
      const [from, to] = isBack ? [right, left] : [left, right]
      const object = holding(path, JSON.parse(from))
      assert.equal(matchPath(object, parsePath(patch.path)).matches.length > 0, true, path)
      const virtualObject = isBack ? holding(path, JSON.parse(left)) : object
      const result = await patcher[isBack ? 'toVirtual' : 'toHost']({ virtualObject, hostObject: null, object })
      assert.equal(result.problem, undefined)
      const found = readAt(result.object, wayOf(path))
      assert.equal(JSON.stringify(found) ?? 'removed', to === 'removed' ? to : JSON.stringify(JSON.parse(to)), path)
    }
  })
}

test('docs/PATCHES.md has every function and every property of the context, each with an example', () => {
  assert.ok(blocks.length >= 18)
  const examples = blocks.map(block => block.text).join('\n')
  for (const name of ['atob(', 'btoa(', 'virtualToHostDNS(', 'context.vcluster.name', 'context.vcluster.namespace'])
    assert.ok(examples.includes(name), name)
  for (const name of [
    'context.vcluster.config',
    'context.hostObject',
    'context.virtualObject',
    'context.path',
    'valueExists',
  ])
    assert.ok(examples.includes(name), name)
  for (const key of ['apiVersionPath', 'kindPath', 'namePath', 'namespacePath', 'labels'])
    assert.ok(page.includes(`\`${key}\``), key)
})
