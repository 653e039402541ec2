// Records of usernames of teams do not accumulate, however often a team changes its username.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TeamUsernameRecord } from '../../src/kinds/team-username-record.ts'
import { send } from '../support/direct-http.ts'
import { openDirectServer } from '../support/direct-server.ts'

const teams = '/kubernetes/management/apis/management.platform.sh/v1/teams'

test('a team keeps only the record of its current username, and a deleted team none', async () => {
  const server = await openDirectServer({ now: () => Date.UTC(2026, 0, 2) })
  const ask = (method: string, url: string, body?: object) =>
    send(server.handle, {
      method,
      url,
      headers: {
        authorization: `Bearer ${server.adminKey}`,
        'content-type': method === 'PATCH' ? 'application/merge-patch+json' : 'application/json',
      },
      body: body ? JSON.stringify(body) : '',
    })
  const records = async () => {
    await server.controllers.idle()
    const { items } = await server.apiServer.internalClient.list(TeamUsernameRecord, {})
    return items.map(({ ref }) => ref.name)
  }
  const rename = (name: string, username: string) => ask('PATCH', `${teams}/${name}`, { spec: { username } })
  try {
    assert.equal((await ask('POST', teams, { metadata: { name: 'web' }, spec: { username: 'shop' } })).code, 201)
    for (let round = 0; round < 20; round++) assert.equal((await rename('web', `shop-${round}`)).code, 200)
    assert.deepEqual(await records(), ['shop-19'])
    // A username that a team gave up is free, and its record follows the new owner.
    assert.equal((await ask('POST', teams, { metadata: { name: 'other' }, spec: { username: 'shop-19' } })).code, 422)
    assert.equal((await rename('web', 'web')).code, 200)
    assert.equal((await ask('POST', teams, { metadata: { name: 'other' }, spec: { username: 'shop-19' } })).code, 201)
    assert.deepEqual(await records(), ['shop-19'])
    assert.equal((await ask('DELETE', `${teams}/other`)).code, 200)
    assert.deepEqual(await records(), [])
  } finally {
    await server.close()
  }
})
