// The module works as a library: objects and a schema in, an object or a conflict out, without the rest of this product.

import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Resource } from '../api/object.ts'
import { ApplyConflict, applyConfiguration, applyConflictStatus } from './apply.ts'
import type { FieldSchema } from './schema.ts'

const text: FieldSchema = { type: 'string' }
const schema: FieldSchema = {
  type: 'object',
  properties: {
    apiVersion: text,
    kind: text,
    metadata: { type: 'object', properties: { name: text } },
    spec: { type: 'object', properties: { image: text, host: text } },
  },
}

const apply = (live: Resource | undefined, manager: string, spec: { [field: string]: string }, force = false) =>
  applyConfiguration({
    schema,
    subresource: '',
    apiVersion: 'example.com/v1',
    now: '2026-01-02T03:04:05Z',
    resetStatus: false,
    manager,
    live,
    config: { apiVersion: 'example.com/v1', kind: 'App', metadata: { name: 'shop' }, spec },
    force,
  }).object

test('two managers apply different fields of one object', () => {
  const live = apply(apply(undefined, 'deploy', { image: 'shop:1' }), 'dns', { host: 'shop.example.com' })
  assert.deepEqual({ ...live.spec }, { image: 'shop:1', host: 'shop.example.com' })
})

test('changing a field of another manager conflicts, unless forced', () => {
  const live = apply(undefined, 'deploy', { image: 'shop:1' })
  assert.throws(
    () => apply(live, 'dns', { image: 'shop:2' }),
    (error: unknown) => {
      assert.ok(error instanceof ApplyConflict)
      assert.deepEqual(applyConflictStatus(error).causes, [
        { reason: 'FieldManagerConflict', message: 'conflict with "deploy"', field: '.spec.image' },
      ])
      return true
    },
  )
  assert.deepEqual({ ...apply(live, 'dns', { image: 'shop:2' }, true).spec }, { image: 'shop:2' })
})

test('imports only itself and src/api', () => {
  const files = globSync('*.ts', { cwd: import.meta.dirname }).filter(file => !file.endsWith('.test.ts'))
  assert.ok(files.length)
  for (const file of files)
    for (const [, target = ''] of readFileSync(join(import.meta.dirname, file), 'utf8').matchAll(/ from '([^']+)'/g))
      assert.match(target, /^(\.|\.\.\/api)\/[a-z0-9-]+\.ts$/, file)
})
