// Commands that take a team accept its username, as the API does (D23).

import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { signedIn } from '../support/cli-home.ts'

const { server, home } = await signedIn({ storage: 'memory' })
const ours = '/apis/management.platform.sh/v1'
const usersOf = async () => (await server.request('GET', `${ours}/teams/blue`)).body.spec.users

before(async () => {
  const body = { metadata: { name: 'blue' }, spec: { username: 'blueuser', users: ['ada'] } }
  await server.request('POST', `${ours}/teams`, { body })
  await home.ok('set secret reg password=-', { stdin: 'canary-username' })
})

test('share secret stores and prints the name of the team, and --remove finds it again', async () => {
  assert.match(
    await home.ok('share secret reg --team blueuser'),
    /shared: team blue may read it\n.* --team blue --remove/,
  )
  const { body } = await server.request('GET', `${ours}/namespaces/default/sharedsecrets/reg`)
  assert.deepEqual(body.spec.access, [{ name: 'readers', verbs: ['get'], teams: ['blue'] }])
  assert.match(
    await home.ok('share secret reg --team blueuser --team blue'),
    /unchanged: team blue may already read it/,
  )
  assert.match(await home.ok('share secret reg --team blueuser --remove --yes'), /no longer shared with team blue\n/)
})

test('create accesskey --for-team and list accesskeys --team', async () => {
  await home.ok('create accesskey of-blue --for-team blueuser')
  const { body } = await server.request('GET', `${ours}/ownedaccesskeys/of-blue`)
  assert.equal(body.spec.team, 'blue')
  assert.match(await home.ok('list accesskeys --team blueuser'), /^of-blue /m)
  assert.match(await home.ok('list accesskeys --team blueuser -o name'), /of-blue/)
  assert.doesNotMatch(await home.ok('list accesskeys --team nobody -o name'), /of-blue/)
})

test('team add-user and remove-user', async () => {
  assert.equal(await home.ok('team add-user blueuser carl'), 'team/blue changed\n')
  assert.deepEqual(await usersOf(), ['ada', 'carl'])
  assert.equal(await home.ok('team remove-user blueuser carl --yes'), 'team/blue changed\n')
  assert.deepEqual(await usersOf(), ['ada'])
})

test('a member, who may read only this team, can use the username', async () => {
  const env = { PLATFORM_ACCESS_KEY: (await home.ok('create accesskey of-ada --for-user ada')).trim() }
  assert.match(await home.fails(5, 'team add-user blueuser eve', { env }), /"blue" is forbidden: .* cannot patch/)
})

test('a name that no team has stays an error', async () => {
  assert.match(await home.fails(3, 'share secret reg --team green'), /team "green" not found: create it with/)
  assert.match(await home.fails(3, 'create accesskey k --for-team green'), /team "green" not found/)
  assert.match(await home.fails(3, 'team add-user green carl'), /"green" not found/)
})

test('can-i, why and who-can ask about the team', async () => {
  const env = { PLATFORM_ACCESS_KEY: (await home.ok('create accesskey asks-ada --for-user ada')).trim() }
  assert.equal(await home.ok('can-i get team blueuser', { env }), 'yes\n')
  assert.equal(await home.ok('can-i get teams/permissions blueuser', { env }), 'yes\n')
  assert.match(await home.ok('why get team blueuser', { env }), /member of team blue/)
  assert.match(await home.ok('why get team blueuser --user platform:team:blueuser'), /acts as platform:team:blue\n/)
  assert.match(await home.ok('who-can get team blueuser'), /group platform:team:blue /)
})

test('get and delete show and ask for the name of the team', async () => {
  await server.request('POST', `${ours}/teams`, { body: { metadata: { name: 'red' }, spec: { username: 'reduser' } } })
  assert.match(await home.ok('get team reduser'), /^red /m)
  assert.equal(await home.ok('get team reduser blue -o name'), 'team/red\nteam/blue\n')
  assert.equal(await home.ok('delete team reduser red --yes'), 'team/red deleted\n')
  const { code, stderr } = await home.run('get team reduser')
  assert.deepEqual([code, /not found/.test(stderr)], [3, true])
})
