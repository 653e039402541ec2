// `platform audit search`: finds who did something, follows the log, and survives a restart of the server.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { signedIn } from '../support/cli-home.ts'
import { eventually } from '../support/wire.ts'

const { server, home } = await signedIn({ storage: 'sqlite', inProcess: false })

test('who deleted a team: a table with time, user, verb, object and code', async () => {
  await home.ok('create team gone')
  await home.ok('delete team gone --yes')
  const text = await home.ok('audit search --verb delete --resource teams --name gone --from 24h')
  assert.match(
    text,
    /^TIME +USER +VERB +OBJECT +CODE\n\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ +admin +delete +teams\/gone +200\n$/,
  )
})

test('-o json prints whole events, --limit bounds them', async () => {
  for (const name of ['a', 'b', 'c']) await home.ok(`create team ${name}`)
  const { items } = JSON.parse(await home.ok('audit search --resource teams --verb create --limit 2 -o json'))
  assert.deepEqual(
    items.map((one: { objectRef: { name: string } }) => one.objectRef.name),
    ['c', 'b'],
  )
  assert.match((await home.run('audit search --name nobody')).stderr, /^No audit events found\.\n$/)
})

test('wrong flags are explained', async () => {
  assert.match(await home.fails(2, 'audit search --from soon'), /--from: "soon" must be a time such as/)
  assert.match(await home.fails(2, 'audit search --limit many'), /--limit: "many" must be a whole number/)
  assert.match(await home.fails(2, 'audit search --follow --to 1h'), /--follow cannot be combined with --to/)
  assert.match(
    (await home.run('audit search --code 99')).stderr,
    /code: "99" must be a status code such as 403, or 4xx/,
  )
})

test('--follow prints new events once each, also across a restart of the server', async () => {
  const child = home.start(['audit', 'search', '--resource', 'teams', '--verb', 'create', '--from', '1h', '--follow'])
  let text = ''
  child.stdout?.on('data', chunk => {
    text += chunk
  })
  await eventually('the events so far', async () => text.includes('teams/c'))
  await home.ok('create team live')
  await eventually('the new event', async () => text.includes('teams/live'))
  await server.restart()
  await home.ok('create team after-restart')
  await eventually('the event after the restart', async () => text.includes('teams/after-restart'))
  child.kill()
  const names = [...text.matchAll(/teams\/(\S+)/g)].map(match => match[1])
  assert.deepEqual(names, [...new Set(names)])
  assert.ok(names.indexOf('a') < names.indexOf('live'), 'oldest first')
})
