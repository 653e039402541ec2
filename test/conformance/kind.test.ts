// Runs the kind suite on every kind, and shows that adding one is adding one record.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { defineKind } from '../../src/api/kind.ts'
import type { JsonObject } from '../../src/api/object.ts'
import { prefix } from '../../src/api/paths.ts'
import { integer, struct, text } from '../../src/api/schema.ts'
import { kinds } from '../../src/kinds/index.ts'
import { buildApiServer, openFront } from '../support/in-process.ts'
import { kindSuite } from './kind.ts'
import { Widget } from './resources/widget.ts'

for (const kind of kinds) kindSuite(kind)
kindSuite(Widget, [Widget])

describe('all kinds', () => {
  test('no two kinds share a name that kubectl uses', () => {
    const all = [...kinds, Widget].filter(kind => kind.served)
    for (const group of [
      all.map(kind => `${kind.group}/${kind.plural}`),
      all.map(kind => `${kind.group}/${kind.kind}`),
      all.flatMap(kind => kind.shortNames),
    ])
      assert.deepEqual(group.toSorted(), [...new Set(group)].sort())
    const words = new Set(all.flatMap(kind => [kind.plural, kind.singular]))
    for (const kind of all) for (const short of kind.shortNames) assert.equal(words.has(short), false, short)
  })
})

test('a kind is one record: routes, discovery, OpenAPI, Table, watch and apply follow from it', async () => {
  const Gadget = defineKind({
    kind: 'Gadget',
    plural: 'gadgets',
    singular: 'gadget',
    shortNames: ['gd'],
    namespaced: true,
    description: 'Gadget is a kind that exists in this test alone.',
    spec: struct('Desired state.', { power: integer('How strong it is.'), label: text('The text of the label.') }),
    columns: [{ name: 'Power', type: 'integer', description: 'Strength.', value: o => o.spec?.power as number }],
    sample: { apiVersion: 'management.platform.sh/v1', kind: 'Gadget', metadata: { name: 'g' }, spec: { power: 1 } },
  })
  const apiServer = await buildApiServer({ onlyKinds: [...kinds, Gadget] })
  const front = await openFront(apiServer)
  const base = `${front.url}${prefix}`
  const root = '/apis/management.platform.sh/v1'
  const objects = `${root}/namespaces/web/gadgets`
  const ask = async (path: string, init: RequestInit = {}) => {
    const response = await fetch(base + path, init)
    return { code: response.status, body: (await response.json()) as JsonObject }
  }
  try {
    const discovered = (await ask(root)).body as { resources: { name: string; shortNames?: string[] }[] } & JsonObject
    assert.deepEqual(discovered.resources.find(one => one.name === 'gadgets')?.shortNames, ['gd'])
    const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
    assert.match(JSON.stringify((await ask('/apis', { headers: { accept } })).body), /"resource":"gadgets"/)
    const openapi = JSON.stringify((await ask(`/openapi/v3${root}`)).body)
    assert.match(openapi, /"sh\.platform\.management\.v1\.Gadget":\{/)
    assert.match(openapi, /How strong it is\./)

    const watching = await fetch(`${base}${objects}?watch=true&timeoutSeconds=5`)
    const lines = watching.body?.pipeThrough(new TextDecoderStream()).getReader()
    const made = await ask(objects, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ metadata: { name: 'a' }, spec: { power: 7 } }),
    })
    assert.equal(made.code, 201)
    assert.match((await lines?.read())?.value ?? '', /^\{"type":"ADDED","object":\{.*"name":"a".*\}\n$/)
    await lines?.cancel()

    const applied = await ask(`${objects}/b?fieldManager=me`, {
      method: 'PATCH',
      headers: { 'content-type': 'application/apply-patch+yaml' },
      body: 'apiVersion: management.platform.sh/v1\nkind: Gadget\nspec: {power: 9}\n',
    })
    assert.equal(applied.code, 201)
    const table = (await ask(objects, { headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' } }))
      .body as {
      rows: { cells: unknown[] }[]
    } & JsonObject
    assert.deepEqual(
      table.rows.map(row => row.cells.slice(0, 2)),
      [
        ['a', 7],
        ['b', 9],
      ],
    )
    assert.equal((await ask(`${objects}/a`, { method: 'DELETE' })).code, 200)
  } finally {
    await front.close()
    await apiServer.close()
  }
})
