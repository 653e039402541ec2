// Security review 11: what the pages of a search in the audit log reveal about hidden events (D70).

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type Server, startServer } from '../support/server.ts'

const ours = '/apis/management.platform.sh/v1'
const [events, teams, keys] = [`${ours}/auditevents`, `${ours}/teams`, `${ours}/ownedaccesskeys`]

const merge = { 'content-type': 'application/merge-patch+json' }

let server: Server
let eve: string
before(async () => {
  server = await startServer({ storage: 'memory', inProcess: true })
  const body = { metadata: { name: 'eve' }, spec: { user: 'eve' } }
  eve = (await server.request('POST', keys, { body })).body.spec.key
  await server.request('POST', teams, { body: { metadata: { name: 'merger' } } })
})
after(() => server.stop())

const search = (selector: string, more = '', key = eve) =>
  server.request('GET', `${events}?fieldSelector=${encodeURIComponent(selector)}${more}`, key ? { key } : {})
const reasonOf = ({ status, body }: Awaited<ReturnType<typeof search>>) => [status, body.reason]

describe('hidden audit events', () => {
  const firstPage = async (selector: string) => {
    const { status, body } = await search(selector, '&limit=1')
    assert.equal(status, 200)
    assert.deepEqual(body.items, [])
    return body.metadata.continue
  }

  test('the continue token does not confirm a guess about an event of others', async () => {
    const right = await firstPage('user=admin,verb=create,resource=teams,name=merger,code=201')
    const wrong = await firstPage('user=admin,verb=create,resource=teams,name=nothing,code=201')
    assert.equal(right, wrong)
  })

  test('pages end at shown events, whatever else matches', async () => {
    const read = (name: string) => server.request('GET', `${teams}/${name}`, { key: eve })
    for (const name of ['one', 'two', 'three']) {
      await read(name)
      await server.request('PATCH', `${teams}/merger`, { headers: merge, body: { metadata: { labels: { name } } } })
    }
    const pages = async (selector: string) => {
      const names: string[][] = []
      let next: string | undefined
      do {
        const { body } = await search(selector, `&limit=1${next ? `&continue=${next}` : ''}`)
        names.push(body.items.map((one: { objectRef: { name: string } }) => one.objectRef.name))
        next = body.metadata.continue
      } while (next)
      return names
    }
    const expected = [['three'], ['two'], ['one'], []]
    assert.deepEqual(await pages('resource=teams'), expected)
    assert.deepEqual(await pages('resource=teams,name!=merger'), expected)
    assert.deepEqual(await pages('resource=teams,verb!=patch'), expected)
  })
})

describe('continue tokens', () => {
  test('are sealed, and belong to one caller and one query', async () => {
    const [query, other] = ['resource=teams', 'resource=teams,name!=x']
    const { body } = await search(query, '&limit=1')
    const token: string = body.metadata.continue
    const page = `&limit=1&continue=${token}`
    const sealed = token.slice(token.lastIndexOf(':') + 1)
    assert.doesNotMatch(Buffer.from(sealed, 'base64url').toString('latin1'), /\d:\d|file|"at"/)
    assert.equal((await search(query, page)).status, 200)
    assert.deepEqual(reasonOf(await search(other, page)), [410, 'Expired'])
    assert.deepEqual(reasonOf(await search(query, page, '')), [410, 'Expired'])
    const changed = (text: string) => (text.startsWith('A') ? 'B' : 'A') + text.slice(1)
    const altered = token.slice(0, -sealed.length) + changed(sealed)
    for (const wrong of [changed(token), altered, token.slice(0, 40), 'nonsense', `${token}AAAA`, token.repeat(60)])
      assert.deepEqual(reasonOf(await search(query, `&limit=1&continue=${wrong}`)), [410, 'Expired'], wrong)
  })

  test('have one length', async () => {
    const tokens = await Promise.all(
      ['resource=teams', '', 'user=eve'].map(
        async selector => (await search(selector, '&limit=1')).body.metadata.continue,
      ),
    )
    assert.equal(new Set(tokens.map(one => one.length)).size, 1)
  })
})
