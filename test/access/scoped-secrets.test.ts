// Keys for single secrets and for reading a project: `scope.secrets` and `scope.projects[].readOnly` (D23, D25).

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openPeople, ours, secrets } from './direct-people.ts'

const data = { pw: 'dG9wIQ==' }
const shop = `${ours}/namespaces/p-shop/projectsecrets`

async function open(t: { after(close: () => Promise<void>): void }) {
  const server = await openPeople()
  t.after(server.close)
  for (const name of ['one', 'two']) {
    await server.admin('POST', secrets, { metadata: { name }, spec: { data } })
    await server.admin('POST', shop, { metadata: { name }, spec: { data } })
  }
  const issue = async (scope: object) =>
    server.person((await server.admin('POST', `${ours}/ownedaccesskeys`, { spec: { user: 'admin', scope } })).spec.key)
  return { server, issue }
}

test('a key for single secrets gets them, and does nothing else', async t => {
  const { issue } = await open(t)
  const ask = await issue({
    secrets: [
      { namespace: 'default', name: 'one' },
      { project: 'shop', name: 'two' },
    ],
  })
  for (const url of [`${secrets}/one`, `${shop}/two`]) {
    const { code, body } = await ask('GET', url)
    assert.equal(code, 200)
    assert.deepEqual(body.spec.data, data)
    assert.equal((await ask('PATCH', url, { spec: { description: 'x' } })).code, 403)
    assert.equal((await ask('DELETE', url)).code, 403)
    assert.equal((await ask('GET', `${url}/history`)).code, 403)
    assert.equal((await ask('GET', `${url}/status`)).code, 403)
  }
  for (const url of [`${secrets}/two`, `${shop}/one`, `${ours}/teams/a`])
    assert.equal((await ask('GET', url)).code, 403)
  // A list shows the objects that its caller may get (D27).
  const names = async (url: string) => (await ask('GET', url)).body.items.map(({ metadata }) => metadata.name)
  assert.deepEqual([await names(secrets), await names(shop), await names(`${ours}/teams`)], [['one'], ['two'], []])
})

test('a read-only project can be read, and not changed', async t => {
  const { issue } = await open(t)
  const ask = await issue({ projects: [{ project: 'shop', readOnly: true }] })
  assert.deepEqual((await ask('GET', `${shop}/one`)).body.spec.data, data)
  assert.equal((await ask('GET', shop)).body.items.length, 2)
  assert.equal((await ask('PATCH', `${shop}/one`, { spec: { description: 'x' } })).code, 403)
  assert.equal((await ask('POST', shop, { metadata: { name: 'three' } })).code, 403)
  assert.equal((await ask('DELETE', `${shop}/one`)).code, 403)
  assert.equal((await ask('GET', `${secrets}/one`)).code, 403)
})

test('a scoped key cannot create a wider key with these scopes', async t => {
  const { issue } = await open(t)
  const rules = [
    { verbs: ['create'], resources: [{ group: 'management.platform.sh', resources: ['ownedaccesskeys'] }] },
  ]
  const create = async (own: object, wanted: object) =>
    (
      await (
        await issue({ ...own, rules })
      )('POST', `${ours}/ownedaccesskeys`, { spec: { scope: { ...wanted, rules } } })
    ).code
  const readOnly = { projects: [{ project: 'shop', readOnly: true }] }
  const whole = { projects: [{ project: 'shop' }] }
  const single = { secrets: [{ project: 'shop', name: 'one' }] }
  assert.equal(await create(readOnly, whole), 403)
  assert.equal(await create(readOnly, { spaces: [{ project: 'shop', space: 'a' }] }), 403)
  assert.equal(await create(single, readOnly), 403)
  assert.equal(await create(single, { secrets: [{ project: 'shop', name: 'two' }] }), 403)
  for (const [own, wanted] of [
    [whole, readOnly],
    [whole, single],
    [readOnly, single],
    [readOnly, readOnly],
    [single, single],
  ] as const)
    assert.equal(await create(own, wanted), 201, JSON.stringify({ own, wanted }))
})

test('an entry that can never match is 422, and says why', async t => {
  const { server } = await open(t)
  for (const [entry, why] of [
    [{ name: 'one' }, /must have a namespace for a SharedSecret, or a project/],
    [{ namespace: 'default', project: 'shop', name: 'one' }, /not both/],
    [{ project: 'shop' }, /secrets\[0\]\.name: Required value/],
    [{ project: 'shop', name: '*' }, /must be one name/],
  ] as const) {
    const answer = await server.ask('POST', `${ours}/ownedaccesskeys`, { spec: { scope: { secrets: [entry] } } })
    assert.equal(answer.code, 422)
    assert.match(answer.body.message, why)
  }
})
