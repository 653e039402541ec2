// Keys whose scope allows only metadata see no other field of an object (D25).

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { keys, must, openStage, ours, type Person, refused, type Stage, secrets, teams } from './people.ts'

const as = (view: string) => ({ accept: `application/json;as=${view};g=meta.k8s.io;v=v1` })
const one = as('PartialObjectMetadata')
const list = as('PartialObjectMetadataList')
const table = as('Table')
const shop = `${ours}/namespaces/p-shop/projectsecrets`
/** None of these words is metadata or a column. */
const hidden = /managedFields|-uids|f:spec|KEY_NAME|hidden-member/

let stage: Stage
let admin: Person
let cli: Person
let mixed: Person
before(async () => {
  stage = await openStage()
  admin = stage.admin
  const data = { KEY_NAME: 'aHVudGVyMg==' }
  await must(admin.ask('POST', secrets(), { metadata: { name: 'db' }, spec: { data } }))
  await must(admin.ask('POST', shop, { metadata: { name: 'db' }, spec: { data } }))
  const imagePullSecrets = [{ secretName: 'db', secretNamespace: 'default' }]
  const annotations = {
    'example.com/shown': 'yes',
    'kubectl.kubernetes.io/last-applied-configuration': '{"spec":{"users":["hidden-member"]}}',
  }
  const spec = { users: ['hidden-member'], username: 'web-team', imagePullSecrets }
  const team = await must(
    admin.ask('POST', teams, { metadata: { name: 'web', annotations, labels: { a: 'b' } }, spec }),
  )
  assert.match(JSON.stringify(team.metadata), /-uids/)
  const scoped = async (name: string, scope: object) => {
    const made = await must(admin.ask('POST', keys, { metadata: { name }, spec: { user: 'admin', scope } }))
    return stage.person('admin', made.spec.key)
  }
  cli = await scoped('cli', { roles: [{ role: 'platform-cli' }] })
  mixed = await scoped('mixed', { roles: [{ role: 'platform-cli' }], projects: [{ project: 'shop' }] })
})
after(() => stage.close())

/** The first event of a watch. */
async function watched(person: Person, path: string, headers: { accept: string }): Promise<string> {
  const url = `${path}?watch=true&resourceVersion=0`
  for await (const event of stage.server.watch(url, { key: person.key, headers })) return JSON.stringify(event)
  throw new Error('the watch ended')
}

/** All views of a collection and of one object in it. */
async function* views(person: Person, path: string, name: string): AsyncGenerator<readonly [string, string]> {
  for (const [what, url, headers] of [
    ['get', `${path}/${name}`, one],
    ['get as a table', `${path}/${name}`, table],
    ['list', path, list],
    ['list as a table', path, table],
  ] as const) {
    const answer = await person.ask('GET', url, undefined, headers)
    assert.equal(answer.status, 200, answer.text)
    yield [what, answer.text]
  }
  yield ['watch', await watched(person, path, one)]
  yield ['watch as a table', await watched(person, path, table)]
}

describe('a scope that allows only metadata', () => {
  for (const [path, name] of [
    [teams, 'web'],
    [secrets(), 'db'],
    [shop, 'db'],
    [keys, 'cli'],
  ] as const)
    test(`shows only metadata of ${path}`, async () => {
      for await (const [what, text] of views(cli, path, name)) {
        assert.doesNotMatch(text, hidden, what)
        assert.match(text, /"uid"/, what)
      }
    })

  test('shows labels and annotations of users', async () => {
    for await (const [what, text] of views(cli, teams, 'web')) {
      assert.match(text, /example\.com\/shown/, what)
      assert.match(text, /"labels"/, what)
    }
  })

  for (const [path, selector] of [
    [teams, 'spec.username=web-team'],
    [teams, 'metadata.name=web,spec.username!=x'],
    [keys, 'spec.user=admin'],
  ] as const)
    test(`rejects the field selector ${selector}, and says why`, async () => {
      const query = `fieldSelector=${encodeURIComponent(selector)}`
      const field = selector.match(/spec\.\w+/)?.[0] ?? ''
      for (const [url, headers] of [
        [`${path}?${query}`, list],
        [`${path}?${query}`, table],
        [`${path}?watch=1&${query}`, one],
      ] as const)
        await refused(cli.ask('GET', url, undefined, headers), 403, new RegExp(`only metadata.*${field}`))
      await must(admin.ask('GET', `${path}?${query}`, undefined, list))
    })

  test('allows selectors of labels, names and namespaces', async () => {
    const count = async (url: string) => (await must(cli.ask('GET', url, undefined, list))).items.length
    assert.equal(await count(`${teams}?labelSelector=a%3Db`), 1)
    assert.equal(await count(`${teams}?fieldSelector=metadata.name%3Dweb`), 1)
    assert.equal(await count(`${ours}/sharedsecrets?fieldSelector=metadata.namespace%3Ddefault,metadata.name%3Ddb`), 1)
  })
})

test('a scope that also covers the objects does not limit their metadata', async () => {
  for await (const [what, text] of views(mixed, shop, 'db')) assert.match(text, /managedFields/, what)
  for await (const [what, text] of views(mixed, secrets(), 'db')) assert.doesNotMatch(text, hidden, what)
})

test('in a collection that the scope covers in part, only metadata of the other objects is limited', async () => {
  await must(admin.ask('POST', `${ours}/namespaces/p-other/projectsecrets`, { metadata: { name: 'other' }, spec: {} }))
  const { items } = await must(mixed.ask('GET', `${ours}/projectsecrets`, undefined, list))
  assert.equal(items.length, 2)
  for (const { metadata } of items)
    assert.equal(metadata.managedFields !== undefined, metadata.namespace === 'p-shop', metadata.namespace)
})

test('a key without a scope sees all metadata', async () => {
  for await (const [what, text] of views(admin, teams, 'web')) {
    assert.match(text, /managedFields/, what)
    assert.match(text, /-uids/, what)
  }
})
