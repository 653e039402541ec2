// Which secrets nobody reads: found out without reading them (D19, D35).

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, test } from 'node:test'
import { type CliHome, openHome } from '../support/cli-home.ts'
import { type Server, startServer } from '../support/server.ts'

let server: Server
let home: CliHome
before(async () => {
  server = await startServer()
  home = await openHome()
  await home.signIn(server)
})
after(async () => {
  await home.close()
  await server.stop()
})

const lastReads = async () =>
  Object.fromEntries(
    (await home.ok('list secrets -o wide --no-headers')).split('\n').flatMap(line => {
      const [name, , , last] = line.split(/ {3,}/)
      return name ? [[name, last]] : []
    }),
  )

test('no list, table, watch, name or completion of the command line counts as reading', async () => {
  for (const name of ['unread', 'old', 'fresh']) await home.ok(`set secret ${name} a=-`, { stdin: 'canary' })
  await home.ok('list secrets')
  await home.ok('list secrets -o name')
  await home.ok('get sharedsecrets -A')
  await home.ok('get sharedsecret unread')
  await home.ok('get secrets unread -o name')
  await home.ok('list secrets --unused 90d -o json')
  await home.ok(['__complete', '--', 'get', 'secret', ''])
  const child = home.start(['list', 'secrets', '-w'])
  let text = ''
  child.stdout?.on('data', chunk => {
    text += chunk
  })
  const seen = async (wanted: RegExp) => {
    while (!wanted.test(text)) await once(child.stdout as NodeJS.ReadableStream, 'data')
  }
  await seen(/^EVENT +NAME +KEYS +AGE\n(.*\n)*ADDED +unread +1 +\d+s\n/)
  await home.ok('set secret unread b=-', { stdin: 'canary' })
  await seen(/MODIFIED +unread +2 +\d+s\n/)
  child.kill('SIGINT')
  await once(child, 'exit')
  assert.deepEqual(await lastReads(), { unread: 'never', old: 'never', fresh: 'never' })
})

test('--unused finds what was read long ago, and not what was read since', async () => {
  await home.ok('get secret old.a')
  await home.ok('get secret fresh.a')
  assert.equal(await home.ok('list secrets --unused 90d -o name'), '')
  const { uid } = JSON.parse(await home.ok('get secret old -o json')).metadata
  await server.restart(async () => {
    const store = new DatabaseSync(join(server.directory, 'platform.db'))
    const then = Date.now() - 91 * 86_400_000
    const { changes } = store.prepare('UPDATE times SET time = ? WHERE id = ?').run(then, `${uid}/read`)
    store.close()
    assert.equal(Number(changes), 1)
  })
  assert.equal(await home.ok('list secrets --unused 90d -o name'), 'sharedsecret/old\n')
  assert.equal(await home.ok('list secrets -A --unused 92d -o name'), '')
  assert.match(
    await home.ok('list secrets --unused 90d -o wide'),
    /^NAME +KEYS +DISPLAY-NAME +OWNER +LAST-READ +AGE\nold +1 +admin +20\S+Z +/,
  )
  const [item] = JSON.parse(await home.ok('list secrets --unused 90d -o json')).items
  assert.deepEqual(Object.keys(item).toSorted(), ['apiVersion', 'kind', 'metadata', 'status'])
  assert.match(item.status.lastRead, /^\d{4}-/)
  assert.equal(
    (await home.run('list secrets --unused 92d')).stderr,
    'No sharedsecrets found in namespace default that nobody has read for 92d.\n',
  )
  await home.ok('get secret old.a')
  assert.equal(await home.ok('list secrets --unused 90d -o name'), '')
  assert.match(await home.fails(2, 'list secrets --unused soon'), /must be a time such as/)
})
