// Finding unread secrets without reading them (D19, D35).

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { signedIn } from '../support/cli-home.ts'
import { eventually } from '../support/wire.ts'

const { server, home } = await signedIn()

const lastReads = async () =>
  Object.fromEntries(
    (await home.ok('list secrets -o wide --no-headers')).split('\n').flatMap(line => {
      const [name, , , last] = line.split(/ {3,}/)
      return name ? [[name, last]] : []
    }),
  )

const follow = (more: readonly string[]) => {
  const child = home.start(['list', 'secrets', '-w', ...more])
  let [text, said] = ['', '']
  child.stdout?.on('data', chunk => {
    text += chunk
  })
  child.stderr?.on('data', chunk => {
    said += chunk
  })
  return {
    text: () => text,
    seen: async (wanted: RegExp) => {
      await eventually('it prints that', async () => wanted.test(text))
    },
    /** The warnings so far. */
    end: async () => {
      child.kill('SIGINT')
      await once(child, 'exit')
      return said
    },
  }
}

test('no list, table, watch, name or completion of the command line counts as reading', async () => {
  for (const name of ['unread', 'old', 'fresh']) await home.ok(`set secret ${name} a=-`, { stdin: 'canary' })
  await home.ok('list secrets')
  await home.ok('list secrets -o name')
  await home.ok('get sharedsecrets -A')
  await home.ok('get sharedsecret unread')
  await home.ok('get secrets unread -o name')
  await home.ok('list secrets --unused 90d -o json')
  await home.ok(['__complete', '--', 'get', 'secret', ''])
  const { seen, end } = follow([])
  await seen(/^EVENT +NAME +DISPLAY-NAME +KEYS +AGE\n(.*\n)*ADDED +unread +1 +\d+s\n/)
  await home.ok('set secret unread b=-', { stdin: 'canary' })
  await seen(/MODIFIED +unread +2 +\d+s\n/)
  await end()
  assert.deepEqual(await lastReads(), { unread: 'never', old: 'never', fresh: 'never' })
})

test('list secrets -A -w includes secrets of projects, in one table, and reads neither', async () => {
  await home.ok('set secret of-shop a=- --project shop', { stdin: 'canary-of-shop' })
  const [table, lines] = [['-A'], ['-A', '-o', 'name', '-l', 'tier=front']].map(more => follow(more))
  await table?.seen(/^EVENT +NAMESPACE +NAME +DISPLAY-NAME +KEYS +GLOBAL-SECRET +SYNCED +AGE\n/)
  await table?.seen(/^ADDED +default +unread +2 +\d+s\n/m)
  await table?.seen(/^ADDED +p-shop +of-shop +1 +\d+s\n/m)
  assert.equal(table?.text().match(/^EVENT/gm)?.length, 1)
  await home.ok('set secret of-shop b=- --project shop', { stdin: 'canary-of-shop' })
  await home.ok('set secret unread c=-', { stdin: 'canary' })
  await table?.seen(/^MODIFIED +p-shop +of-shop +2 +\d+s\n/m)
  await table?.seen(/^MODIFIED +default +unread +3 +\d+s\n/m)
  const made = (namespace: string, kind: string) => ({
    apiVersion: 'management.platform.sh/v1',
    kind,
    metadata: { name: 'front', namespace, labels: { tier: 'front' } },
  })
  const both = [made('default', 'SharedSecret'), made('p-shop', 'ProjectSecret')]
  await home.ok('create -f -', { stdin: both.map(one => JSON.stringify(one)).join('\n---\n') })
  await lines?.seen(/^sharedsecret\/front$/m)
  await lines?.seen(/^projectsecret\/front$/m)
  assert.equal(lines?.text().trim().split('\n').length, 2, 'the label counts for both')
  assert.equal(await table?.end(), '')
  assert.equal(await lines?.end(), '')
  const { items } = JSON.parse(await home.ok('list secrets --project shop --unused 0s -o json'))
  assert.deepEqual(
    items.map((one: { metadata: { name: string }; status?: object }) => [one.metadata.name, one.status]),
    [
      ['front', undefined],
      ['of-shop', undefined],
    ],
    'nobody has read them',
  )
  await home.ok('delete sharedsecret front --yes')
})

test('-w shows changes, and --unused the opposite: together they are rejected', async () => {
  assert.match(await home.fails(2, 'list secrets -w --unused 90d'), /--unused cannot be combined with -w/)
})

test('--unused finds secrets that were read long ago, and none that were read since', async () => {
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
    /^NAME +DISPLAY-NAME +KEYS +OWNER +LAST-READ +AGE\nold +1 +admin +20\S+Z +/,
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
  assert.match(await home.fails(2, 'list secrets --unused soon'), /must be a duration such as/)
})
