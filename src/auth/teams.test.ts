// Who is in which team: what has to be known of a team, told by its bytes (D17, D23).

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openHouse } from '../../test/support/in-process.ts'
import { Team } from '../kinds/team.ts'
import { openTeams } from './teams.ts'

test('the other name of a team is known whatever its labels and annotations are called (D23)', async () => {
  const house = await openHouse()
  const marked = { username: 'web' }
  const made: [string, object][] = [
    ['web', { metadata: { annotations: marked }, spec: { username: 'shop' } }],
    ['web2', { metadata: { labels: { username: 'web2' } }, spec: { username: 'store' } }],
    ['plain', { spec: {} }],
    ['marked', { metadata: { annotations: { username: 'else', note: '"username":"marked"' } }, spec: {} }],
  ]
  for (const [name, { metadata, spec }] of made as [string, { metadata?: object; spec: object }][])
    await house.resources.create(Team, '', { metadata: { name, ...metadata }, spec } as never)
  const teams = openTeams({
    resources: house.inside,
    look: () => undefined,
    changed: () => {},
    failed: error => assert.fail(String(error)),
  })
  await teams.ready
  assert.deepEqual([teams.withUsername('shop'), teams.withUsername('store')], ['web', 'web2'])
  assert.ok(![...teams.all()].some(({ name }) => name === 'plain'), 'one that says nothing about anybody is not kept')
  teams.stop()
  await house.close()
})
