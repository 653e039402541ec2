// Warnings about a secret: its source is gone, it was deleted, or it is too large.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { signedIn } from '../support/cli-home.ts'
import { eventually } from '../support/wire.ts'

const { home } = await signedIn()
const node = process.execPath

test('get and run warn about a project secret that does not follow its source, and use its data', async () => {
  const secret = {
    apiVersion: 'management.platform.sh/v1',
    kind: 'ProjectSecret',
    metadata: { name: 'app', namespace: 'p-shop' },
    spec: { sharedSecretRef: { name: 'nowhere' } },
  }
  await home.ok('create -f -', { stdin: JSON.stringify(secret) })
  const told = /warning: app is out of sync with its source: .*nowhere/
  await eventually('the condition is set', async () =>
    told.test((await home.run('get secret app --project shop')).stderr),
  )
  const ran = await home.run(['run', '--project', 'shop', '-s', 'app', '--', node, '-e', 'console.log(1)'])
  assert.deepEqual([ran.code, ran.stdout], [0, '1\n'])
  assert.match(ran.stderr, told)
})

test('run --watch warns that its secret was deleted, and the program keeps running', async () => {
  await home.ok('set secret gone token=-', { stdin: 'x' })
  const child = home.start(['run', '-s', 'gone', '--watch', '--', node, '-e', 'console.log(1);setInterval(()=>{},1e3)'])
  let said = ''
  child.stderr?.on('data', chunk => {
    said += chunk
  })
  await once(child.stdout as NodeJS.ReadableStream, 'data')
  await home.ok('delete secret gone --yes')
  await eventually('it is told', async () =>
    /gone was deleted or access was revoked; the program keeps its current values/.test(said),
  )
  assert.equal(child.exitCode, null)
  child.kill('SIGTERM')
  await once(child, 'exit')
})

test('a value too large for the environment is reported with an alternative', async () => {
  await home.ok('set secret large token=-', { stdin: 'x'.repeat(500_000) })
  const { code, stderr } = await home.run(['run', '-s', 'large', '--', node, '-e', '0'])
  assert.equal(code, 126)
  assert.match(stderr, /arguments and environment are too large; pass a value as a file with --file KEY=PATH/)
})

test('--sliding counts from the last use, and requires a duration', async () => {
  assert.match(await home.fails(2, 'create accesskey ci --sliding'), /--sliding requires --ttl TIME/)
})
