// Users (D63): unique usernames, who may create, enable and link one, and what ends with it.

import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import {
  keys,
  must,
  openStage,
  ours,
  type Person,
  rbac,
  refused,
  type Stage,
  secrets,
  soon,
  teams,
} from '../access/people.ts'
import { startServer } from '../support/server.ts'
import { eventually } from '../support/wire.ts'

const users = `${ours}/users`
const self = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
const merge = { 'Content-Type': 'application/merge-patch+json' }
const linkTo = (subject: string, issuer = 'https://login.example') => ({
  kind: 'UserLink',
  spec: { provider: 'corp', issuer, subject },
})

suite('users', () => {
  let stage: Stage
  let admin: Person
  const userOf = (username: string, spec: object = {}, name = username) =>
    must(admin.ask('POST', users, { metadata: { name }, spec: { username, ...spec } }))
  const bind = (name: string, role: string, user: string) =>
    must(
      admin.ask('POST', `${rbac}/clusterrolebindings`, {
        metadata: { name },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
      }),
    )
  /** Somebody who manages users, and has no other permissions. */
  const manager = async (name: string) => {
    const person = await stage.invite(name)
    await bind(`${name}-manages-users`, 'user-managers', name)
    return person
  }
  const disable = (name: string, disabled = true, by = admin) =>
    by.ask('PATCH', `${users}/${name}`, { spec: { disabled } }, merge)

  before(async () => {
    stage = await openStage()
    admin = stage.admin
    await must(
      admin.ask('POST', `${rbac}/clusterroles`, {
        metadata: { name: 'user-managers' },
        rules: [{ verbs: ['*'], apiGroups: ['management.platform.sh'], resources: ['users', 'users/link'] }],
      }),
    )
  })
  after(() => stage.close())

  suite('names', () => {
    test('a username is unique, immutable and defaults to the object name', async () => {
      const { spec, status } = await must(admin.ask('POST', users, { metadata: { name: 'uma' } }))
      assert.equal(spec.username, 'uma')
      assert.equal(status.conditions.find((one: { type: string }) => one.type === 'Ready').status, 'True')
      const again = await admin.ask('POST', users, { metadata: { name: 'other' }, spec: { username: 'uma' } })
      assert.equal(again.status, 422)
      assert.equal(again.body.details.causes[0].reason, 'FieldValueDuplicate')
      assert.equal(again.body.details.causes[0].field, 'spec.username')
      await refused(admin.ask('PATCH', `${users}/uma`, { spec: { username: 'vera' } }, merge), 422, /immutable/)
    })

    test('reserved, empty and odd names are refused', async () => {
      for (const username of ['system:masters', 'platform:team:web', '*', ' ada', 'a\u200bda', 'x'.repeat(600)])
        await refused(admin.ask('POST', users, { metadata: { name: 'odd' }, spec: { username } }), 422, /spec.username/)
    })

    test('of concurrent creates with one username, exactly one succeeds', async () => {
      const answers = await Promise.all(
        Array.from({ length: 12 }, (_, index) =>
          admin.ask('POST', users, { metadata: { name: `race-${index}` }, spec: { username: 'Race Condition' } }),
        ),
      )
      assert.deepEqual(answers.map(({ status }) => status).sort(), [201, ...Array.from({ length: 11 }, () => 422)])
      const { items } = await must(admin.ask('GET', `${users}?fieldSelector=spec.username=Race Condition`))
      assert.equal(items.length, 1)
    })

    test('after a deletion the username is free, but stays reserved for its identities', async () => {
      await userOf('renee')
      const linked = await must(admin.ask('POST', `${users}/renee/link`, linkTo('sub-renee')))
      assert.deepEqual(
        linked.status.identities.map(({ subject }: { subject: string }) => subject),
        ['sub-renee'],
      )
      await must(admin.ask('DELETE', `${users}/renee`))
      const again = await userOf('renee', {}, 'renee-again')
      assert.equal(again.status.identities[0].subject, 'sub-renee')
      await userOf('rene')
      const { status, body } = await admin.ask('POST', `${users}/rene/link`, linkTo('sub-renee'))
      assert.equal(status, 409)
      assert.equal(body.details.causes[0].reason, 'IdentityTaken')
    })

    test('clients cannot write the status, nor the identity of a new user', async () => {
      const status = { identities: [{ provider: 'corp', issuer: 'https://login.example', subject: 'evil' }] }
      const created = await must(admin.ask('POST', users, { metadata: { name: 'stan' }, status }))
      assert.equal(created.status.identities, undefined)
      const patched = await must(admin.ask('PATCH', `${users}/stan`, { status }, merge))
      assert.equal(patched.status.identities, undefined)
      await refused(admin.ask('PATCH', `${users}/stan/status`, { status }, merge), 404)
      const annotations = { 'platform.sh/identity': JSON.stringify(status.identities[0]) }
      await refused(admin.ask('POST', users, { metadata: { name: 'eve', annotations } }), 422, /reserved/)
    })
  })

  suite('permissions', () => {
    test('people may get their own User; a list needs a role', async () => {
      await userOf('olga')
      const [olga, piet] = [await stage.invite('olga'), await stage.invite('piet')]
      assert.equal((await must(olga.ask('GET', `${users}/olga`))).spec.username, 'olga')
      await refused(piet.ask('GET', `${users}/olga`), 403)
      await refused(olga.ask('GET', users), 403)
      await refused(olga.ask('PATCH', `${users}/olga`, { spec: { displayName: 'Olga' } }, merge), 403)
      await bind('piet-views', 'platform-viewer', 'piet')
      assert.ok((await must(piet.ask('GET', users))).items.length > 0)
    })

    test('a manager of users creates, enables and links users who hold nothing', async () => {
      const mara = await manager('mara')
      await must(mara.ask('POST', users, { metadata: { name: 'nobody' } }))
      await must(disable('nobody', true, mara))
      await must(disable('nobody', false, mara))
      await must(mara.ask('POST', `${users}/nobody/link`, linkTo('sub-nobody')))
    })

    test('a manager of users cannot create, enable or link a user with more permissions', async () => {
      const mallory = await manager('mallory')
      const cases: { readonly [username: string]: () => Promise<unknown> } = {
        bound: () => bind('bound-admin', 'platform-admin', 'bound'),
        grouped: () =>
          must(
            admin.ask('POST', keys, {
              metadata: { name: 'grouped' },
              spec: { user: 'grouped', groups: ['ops'], disabled: true },
            }),
          ),
        member: () =>
          must(
            admin.ask('POST', teams, {
              metadata: { name: 'power' },
              spec: { users: ['member'], clusterRoles: [{ name: 'platform-admin' }] },
            }),
          ),
        // Members may get their team, and its permissions.
        viewer: () => must(admin.ask('POST', teams, { metadata: { name: 'seen' }, spec: { users: ['viewer'] } })),
        owner: () =>
          must(admin.ask('POST', secrets(), { metadata: { name: 'owned' }, spec: { owner: { user: 'owner' } } })),
        reader: () =>
          must(
            admin.ask('POST', secrets(), {
              metadata: { name: 'shared' },
              spec: { access: [{ verbs: ['get'], users: ['reader'] }] },
            }),
          ),
      }
      await must(
        admin.ask('POST', `${rbac}/clusterrolebindings`, {
          metadata: { name: 'ops' },
          roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'platform-admin' },
          subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'ops' }],
        }),
      )
      for (const [username, give] of Object.entries(cases)) {
        await give()
        const body = { metadata: { name: username } }
        await refused(mallory.ask('POST', users, body), 403)
        await refused(mallory.ask('POST', `${users}?dryRun=All`, body), 403)
        await refused(mallory.ask('POST', users, { ...body, spec: { disabled: true } }), 403)
        await userOf(username)
        await refused(mallory.ask('POST', `${users}/${username}/link`, linkTo(`mallory-as-${username}`)), 403)
        // A name and an address are for display only.
        await must(mallory.ask('PATCH', `${users}/${username}`, { spec: { displayName: 'A name' } }, merge))
        await must(disable(username, true, mallory))
        await refused(disable(username, false, mallory), 403)
        const { spec, status } = await must(admin.ask('GET', `${users}/${username}`))
        assert.equal(spec.disabled, true)
        assert.equal(status.identities, undefined)
      }
    })

    test('a manager of users cannot delete a disabled user with more permissions, who could then sign in again', async () => {
      const maud = await manager('maud')
      await bind('leaver-admin', 'platform-admin', 'leaver')
      const finalizers = ['test.example/hold']
      await must(admin.ask('POST', users, { metadata: { name: 'leaver', finalizers }, spec: { disabled: true } }))
      const at = `${users}/leaver`
      const change = (metadata: object, by = maud) => by.ask('PATCH', at, { metadata }, merge)
      await refused(maud.ask('DELETE', at), 403)
      await refused(maud.ask('DELETE', `${at}?dryRun=All`), 403)
      await refused(maud.ask('DELETE', `${users}?fieldSelector=metadata.name=leaver`), 403)
      // The garbage collector would delete the User.
      const owner = { apiVersion: 'management.platform.sh/v1', kind: 'Team', name: 'gone', uid: 'gone' }
      await refused(change({ ownerReferences: [owner] }), 403)
      // With a kind that this server does not have, it does not: another kind counts as another owner.
      const foreign = { ...owner, apiVersion: 'example.org/v1', kind: 'Machine' }
      await must(change({ ownerReferences: [foreign] }, admin))
      await refused(change({ ownerReferences: [owner] }), 403)
      await must(change({ ownerReferences: null }, admin))
      await must(admin.ask('DELETE', at))
      await refused(change({ finalizers: [] }), 403)
      await must(change({ finalizers: [] }, admin))
      // Nothing is gained by the deletion of others.
      await userOf('harmless', { disabled: true })
      await must(maud.ask('DELETE', `${users}/harmless`))
      await bind('present-admin', 'platform-admin', 'present')
      await userOf('present')
      await must(maud.ask('DELETE', `${users}/present`))
    })

    test('a manager of users cannot enable a user during the grace period of its deletion', async () => {
      const mick = await manager('mick')
      await bind('going-admin', 'platform-admin', 'going')
      await userOf('going')
      await must(admin.ask('DELETE', `${users}/going?gracePeriodSeconds=3600`))
      await must(disable('going', true, mick))
      await refused(disable('going', false, mick), 403)
      await refused(mick.ask('DELETE', `${users}/going`), 403)
      await must(disable('going', false))
      await must(mick.ask('DELETE', `${users}/going`))
    })

    test('a scoped key cannot delete a disabled user', async () => {
      const resources = [{ group: 'management.platform.sh', resources: ['users'] }]
      const scope = { rules: [{ resources, requestTargets: ['Management'] }] }
      const key = await must(admin.ask('POST', keys, { metadata: { name: 'scoped-deleter' }, spec: { scope } }))
      const scoped = stage.person('admin', key.spec.key)
      for (const name of ['kept', 'enabled']) await userOf(name)
      await must(disable('kept'))
      await refused(scoped.ask('DELETE', `${users}/kept`), 403)
      await must(scoped.ask('DELETE', `${users}/enabled`))
    })

    test('a manager of users cannot become admin', async () => {
      const moses = await manager('moses')
      await refused(moses.ask('POST', users, { metadata: { name: 'first' }, spec: { username: 'admin' } }), 403)
      await userOf('admin')
      await refused(moses.ask('POST', `${users}/admin/link`, linkTo('moses')), 403)
    })

    test('a scoped key cannot create or link a user, and nobody links while impersonating', async () => {
      const resources = [{ group: 'management.platform.sh', resources: ['users', 'users/link'] }]
      const scope = { rules: [{ resources, requestTargets: ['Management'] }] }
      const key = await must(admin.ask('POST', keys, { metadata: { name: 'scoped' }, spec: { scope } }))
      const scoped = stage.person('admin', key.spec.key)
      await refused(scoped.ask('POST', users, { metadata: { name: 'by-scope' } }), 403, /the scope of access key/)
      await userOf('in-scope')
      await refused(scoped.ask('POST', `${users}/in-scope/link`, linkTo('scoped')), 403, /the scope of access key/)
      await must(disable('in-scope'))
      await refused(disable('in-scope', false, scoped), 403, /the scope of access key/)
      await userOf('impersonated')
      const asAdmin = { 'Impersonate-User': 'admin' }
      await refused(admin.ask('POST', `${users}/impersonated/link`, linkTo('x'), asAdmin), 403, /impersonating/)
    })

    test('a link needs provider and subject, and a known provider or an issuer', async () => {
      await userOf('linked')
      const link = (spec: object) => admin.ask('POST', `${users}/linked/link`, { spec })
      await refused(link({ provider: 'corp' }), 422, /spec.subject/)
      await refused(link({ subject: 'x' }), 422, /spec.provider/)
      await refused(link({ provider: 'nowhere', subject: 'x' }), 422, /not configured/)
      await refused(link({ provider: 7, subject: 'x' }), 422, /spec.provider/)
    })

    test('of concurrent links of one identity, exactly one succeeds', async () => {
      const names = ['twin-a', 'twin-b', 'twin-c', 'twin-d']
      for (const name of names) await userOf(name)
      const answers = await Promise.all(names.map(name => admin.ask('POST', `${users}/${name}/link`, linkTo('twin'))))
      assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 409, 409, 409])
    })
  })

  suite('disabled and deleted users', () => {
    test('keys end at once, and work again when the user is enabled', async () => {
      const dora = await stage.invite('dora')
      await userOf('dora')
      await must(dora.ask('POST', self, {}))
      await must(disable('dora'))
      await refused(dora.ask('POST', self, {}), 401, /disabled/)
      const { status } = await must(admin.ask('GET', `${users}/dora`))
      const ready = status.conditions.find((one: { type: string }) => one.type === 'Ready')
      assert.deepEqual([ready.status, ready.reason], ['False', 'Disabled'])
      await must(disable('dora', false))
      await must(dora.ask('POST', self, {}))
    })

    test('a user that is created disabled is disabled', async () => {
      const drew = await stage.invite('drew')
      await userOf('drew', { disabled: true })
      await refused(drew.ask('POST', self, {}), 401, /disabled/)
      const { items } = await must(admin.ask('GET', `${ours}/tokenrevocations`))
      assert.ok(items.some(({ spec }: { spec: { users?: string[] } }) => spec.users?.includes('drew')))
    })

    test('an open watch of a disabled user ends', async () => {
      const dina = await stage.invite('dina')
      await userOf('dina')
      const events = dina.watch(keys)
      assert.equal((await events.next()).value?.type, 'ADDED')
      await must(disable('dina'))
      for await (const _ of events);
      await refused(dina.ask('POST', self, {}), 401)
    })

    test('the keys of a deleted user end at once and are deleted, later ones are not', async () => {
      const dean = await stage.invite('dean')
      await userOf('dean')
      const events = dean.watch(keys)
      assert.equal((await events.next()).value?.type, 'ADDED')
      await must(admin.ask('DELETE', `${users}/dean`))
      assert.equal((await dean.ask('POST', self, {})).status, 401)
      for await (const _ of events);
      const later = await stage.invite('dean')
      await must(later.ask('POST', self, {}))
      await userOf('dean')
      await soon('only the later key is left', async () => {
        const { items } = await must(admin.ask('GET', `${keys}?fieldSelector=spec.user=dean`))
        return items.length === 1
      })
      await must(later.ask('POST', self, {}))
      await refused(dean.ask('POST', self, {}), 401)
    })

    test('keys of teams and subjects do not depend on a user', async () => {
      await userOf('same')
      await must(admin.ask('POST', teams, { metadata: { name: 'same' } }))
      const secretOf = async (spec: object) => {
        const key = await must(admin.ask('POST', keys, { metadata: { generateName: 'k-' }, spec }))
        return stage.person('same', key.spec.key)
      }
      const people = [await secretOf({ team: 'same' }), await secretOf({ subject: 'same' })]
      await must(disable('same'))
      for (const person of people) await must(person.ask('POST', self, {}))
    })
  })

  suite('status', () => {
    test('shows the teams of the user, also through groups of keys', async () => {
      await userOf('tess')
      const teamsOf = async () => (await must(admin.ask('GET', `${users}/tess`))).status.teams ?? []
      await must(admin.ask('POST', teams, { metadata: { name: 'by-name' }, spec: { users: ['tess'] } }))
      await soon('the team is listed', async () => (await teamsOf()).join() === 'by-name')
      await must(admin.ask('POST', teams, { metadata: { name: 'by-group' }, spec: { groups: ['testers'] } }))
      await stage.invite('tess', { groups: ['testers'] })
      await soon('both teams are listed', async () => (await teamsOf()).join() === 'by-group,by-name')
      await must(admin.ask('DELETE', `${teams}/by-name`))
      await soon('one team is left', async () => (await teamsOf()).join() === 'by-group')
    })

    test('shows the last activity of any key, without writes', async () => {
      const { metadata } = await userOf('lena')
      const lena = await stage.invite('lena')
      await must(lena.ask('POST', self, {}))
      const { status, metadata: later } = await must(admin.ask('GET', `${users}/lena`))
      assert.ok(Date.parse(status.lastActivity) > 0)
      assert.equal(later.resourceVersion, metadata.resourceVersion)
    })
  })
})

/** With commits that take time, so that creates and the deletion wait for each other. */
test('no key that is created during the deletion of its user stays valid', async t => {
  const server = await startServer({ storage: 'sqlite' })
  t.after(() => server.stop())
  for (let round = 0; round < 6; round++) {
    const name = `rush${round}`
    await server.request('POST', users, { body: { metadata: { name }, spec: { username: name } } })
    const { body: first } = await server.request('POST', keys, { body: { spec: { user: name } } })
    const created: string[] = []
    const create = async () => {
      for (;;) {
        const { status, body, text } = await server.request('POST', keys, { body: { spec: {} }, key: first.spec.key })
        if (status !== 201) return assert.ok([401, 403, 409].includes(status), text)
        created.push(body.spec.key)
      }
    }
    const creating = Array.from({ length: 8 }, create)
    await eventually('keys are being created', async () => created.length > 80)
    assert.equal((await server.request('DELETE', `${users}/${name}`)).status, 200)
    await Promise.all(creating)
    for (const key of created.slice(-30))
      assert.equal((await server.request('POST', self, { body: {}, key })).status, 401)
  }
})
