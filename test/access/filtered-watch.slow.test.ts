// A filtered watch over HTTP while access is given and taken away, by every source of access (D27).

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startServer } from '../support/server.ts'
import { keys, must, openStage, type Person, rbac, type Stage, secrets, soon, teams } from './people.ts'

const merge = { 'content-type': 'application/merge-patch+json' }

describe('a filtered watch shows an object as ADDED when access is granted, and as DELETED when it is revoked', () => {
  let stage: Stage
  let eve: Person
  before(async () => {
    stage = await openStage()
    eve = await stage.invite('eve')
    await must(stage.admin.ask('POST', teams, { metadata: { name: 'web' }, spec: { owner: { user: 'admin' } } }))
  })
  after(() => stage.close())

  const patch = (path: string, body: object) => must(stage.admin.ask('PATCH', path, body, merge))
  const create = (path: string, name: string, rest: object) =>
    must(stage.admin.ask('POST', path, { metadata: { name }, ...rest }))

  type Source = {
    readonly what: string
    /** The collection that is watched, and the object in it. */
    readonly path: string
    readonly name: string
    readonly make: () => Promise<unknown>
    readonly give: () => Promise<unknown>
    readonly take: () => Promise<unknown>
  }
  const secret = (what: string, name: string, given: object, taken: object): Source => ({
    what,
    path: secrets('watched'),
    name,
    make: () => create(secrets('watched'), name, { spec: taken }),
    give: () => patch(`${secrets('watched')}/${name}`, { spec: given }),
    take: () => patch(`${secrets('watched')}/${name}`, { spec: taken }),
  })
  const member = (isIn: boolean) => patch(`${teams}/web`, { spec: { users: isIn ? ['eve'] : [] } })
  const owner = { user: 'admin' }
  const bindings = `${rbac}/namespaces/watched/rolebindings`
  const bind = () =>
    create(bindings, 'eve', {
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'one-secret' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'eve' }],
    })
  const sources: readonly Source[] = [
    secret('the owner', 'owned', { owner: { user: 'eve' } }, { owner }),
    secret('an access entry', 'shared', { access: [{ verbs: ['get'], users: ['eve'] }] }, { owner, access: [] }),
    secret(
      'an access entry for everyone',
      'open',
      { access: [{ verbs: ['get'], users: ['*'] }] },
      { owner, access: [] },
    ),
    {
      what: 'membership in the team that owns it',
      path: secrets('watched'),
      name: 'of-the-team',
      make: () => create(secrets('watched'), 'of-the-team', { spec: { owner: { team: 'web' } } }),
      give: () => member(true),
      take: () => member(false),
    },
    {
      what: 'membership in the team itself',
      path: teams,
      name: 'web',
      make: async () => {},
      give: () => member(true),
      take: () => member(false),
    },
    {
      what: 'the right to update the team of a key',
      path: keys,
      name: 'of-the-team',
      make: () => create(keys, 'of-the-team', { spec: { team: 'web' } }),
      give: () => patch(`${teams}/web`, { spec: { access: [{ verbs: ['update'], users: ['eve'] }] } }),
      take: () => patch(`${teams}/web`, { spec: { access: [] } }),
    },
    {
      what: 'a role with resourceNames',
      path: secrets('watched'),
      name: 'named',
      make: async () => {
        await create(secrets('watched'), 'named', { spec: { owner } })
        await create(`${rbac}/clusterroles`, 'one-secret', {
          rules: [
            {
              verbs: ['get'],
              apiGroups: ['management.platform.sh'],
              resources: ['sharedsecrets'],
              resourceNames: ['named'],
            },
          ],
        })
      },
      give: bind,
      take: () => must(stage.admin.ask('DELETE', `${bindings}/eve`)),
    },
  ]

  for (const { what, path, name, make, give, take } of sources)
    test(what, async () => {
      await make()
      const isListed = async () => {
        const { items } = await must(eve.ask('GET', path))
        return items.some((item: { metadata: { name: string } }) => item.metadata.name === name)
      }
      assert.equal(await isListed(), false)
      const events = eve.watch(`${path}?watch=true`)
      // The change that gives or takes access may be one of the object itself.
      const next = async () => {
        for await (const { type, object } of { [Symbol.asyncIterator]: () => ({ next: () => events.next() }) })
          if (object.metadata.name === name && type !== 'MODIFIED') return type
        return 'ended'
      }
      // Twice: an object that comes back is found again.
      for (let turn = 0; turn < 2; turn++) {
        await give()
        assert.equal(await next(), 'ADDED')
        await soon('a list shows it', isListed)
        await take()
        assert.equal(await next(), 'DELETED')
        await soon('a list does not show it', async () => !(await isListed()))
      }
      await events.return?.()
    })
})

test('the first filtered list after a restart waits for the index, and is complete', async () => {
  const server = await startServer({ storage: 'sqlite' })
  try {
    const ask = async (method: string, path: string, body?: unknown, key = server.adminKey) =>
      must(server.request(method, path, { key, ...(body === undefined ? {} : { body }) }))
    const { spec } = await ask('POST', keys, { metadata: { name: 'eve' }, spec: { user: 'eve' } })
    const make = (at: number) => {
      const owner = { user: at % 100 === 7 ? 'eve' : 'admin' }
      return ask('POST', secrets(`n${at % 10}`), { metadata: { name: `s${at}` }, spec: { owner } })
    }
    await Promise.all(Array.from({ length: 600 }, (_, at) => make(at)))
    await server.restart()
    const { items } = await ask('GET', `/apis/management.platform.sh/v1/sharedsecrets`, undefined, spec.key)
    const names = items.map((item: { metadata: { name: string } }) => item.metadata.name)
    assert.deepEqual(names, ['s107', 's207', 's307', 's407', 's507', 's7'])
  } finally {
    await server.stop()
  }
})
