// The history of secrets, over HTTP on a real server (D35).

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { must, openStage, ours, type Person, rbac, refused, type Stage, secrets, soon } from '../access/people.ts'
import { startServer } from '../support/server.ts'
import { changeStored } from '../support/stored.ts'

const base64 = (text: string) => Buffer.from(text).toString('base64')
const own = `${ours}/namespaces/p-web/projectsecrets`
const merge = { 'content-type': 'application/merge-patch+json' }
type Version = { number: number; author: string; key?: string; time: string; changed: string[]; current?: boolean }

describe('the history of a secret', () => {
  let stage: Stage
  let admin: Person
  let ada: Person
  before(async () => {
    stage = await openStage()
    admin = stage.admin
    ada = await stage.invite('ada')
  })
  after(() => stage.close())

  const make = (name: string, data: object, spec: object = {}) =>
    must(admin.ask('POST', secrets(), { metadata: { name }, spec: { data, ...spec } }))
  const set = (who: Person, name: string, data: object) =>
    must(who.ask('PATCH', `${secrets()}/${name}`, { spec: { data } }, merge))
  const versions = async (path: string): Promise<Version[]> =>
    (await must(admin.ask('GET', `${path}/history`))).status.versions
  const numbers = async (path: string) => (await versions(path)).map(one => one.number)

  test('lists who changed which keys when and by which key, newest first, and never a value', async () => {
    await make('listed', { a: base64('canary-one'), b: base64('same') }, { owner: { user: 'ada' } })
    await set(ada, 'listed', { a: base64('canary-two') })
    await set(admin, 'listed', { a: null, c: base64('canary-three') })
    await must(admin.ask('PATCH', `${secrets()}/listed`, { spec: { displayName: 'no change of data' } }, merge))
    const answer = await admin.ask('GET', `${secrets()}/listed/history`)
    assert.equal(answer.body.kind, 'SecretHistory')
    const told = (answer.body.status.versions as Version[]).map(({ number, author, changed, current }) => ({
      number,
      author,
      changed,
      current,
    }))
    assert.deepEqual(told, [
      { number: 3, author: 'admin', changed: ['a', 'c'], current: true },
      { number: 2, author: 'ada', changed: ['a'], current: undefined },
      { number: 1, author: 'admin', changed: ['a', 'b'], current: undefined },
    ])
    const [newest, second] = answer.body.status.versions as Version[]
    assert.equal(newest?.key, 'admin')
    assert.match(second?.key ?? '', /^ada-/)
    assert.ok(Date.parse(second?.time ?? '') > Date.now() - 60_000)
    for (const value of ['canary-one', 'canary-two', 'canary-three', 'same'])
      assert.ok(!answer.text.includes(base64(value)), 'no value in a list')
  })

  test('shows one version with its data, including the current one; missing ones are 404', async () => {
    await make('shown', { a: base64('1') })
    await set(admin, 'shown', { a: base64('2') })
    const first = await must(admin.ask('GET', `${secrets()}/shown/history/1`))
    assert.equal(first.kind, 'SecretVersion')
    assert.deepEqual(first.spec.data, { a: base64('1') })
    assert.equal(first.status.version.number, 1)
    assert.deepEqual((await must(admin.ask('GET', `${secrets()}/shown/history/2`))).spec.data, { a: base64('2') })
    await refused(admin.ask('GET', `${secrets()}/shown/history/3`), 404, /version 3 not found in sharedsecrets "shown"/)
    for (const part of ['0', '01', '-1', 'x', '1e0', '99999999999'])
      await refused(admin.ask('GET', `${secrets()}/shown/history/${part}`), 404, /a version must be a whole number/)
    await refused(admin.ask('GET', `${secrets()}/shown/history/1/2`), 404)
    await refused(admin.ask('GET', `${secrets()}/shown/status/1`), 404)
    await refused(admin.ask('GET', `${secrets()}/absent/history/1`), 404, /"absent" not found/)
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE'])
      await refused(admin.ask(method, `${secrets()}/shown/history/1`, {}), 405)
  })

  test('a rollback writes old data as a new version', async () => {
    await make('back', { a: base64('1') })
    await set(admin, 'back', { a: base64('2') })
    const { spec } = await must(admin.ask('GET', `${secrets()}/back/history/1`))
    await set(admin, 'back', spec.data)
    assert.deepEqual(await numbers(`${secrets()}/back`), [3, 2, 1])
    assert.deepEqual((await must(admin.ask('GET', `${secrets()}/back/history/3`))).spec.data, { a: base64('1') })
  })

  test('a version with the data of an earlier one says which one it restored', async () => {
    const made = await make('restored', { a: base64('1'), b: base64('2') })
    assert.equal(made.status.version.restored, undefined)
    await set(admin, 'restored', { a: base64('3'), b: null })
    const back = await set(admin, 'restored', { a: base64('1'), b: base64('2') })
    assert.equal(back.status.version.restored, 1)
    const renamed = { spec: { displayName: 'x' }, status: { version: { restored: 2 } } }
    assert.equal((await must(admin.ask('PATCH', `${secrets()}/restored`, renamed, merge))).status.version.restored, 1)
    await set(admin, 'restored', { a: base64('4') })
    await set(admin, 'restored', { a: base64('1') })
    const { status } = await must(admin.ask('GET', `${secrets()}/restored/history`))
    assert.deepEqual(
      status.versions.map((one: { number: number; restored?: number }) => [one.number, one.restored]),
      [
        [5, 3],
        [4, undefined],
        [3, 1],
        [2, undefined],
        [1, undefined],
      ],
    )
    assert.equal((await must(admin.ask('GET', `${secrets()}/restored/history/3`))).status.version.restored, 1)
  })

  test('does not say whether a guess without get is the data of an earlier version', async () => {
    await make('guessed', { a: base64('1') }, { access: [{ verbs: ['patch'], users: ['guesser'] }] })
    await set(admin, 'guessed', { a: base64('2') })
    const guesser = await stage.invite('guesser')
    await must(guesser.ask('PATCH', `${secrets()}/guessed`, { spec: { data: { a: base64('1') } } }, merge))
    await must(guesser.ask('PATCH', `${secrets()}/guessed`, { spec: { stringData: { a: '2' } } }, merge))
    const { status } = await must(admin.ask('GET', `${secrets()}/guessed/history`))
    assert.deepEqual(
      status.versions.map((one: { restored?: number }) => one.restored),
      [undefined, undefined, undefined, undefined],
    )
  })

  test('is not part of a rule for the secrets: a role names the subresource', async () => {
    await make('by-role', { a: base64('1') })
    const bind = async (user: string, resources: string[]) => {
      const rules = [{ verbs: ['get'], apiGroups: ['management.platform.sh'], resources }]
      await must(admin.ask('POST', `${rbac}/clusterroles`, { metadata: { name: user }, rules }))
      const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: user }
      const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }]
      await must(admin.ask('POST', `${rbac}/clusterrolebindings`, { metadata: { name: user }, roleRef, subjects }))
      return stage.invite(user)
    }
    const [plain, whole] = [await bind('plain', ['sharedsecrets']), await bind('whole', ['sharedsecrets/history'])]
    await refused(plain.ask('GET', `${secrets()}/by-role/history`), 403)
    await must(whole.ask('GET', `${secrets()}/by-role/history/1`))
    await refused(whole.ask('GET', `${secrets()}/by-role`), 403)
  })

  test('is readable for owners and administrators, and for others with access to the subresource', async () => {
    const access = [
      { verbs: ['get'], users: ['reader'] },
      { verbs: ['get'], subresources: ['history'], users: ['auditor'] },
    ]
    await make('rights', { a: base64('1') }, { owner: { user: 'ada' }, access })
    await set(admin, 'rights', { a: base64('2') })
    const [reader, auditor] = [await stage.invite('reader'), await stage.invite('auditor')]
    const stranger = await stage.invite('stranger')
    for (const path of ['history', 'history/1']) {
      for (const who of [admin, ada, auditor]) await must(who.ask('GET', `${secrets()}/rights/${path}`))
      for (const who of [reader, stranger])
        await refused(who.ask('GET', `${secrets()}/rights/${path}`), 403, /sharedsecrets\/history/)
    }
    await must(reader.ask('GET', `${secrets()}/rights`))
  })

  test('status.version is read-only, also through /status', async () => {
    const made = await make('status', { a: base64('1') })
    assert.equal(made.status.version.number, 1)
    const forged = { ...made, status: { version: { number: 41, author: 'eve' }, lastRead: '2000-01-01T00:00:00Z' } }
    const put = await must(admin.ask('PUT', `${secrets()}/status/status`, forged))
    assert.deepEqual(put.status.version, made.status.version)
    await must(admin.ask('PATCH', `${secrets()}/status/status`, { status: { version: null, conditions: null } }, merge))
    await set(admin, 'status', { a: base64('2') })
    assert.deepEqual(await numbers(`${secrets()}/status`), [2, 1])
  })

  test('belongs to the uid: it is deleted with the secret, and a recreated secret starts a new history', async () => {
    for (const policy of ['Background', 'Orphan', 'Foreground']) {
      await make('again', { a: base64(`1 ${policy}`) })
      await set(admin, 'again', { a: base64('2') })
      await must(admin.ask('DELETE', `${secrets()}/again?propagationPolicy=${policy}`))
      await soon('it is gone', async () => (await admin.ask('GET', `${secrets()}/again`)).status === 404)
      await make('again', { a: base64('3') })
      assert.deepEqual(await numbers(`${secrets()}/again`), [1])
      await must(admin.ask('DELETE', `${secrets()}/again`))
      await soon(`no version is left after ${policy}`, async () => {
        const text = (await stage.server.request('GET', '/../../metrics')).text
        const counted = /apiserver_storage_objects\{resource="secretversions[^}]*\} (\d+)/.exec(text)?.[1]
        return counted === String(others)
      })
    }
  })
  /** The versions that the tests above left. */
  const others = 2 + 1 + 2 + 4 + 3 + 1 + 1

  test('project secrets have their own, and none while they follow a shared secret', async () => {
    await make('source', { a: base64('1') })
    const body = { metadata: { name: 'copy' }, spec: { data: { mine: base64('0') } } }
    await must(admin.ask('POST', own, body))
    await must(admin.ask('PATCH', `${own}/copy`, { spec: { data: { mine: base64('1') } } }, merge))
    assert.deepEqual(await numbers(`${own}/copy`), [2, 1])
    await must(admin.ask('PATCH', `${own}/copy`, { spec: { sharedSecretRef: { name: 'source' } } }, merge))
    const data = async () => (await must(admin.ask('GET', `${own}/copy`))).spec.data
    await soon('it is copied', async () => (await data()).a === base64('1'))
    await set(admin, 'source', { a: base64('2') })
    await soon('it follows', async () => (await data()).a === base64('2'))
    assert.deepEqual(await numbers(`${own}/copy`), [2, 1], 'what was its own stays, what is copied is not kept')
    assert.deepEqual((await must(admin.ask('GET', `${own}/copy/history/2`))).spec.data, { mine: base64('1') })
    await must(admin.ask('PATCH', `${own}/copy`, { spec: { sharedSecretRef: null } }, merge))
    assert.deepEqual(await numbers(`${own}/copy`), [3, 2, 1])
    await must(admin.ask('POST', own, { metadata: { name: 'pure' }, spec: { sharedSecretRef: { name: 'source' } } }))
    await soon('it is copied', async () => {
      return (await must(admin.ask('GET', `${own}/pure`))).spec.data?.a === base64('2')
    })
    assert.deepEqual(await numbers(`${own}/pure`), [])
    await refused(admin.ask('GET', `${own}/pure/history/1`), 404, /version 1 not found/)
  })

  test('a secret whose version changed 1,000 keys can be replaced and applied', async () => {
    const data = Object.fromEntries(Array.from({ length: 1001 }, (_, at) => [`k${at}`, base64('same')]))
    await make('wide', data)
    const read = await must(admin.ask('GET', `${secrets()}/wide`))
    assert.equal(read.status.version.changed.length, 1000)
    await must(admin.ask('PUT', `${secrets()}/wide`, { ...read, spec: { ...read.spec, displayName: 'replaced' } }))
    const { apiVersion, kind } = read
    await must(
      admin.ask(
        'PATCH',
        `${secrets()}/wide?fieldManager=test`,
        { apiVersion, kind, metadata: { name: 'wide' }, spec: { description: 'applied' } },
        { 'content-type': 'application/apply-patch+yaml' },
      ),
    )
  })

  test('a dry run stores nothing', async () => {
    await make('dry', { a: base64('1') })
    await must(admin.ask('PATCH', `${secrets()}/dry?dryRun=All`, { spec: { data: { a: base64('2') } } }, merge))
    assert.deepEqual(await numbers(`${secrets()}/dry`), [1])
  })

  test('concurrent writes count each change once', async () => {
    await make('race', { n: base64('0') })
    await Promise.all(Array.from({ length: 10 }, (_, index) => set(admin, 'race', { n: base64(`${index + 1}`) })))
    const all = await versions(`${secrets()}/race`)
    assert.deepEqual(
      all.map(one => one.number),
      Array.from({ length: 11 }, (_, index) => 11 - index),
    )
    const values = await Promise.all(
      all.map(async ({ number }) => (await must(admin.ask('GET', `${secrets()}/race/history/${number}`))).spec.data.n),
    )
    assert.equal(new Set(values).size, 11, 'no version is lost')
  })
})

test('secrets.versions versions are kept, across restarts', async () => {
  const server = await startServer({ args: ['--secrets-versions', '2'] })
  try {
    const path = `${secrets()}/bounded`
    const body = (data: object) => ({ body: { metadata: { name: 'bounded' }, spec: { data } } })
    await must(server.request('POST', secrets(), body({ n: base64('1') })))
    for (let n = 2; n <= 5; n++)
      await must(server.request('PATCH', path, { body: { spec: { data: { n: base64(`${n}`) } } }, headers: merge }))
    const numbers = async () =>
      (await must(server.request('GET', `${path}/history`))).status.versions.map((one: Version) => one.number)
    await soon('the oldest are pruned', async () => JSON.stringify(await numbers()) === '[5,4,3]')
    await server.restart()
    assert.deepEqual(await numbers(), [5, 4, 3])
    assert.deepEqual((await must(server.request('GET', `${path}/history/3`))).spec.data, { n: base64('3') })
  } finally {
    await server.stop()
  }
})

test('a secret stored before versions were counted can follow, stop following, and keeps all versions', async () => {
  const server = await startServer()
  try {
    const path = `${own}/early`
    const change = (spec: object) => must(server.request('PATCH', path, { body: { spec }, headers: merge }))
    await must(
      server.request('POST', secrets(), {
        body: { metadata: { name: 'source' }, spec: { data: { a: base64('theirs') } } },
      }),
    )
    await must(
      server.request('POST', own, { body: { metadata: { name: 'early' }, spec: { data: { a: base64('first') } } } }),
    )
    await server.restart(async () => forgetVersion(server.directory, 'early'))
    assert.equal((await must(server.request('GET', path))).status?.version, undefined)
    await change({ data: null, sharedSecretRef: { name: 'source' } })
    await soon('it is copied', async () => (await must(server.request('GET', path))).spec.data?.a === base64('theirs'))
    await change({ sharedSecretRef: null, data: { a: base64('second') } })
    await change({ data: { a: base64('third') } })
    const { versions } = (await must(server.request('GET', `${path}/history`))).status
    assert.deepEqual(
      versions.map((one: Version) => one.number),
      [3, 2, 1],
    )
    const values = await Promise.all(
      [1, 2, 3].map(async number => (await must(server.request('GET', `${path}/history/${number}`))).spec.data.a),
    )
    assert.deepEqual(values, ['first', 'second', 'third'].map(base64))
  } finally {
    await server.stop()
  }
})

/** As one was stored before: without a status. */
function forgetVersion(directory: string, name: string): void {
  changeStored(directory, { bucket: 'projectsecrets', name }, text => {
    const { status: _, ...stored } = JSON.parse(text)
    return JSON.stringify(stored)
  })
}
