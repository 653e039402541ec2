// Third hostile review: rights that change while a request waits for a resourceVersion or for its body.

import assert from 'node:assert/strict'
import { connect } from 'node:http2'
import { after, before, describe, test } from 'node:test'
import { sendLate } from './late-body.ts'
import { keys, must, openStage, type Person, rbac, type Stage, secrets, teams } from './people.ts'

const api = 'rbac.authorization.k8s.io'
const group = 'management.platform.sh'
const merge = { 'content-type': 'application/merge-patch+json' }
const bindings = `${rbac}/clusterrolebindings`
const encoded = (text: string) => Buffer.from(text).toString('base64')
const late = encoded('written-after-the-loss')

let stage: Stage
let admin: Person
before(async () => {
  stage = await openStage()
  admin = stage.admin
})
after(() => stage.close())

async function someone(name: string, verbs: readonly string[], resources: readonly string[]): Promise<Person> {
  const rules = [{ verbs, apiGroups: [group], resources }]
  await must(admin.ask('POST', `${rbac}/clusterroles`, { metadata: { name: `of-${name}` }, rules }))
  await must(
    admin.ask('POST', bindings, {
      metadata: { name: `of-${name}` },
      roleRef: { apiGroup: api, kind: 'ClusterRole', name: `of-${name}` },
      subjects: [{ apiGroup: api, kind: 'User', name }],
    }),
  )
  return stage.invite(name)
}
const unbind = (name: string) => must(admin.ask('DELETE', `${bindings}/of-${name}`))
const patch = (path: string, body: object) => must(admin.ask('PATCH', path, body, merge))
const secret = (name: string, spec: object = {}) =>
  must(admin.ask('POST', secrets(), { metadata: { name }, spec: { data: { a: encoded('old') }, ...spec } }))

describe('a request that waits for a resourceVersion', () => {
  type Answered = { readonly status: number; readonly text: string }
  /** Controllers may write a few versions of their own; the wait must not end before `meanwhile` has. */
  const ahead = 40
  const revision = async (): Promise<number> =>
    Number((await must(admin.ask('GET', `${teams}?limit=1`))).metadata.resourceVersion)

  /** Asks for a version to come, runs `meanwhile` while the server waits, and lets the version come. */
  async function waiting(
    who: Person,
    method: string,
    path: (version: number) => string,
    meanwhile: () => Promise<unknown>,
  ): Promise<Answered> {
    const version = (await revision()) + ahead
    const session = connect(stage.server.https, { ca: stage.server.ca })
    const ask = (verb: string, at: string) =>
      new Promise<Answered>((resolve, reject) => {
        const headers = { authorization: `Bearer ${who.key}`, ':method': verb }
        const stream = session.request({ ...headers, ':path': `/kubernetes/management${at}` })
        let [status, text] = [0, '']
        stream.on('response', head => {
          status = Number(head[':status'])
        })
        stream.setEncoding('utf8').on('data', chunk => {
          text += chunk
        })
        stream.on('end', () => resolve({ status, text })).on('error', reject)
      })
    try {
      const answer = ask(method, path(version))
      // A session is read in order: once this is answered, the server has authorized the request before it.
      await ask('GET', '/version')
      await meanwhile()
      while ((await revision()) < version)
        await patch(`${teams}/clock`, { spec: { description: String(Math.random()) } })
      return await answer
    } finally {
      // A failed test leaves its request open.
      session.destroy()
    }
  }
  const getOf = (name: string) => (version: number) => `${secrets()}/${name}?resourceVersion=${version}`
  const listOf = (version: number) => `${secrets()}?resourceVersion=${version}`
  const watchOf = (version: number) =>
    `${secrets()}?watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=${version}`
  before(() => must(admin.ask('POST', teams, { metadata: { name: 'clock' } })))

  test('shows nothing after its role was removed', async () => {
    await secret('roled')
    for (const [verb, path] of [
      ['get', getOf('roled')],
      ['list', listOf],
      ['watch', watchOf],
    ] as const) {
      const name = `reader-${verb}`
      const reader = await someone(name, ['get', 'list', 'watch'], ['sharedsecrets'])
      const { status, text } = await waiting(reader, 'GET', path, async () => {
        await unbind(name)
        await patch(`${secrets()}/roled`, { spec: { data: { a: late } } })
      })
      assert.equal(text.includes(late), false, `${verb}: ${text}`)
      if (verb === 'get') assert.equal(status, 403, text)
    }
  })

  test('shows nothing after its key was deleted', async () => {
    await secret('keyed')
    for (const [verb, path] of [
      ['get', getOf('keyed')],
      ['list', listOf],
      ['watch', watchOf],
    ] as const) {
      await someone(`holder-${verb}`, ['get', 'list', 'watch'], ['sharedsecrets'])
      const name = `key-${verb}`
      const key = await must(admin.ask('POST', keys, { metadata: { name }, spec: { user: `holder-${verb}` } }))
      const { status, text } = await waiting(stage.person('holder', key.spec.key), 'GET', path, () =>
        must(admin.ask('DELETE', `${keys}/${name}`)),
      )
      assert.equal(status, 401, `${verb}: ${text}`)
    }
  })

  test('shows a former member nothing of the team', async () => {
    const member = await stage.invite('member')
    await must(admin.ask('POST', teams, { metadata: { name: 'crew' }, spec: { users: ['member'] } }))
    await secret('of-crew', { access: [{ verbs: ['get'], teams: ['crew'] }] })
    for (const [verb, path] of [
      ['get', getOf('of-crew')],
      ['list', listOf],
      ['watch', watchOf],
    ] as const) {
      await patch(`${teams}/crew`, { spec: { users: ['member'] } })
      await must(member.ask('GET', `${secrets()}/of-crew`))
      const { text } = await waiting(member, 'GET', path, async () => {
        await patch(`${teams}/crew`, { spec: { users: [] } })
        await patch(`${secrets()}/of-crew`, { spec: { data: { a: late } } })
      })
      assert.equal(text.includes(late), false, `${verb}: ${text}`)
      await patch(`${secrets()}/of-crew`, { spec: { data: { a: encoded('old') } } })
    }
  })

  test('does not show another object that was created with the same name', async () => {
    const first = await someone('first', ['create'], ['sharedsecrets'])
    await must(first.ask('POST', secrets(), { metadata: { name: 'renewed' }, spec: {} }))
    const { status, text } = await waiting(first, 'GET', getOf('renewed'), async () => {
      await must(first.ask('DELETE', `${secrets()}/renewed`))
      await secret('renewed', { data: { a: late } })
    })
    assert.equal(status, 403, text)
    assert.equal(text.includes(late), false)
  })

  test('deletes nothing after its permission was removed', async () => {
    const cleaner = await someone('cleaner', ['deletecollection'], ['sharedsecrets'])
    const place = secrets('cleaned')
    await must(admin.ask('POST', place, { metadata: { name: 'one' } }))
    const { status, text } = await waiting(
      cleaner,
      'DELETE',
      version => `${place}?resourceVersion=${version}`,
      async () => {
        await unbind('cleaner')
        await must(admin.ask('POST', place, { metadata: { name: 'two' } }))
      },
    )
    assert.equal(status, 403, text)
    assert.equal((await must(admin.ask('GET', place))).items.length, 2)
  })

  test('succeeds if nothing changed', async () => {
    await secret('steady', { access: [{ verbs: ['get'], users: ['*'] }] })
    const reader = await stage.invite('steady')
    for (const path of [getOf('steady'), listOf, watchOf]) {
      const { status, text } = await waiting(reader, 'GET', path, async () => {})
      assert.equal(status, 200, text)
      assert.match(text, /"steady"/)
    }
  })
})

describe('a body that arrives late', () => {
  let maker: Person
  before(async () => {
    maker = await someone('maker', ['create'], ['sharedsecrets', 'teams'])
  })
  const giveAway = (path: string) => () => patch(path, { spec: { owner: { user: 'admin' } } })

  test('changes nothing after its sender lost ownership', async () => {
    const path = `${secrets()}/owned`
    await must(maker.ask('POST', secrets(), { metadata: { name: 'owned' }, spec: { data: { a: encoded('old') } } }))
    const regain = () => patch(path, { spec: { owner: { user: 'maker' } } })
    const spec = { data: { a: late } }
    assert.equal(await sendLate(stage, maker, 'PATCH', path, { spec }, giveAway(path)), 403)
    await regain()
    const { metadata } = await must(admin.ask('GET', path))
    // With the version that the object has by then, so that nothing but the right is missing.
    const version = String(Number(metadata.resourceVersion) + 1)
    const sent = { metadata: { name: 'owned', resourceVersion: version }, spec }
    assert.equal(await sendLate(stage, maker, 'PUT', path, sent, giveAway(path)), 403)
    await regain()
    assert.equal(await sendLate(stage, maker, 'DELETE', path, {}, giveAway(path)), 403)
    assert.equal((await must(admin.ask('GET', path))).spec.data.a, encoded('old'))
  })

  test('changes nothing after its sender lost an access entry', async () => {
    const guest = await stage.invite('guest')
    await secret('lent', { access: [{ verbs: ['patch', 'delete'], users: ['guest'] }] })
    const path = `${secrets()}/lent`
    const spec = { data: { a: late } }
    assert.equal(
      await sendLate(stage, guest, 'PATCH', path, { spec }, () => patch(path, { spec: { access: [] } })),
      403,
    )
    await patch(path, { spec: { access: [{ verbs: ['patch', 'delete'], users: ['guest'] }] } })
    assert.equal(await sendLate(stage, guest, 'DELETE', path, {}, () => patch(path, { spec: { access: [] } })), 403)
    assert.equal((await must(admin.ask('GET', path))).spec.data.a, encoded('old'))
  })

  test('does not delete another object that was created with the same name', async () => {
    await must(maker.ask('POST', secrets(), { metadata: { name: 'swapped' }, spec: {} }))
    const path = `${secrets()}/swapped`
    const status = await sendLate(stage, maker, 'DELETE', path, {}, async () => {
      await must(admin.ask('DELETE', path))
      await secret('swapped')
    })
    assert.equal(status, 403)
    await must(admin.ask('GET', path))
  })

  test('adds nobody to a team after its sender lost ownership of the team', async () => {
    await must(maker.ask('POST', teams, { metadata: { name: 'led' } }))
    const path = `${teams}/led`
    assert.equal(await sendLate(stage, maker, 'PATCH', path, { spec: { users: ['maker'] } }, giveAway(path)), 403)
    assert.equal((await must(admin.ask('GET', path))).spec.users, undefined)
  })
})
