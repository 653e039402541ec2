// A command that was killed while it changed the contexts: the next one waits until the lock is stale, and continues.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { signedIn } from '../support/cli-home.ts'

const { home } = await signedIn({ storage: 'memory' })

/** Loaded before the program: it comes as far as putting the new file in the place of the old one, and no further. */
const stopping = `data:text/javascript,${encodeURIComponent(`
  import fs from 'node:fs/promises'
  import { syncBuiltinESMExports } from 'node:module'
  fs.rename = () => {
    process.stderr.write('it holds the lock')
    setInterval(() => {}, 1000)
    return new Promise(() => {})
  }
  syncBuiltinESMExports()
`)}`

async function holding(namespace: string) {
  const child = home.start(['context', 'use', '127.0.0.1', '-n', namespace], { imports: [stopping] })
  let said = ''
  for await (const chunk of child.stderr ?? []) {
    said += chunk
    if (said.includes('it holds the lock')) break
  }
  assert.equal(said, 'it holds the lock')
  return child
}

const directory = join(home.directory, '.config/platform')
const namespaceNow = () =>
  JSON.parse(readFileSync(join(directory, 'contexts.json'), 'utf8')).contexts['127.0.0.1'].namespace

test('a command waits for the lock of a killed command until it is stale, and removes it', async () => {
  const child = await holding('killed')
  assert.ok(readdirSync(directory).includes('contexts.json.lock'))
  child.kill('SIGKILL')
  await once(child, 'exit')
  const { code, stderr } = await home.exec('context use 127.0.0.1 -n next')
  assert.equal(code, 0)
  assert.match(stderr, /^platform: waiting for another program .*\nThe current context is 127\.0\.0\.1\.\n$/)
  assert.equal(namespaceNow(), 'next')
  assert.deepEqual(
    readdirSync(directory).filter(name => name.includes('.lock')),
    [],
  )
})

test('a command waits for the lock of a running one, and says so', async () => {
  const child = await holding('first')
  const next = home.start(['context', 'use', '127.0.0.1', '-n', 'second'])
  const ended = once(next, 'exit')
  const [chunk] = await once(next.stderr ?? next, 'data')
  assert.match(String(chunk), /^platform: waiting for another program to release .*contexts\.json\.lock/)
  assert.equal(namespaceNow(), 'next')
  child.kill('SIGKILL')
  assert.deepEqual(await ended, [0, null])
  assert.equal(namespaceNow(), 'second')
})
