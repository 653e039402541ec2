// Findings of the eighth security review: image pull secrets that are pinned again, and usernames of teams.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { group, openPeople, ours, secrets } from './direct-people.ts'

const teams = `${ours}/teams`
const registry = { secretName: 'registry', secretNamespace: 'default' }
const data = { pw: 'dG9wIQ==' }

describe('an image pull secret grants only the secret that the author of the entry named', () => {
  const open = async (t: { after(close: () => Promise<void>): void }) => {
    const server = await openPeople()
    t.after(server.close)
    const mallory = await server.invite('mallory')
    await server.allow('mallory', { verbs: ['create'], apiGroups: [group], resources: ['sharedsecrets', 'teams'] })
    assert.equal((await mallory.ask('POST', secrets, { metadata: { name: 'registry' }, spec: {} })).code, 201)
    const spec = { users: ['mallory'], imagePullSecrets: [registry] }
    assert.equal((await mallory.ask('POST', teams, { metadata: { name: 'crew' }, spec })).code, 201)
    assert.equal((await mallory.ask('DELETE', `${secrets}/registry`)).code, 200)
    await server.admin('POST', secrets, { metadata: { name: 'registry' }, spec: { data } })
    assert.equal((await mallory.ask('GET', `${secrets}/registry`)).code, 403)
    return { server, mallory }
  }

  test('after a label that an administrator sets', async t => {
    const { server, mallory } = await open(t)
    await server.admin('PATCH', `${teams}/crew`, { metadata: { labels: { reviewed: 'yes' } } })
    assert.equal((await mallory.ask('GET', `${secrets}/registry`)).code, 403)
  })

  test('after a status that an administrator sets', async t => {
    const { server, mallory } = await open(t)
    await server.admin('PATCH', `${teams}/crew/status`, { status: { conditions: [{ type: 'Seen', status: 'True' }] } })
    assert.equal((await mallory.ask('GET', `${secrets}/registry`)).code, 403)
  })

  test('until somebody who may get the secret adds the entry again', async t => {
    const { server, mallory } = await open(t)
    await server.admin('PATCH', `${teams}/crew`, { spec: { imagePullSecrets: null } })
    await server.admin('PATCH', `${teams}/crew`, { spec: { imagePullSecrets: [registry] } })
    assert.equal((await mallory.ask('GET', `${secrets}/registry`)).code, 200)
  })
})

describe('the username of a team', () => {
  test('is set only by a caller who may create a team with that name', async t => {
    const server = await openPeople()
    t.after(server.close)
    const mallory = await server.invite('mallory')
    await server.admin('POST', teams, { metadata: { name: 'snacks' }, spec: { owner: { user: 'mallory' } } })
    const claim = { spec: { username: 'security' } }
    assert.equal((await mallory.ask('PATCH', `${teams}/snacks`, claim)).code, 403)
    const { code } = await mallory.ask('PATCH', `${teams}/snacks`, { spec: { username: 'snacks', users: ['mallory'] } })
    assert.equal(code, 200)
    await server.allow('mallory', { verbs: ['create'], apiGroups: [group], resources: ['teams'] })
    assert.equal((await mallory.ask('PATCH', `${teams}/snacks`, claim)).code, 200)
  })

  test('is announced where it is replaced by the name', async t => {
    const server = await openPeople()
    t.after(server.close)
    await server.admin('POST', teams, { metadata: { name: 'snacks' }, spec: { username: 'food' } })
    const shared = { metadata: { name: 'app' }, spec: { access: [{ verbs: ['get'], teams: ['food'] }] } }
    const { warnings, body } = await server.ask('POST', secrets, shared)
    assert.deepEqual(body.spec.access?.[0]?.teams, ['snacks'])
    assert.match(warnings, /food\\" is the username of the team \\"snacks/)
  })

  test('does not reveal the name of a team that the caller may not get', async t => {
    const server = await openPeople()
    t.after(server.close)
    const mallory = await server.invite('mallory')
    await server.allow('mallory', { verbs: ['create'], apiGroups: [group], resources: ['sharedsecrets'] })
    await server.admin('POST', teams, { metadata: { name: 'project-blackbird' }, spec: { username: 'bb' } })
    const shared = { metadata: { name: 'app' }, spec: { access: [{ verbs: ['get'], teams: ['bb'] }] } }
    const answer = await mallory.ask('POST', `${secrets}?dryRun=All`, shared)
    assert.equal(answer.code, 201)
    assert.doesNotMatch(JSON.stringify(answer), /blackbird/)
  })
})
