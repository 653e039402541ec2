// The settings auth.requireUsers and auth.adminGroups (D63).

import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { readSettings } from '../../src/apiserver/settings.ts'
import { keys, must, ours, rbac, refused } from '../access/people.ts'
import { type Server, startServer } from '../support/server.ts'
import { openPeople, secretOf, teams } from './people-stage.ts'

const users = `${ours}/users`
const self = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
const binding = `${rbac}/clusterrolebindings/platform-admin-groups`
const merge = { 'Content-Type': 'application/merge-patch+json' }

async function withServer(args: readonly string[], run: (server: Server) => Promise<void>): Promise<void> {
  const server = await startServer({ args })
  try {
    await run(server)
  } finally {
    await server.stop()
  }
}

suite('auth.requireUsers', () => {
  test('accepts only keys of enabled Users, and keys of teams and subjects', () =>
    withServer(['--auth-require-users'], async server => {
      const ask = (method: string, path: string, body?: unknown) =>
        server.request(
          method,
          path,
          body === undefined ? {} : { body, ...(method === 'PATCH' ? { headers: merge } : {}) },
        )
      const keyOf = async (spec: object): Promise<string> =>
        (await must(ask('POST', keys, { metadata: { generateName: 'key-' }, spec }))).spec.key
      const answer = (key: string) => server.request('POST', self, { key, body: {} })
      await must(ask('POST', teams, { metadata: { name: 'web' } }))
      for (const spec of [{ team: 'web' }, { subject: 'robot' }]) await must(answer(await keyOf(spec)))
      const ada = await keyOf({ user: 'ada' })
      await refused(answer(ada), 401, /has no User object/)
      await must(ask('POST', users, { metadata: { name: 'ada' } }))
      await must(answer(ada))
      await must(ask('DELETE', `${users}/ada`))
      await refused(answer(ada), 401)
      // The user of the first start needs a User only once there is one.
      await must(answer(server.adminKey))
      await must(ask('POST', users, { metadata: { name: 'root' }, spec: { username: 'admin' } }))
      await must(answer(server.adminKey))
      await must(ask('PATCH', `${users}/root`, { spec: { disabled: true } }))
      await refused(answer(server.adminKey), 401, /disabled/)
    }))
})

suite('auth.adminGroups', () => {
  test('members of the groups are administrators, and nobody can change the binding', async () => {
    const stage = await openPeople({ args: ['--auth-admin-groups', 'corp:ops'] })
    try {
      const [ada, bob] = [stage.browser(), stage.browser()]
      await ada.signIn('ada')
      await bob.signIn('bob')
      await must(stage.ask('GET', users, undefined, secretOf(ada)))
      await refused(stage.ask('GET', users, undefined, secretOf(bob)), 403)
      const { subjects, roleRef } = await must(stage.ask('GET', binding))
      assert.equal(roleRef.name, 'platform-admin')
      assert.deepEqual(subjects, [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'corp:ops' }])
      await refused(stage.ask('DELETE', binding), 403, /built-in/)
      const body = { subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'corp:dev' }] }
      await refused(stage.server.request('PATCH', binding, { body, headers: merge }), 403, /built-in/)
    } finally {
      await stage.close()
    }
  })

  test('the binding follows the setting, and goes with it', async () => {
    const flagsFor = (groups: readonly string[]) => groups.flatMap(group => ['--auth-admin-groups', group])
    let server = await startServer({ args: flagsFor(['corp:ops', 'corp:root']) })
    const { directory } = server
    const subjects = async (): Promise<readonly string[]> => {
      const { status, body } = await server.request('GET', binding)
      return status === 404 ? [] : body.subjects.map(({ name }: { name: string }) => name)
    }
    try {
      assert.deepEqual(await subjects(), ['corp:ops', 'corp:root'])
      for (const groups of [['corp:root'], []]) {
        await server.die()
        server = await startServer({ directory, args: flagsFor(groups) })
        assert.deepEqual(await subjects(), groups)
      }
    } finally {
      await server.stop()
    }
  })

  test('groups of the server are refused', async () => {
    for (const group of ['system:authenticated', 'platform:team:web', 'a,b'])
      await assert.rejects(
        readSettings(['--auth-admin-groups', group], {}),
        /auth-admin-groups.* must be groups without/,
      )
  })
})
