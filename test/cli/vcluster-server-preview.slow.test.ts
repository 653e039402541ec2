// `platform vcluster patch --server`: the server evaluates, and the output is that of the local run.

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { signedIn } from '../support/cli-home.ts'

const { home } = await signedIn()
const license = resolve(import.meta.dirname, '../../examples/development.license')
const file = (name: string, text: string) => {
  const path = join(home.directory, name)
  writeFileSync(path, text)
  return path
}
const config = (name: string, expression: string, reverse: string) =>
  file(
    name,
    `sync:
  toHost:
    endpoints:
      patches:
        - path: metadata.labels.app
          expression: '${expression}'
          reverseExpression: '${reverse}'
`,
  )
const object = file(
  'endpoints.yaml',
  `apiVersion: v1
kind: Endpoints
metadata:
  name: web
  namespace: default
  labels: {zone: a, app: web, example.com/private: x}
subsets:
  - ports: [{port: 80}]
    addresses: [{ip: 10.0.0.7}]
`,
)
const good = config('good.yaml', '"x-" + value', 'value.slice(2)')
const command = (from: string, more = '', what = object) =>
  `vcluster patch -f ${from} --license ${license} --name vc --namespace team --object ${what}${more}`
/** Durations differ. */
const timeless = (text: string) => text.replace(/\(\d+\.\d ms\)/g, '(… ms)')

async function same(args: string): Promise<string> {
  const local = await home.run(args)
  const remote = await home.run(`${args} --server`)
  assert.deepEqual(
    [remote.code, timeless(remote.stdout), remote.stderr],
    [local.code, timeless(local.stdout), local.stderr],
  )
  return local.stdout
}

for (const output of ['yaml', 'json', 'diff', 'trace'])
  test(`-o ${output} is the same`, async () => {
    assert.match(await same(command(good, ` -o ${output}`)), /x-web/)
  })

test('--reverse and --check-round-trip are the same', async () => {
  const host = file('host.yaml', await home.ok(command(good)))
  assert.match(await same(command(good, ' --reverse', host)), /app: web/)
  await same(command(good, ' --check-round-trip'))
  const bad = config('bad.yaml', '"x" + value', 'value')
  await same(command(bad, ' --check-round-trip'))
  assert.equal((await home.run(command(bad, ' --check-round-trip --server'))).code, 1)
})

test('a failed patch is the same', async () => {
  const failing = config('failing.yaml', 'value.none.more', 'value')
  await same(command(failing))
  await same(command(failing, ' -o trace'))
})
