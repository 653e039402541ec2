// Stored objects grant no more than they should: from an earlier or later version, or edited in the file (D25, D27, D61).

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type Server, startServer } from '../support/server.ts'
import { changeStored } from '../support/stored.ts'
import { keys, must, ours, rbac, refused, soon, teams } from './people.ts'

const annotation = /"annotations":\{"platform\.sh\/team-uids":"[^}]*\}"\},?/

describe('stored objects grant no more than they should', () => {
  let server: Server
  const ask = (method: string, path: string, body?: unknown, key = server.adminKey) =>
    server.request(method, path, { key, ...(body === undefined ? {} : { body }) })
  const made: { [name: string]: string } = {}
  const makeKey = async (name: string, spec: object) => {
    made[name] = (await must(ask('POST', keys, { metadata: { name }, spec }))).spec.key
  }
  before(async () => {
    server = await startServer({ storage: 'sqlite' })
    await must(ask('POST', teams, { metadata: { name: 'there' } }))
    await must(ask('POST', teams, { metadata: { name: 'gone' } }))
    await makeKey('of-there', { team: 'there' })
    await makeKey('of-gone', { team: 'gone' })
    await makeKey('later', { user: 'ada', scope: { projects: [{ project: 'shop' }] } })
    await must(ask('DELETE', `${teams}/gone`))
    await server.restart(async () => {
      const change = (bucket: string, name: string, from: string | RegExp, to: string) =>
        changeStored(server.directory, { bucket, name }, text => {
          const next = text.replace(from, to)
          assert.notEqual(next, text, `${bucket} ${name} is changed`)
          return next
        })
      for (const name of ['of-there', 'of-gone']) change('ownedaccesskeys', name, annotation, '')
      change('ownedaccesskeys', 'later', '"scope":{', '"scope":{"zones":[{"zone":"eu"}],')
      // One that a finalizer of an earlier version holds while it is being deleted.
      change(
        'clusterroles',
        'platform-gateway',
        '"metadata":{',
        '"metadata":{"deletionGracePeriodSeconds":0,"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["x.io/y"],',
      )
      change('clusterroles', 'platform-viewer', '"labels":{', '"labels":{"sum":"yes",')
      change(
        'clusterroles',
        'platform-viewer',
        '"rules":[',
        '"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]},',
      )
      change(
        'clusterrolebindings',
        'platform-admin',
        '"subjects":[',
        '"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"ada"},',
      )
    })
  })
  after(() => server.stop())

  test('a restart restores labels, rules and subjects of built-in roles, and the roles themselves', async () => {
    const viewer = await must(ask('GET', `${rbac}/clusterroles/platform-viewer`))
    assert.deepEqual(viewer.metadata.labels, { 'platform.sh/built-in': 'true' })
    assert.equal(
      viewer.rules.some((rule: { verbs: string[] }) => rule.verbs.includes('*')),
      false,
    )
    const admins = await must(ask('GET', `${rbac}/clusterrolebindings/platform-admin`))
    assert.deepEqual(
      admins.subjects.map((one: { name: string }) => one.name),
      ['admin'],
    )
    const { metadata } = await must(ask('GET', `${rbac}/clusterroles/platform-gateway`))
    assert.equal(metadata.deletionTimestamp, undefined)
  })

  test('a key whose scope has an unknown field does not authenticate', async () => {
    await refused(ask('GET', `${ours}/namespaces/p-shop/projectsecrets`, undefined, made['later']), 401, /scope/)
    await refused(ask('GET', '/version', undefined, made['later']), 401, /scope/)
  })

  test('a key of an earlier version is pinned to the existing team', async () => {
    await must(ask('GET', '/api', undefined, made['of-there']))
    await soon('it is pinned', async () => {
      const { metadata } = await must(ask('GET', `${keys}/of-there`))
      return metadata.annotations?.['platform.sh/team-uids'] !== undefined
    })
    await must(ask('DELETE', `${teams}/there`))
    await must(ask('POST', teams, { metadata: { name: 'there' } }))
    await refused(ask('GET', '/api', undefined, made['of-there']), 401, /team of the access key/)
  })

  test('a key of a team that was deleted before stays invalid when the team is recreated', async () => {
    await soon('it is pinned', async () => {
      const { metadata } = await must(ask('GET', `${keys}/of-gone`))
      return metadata.annotations?.['platform.sh/team-uids'] !== undefined
    })
    await must(ask('POST', teams, { metadata: { name: 'gone' } }))
    await refused(ask('GET', '/api', undefined, made['of-gone']), 401, /team of the access key/)
  })
})
