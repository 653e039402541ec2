// "Global Secret", the name of SharedSecrets for users: every command and kubectl understand it.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { signedIn } from '../support/cli-home.ts'

const { server, home } = await signedIn({ storage: 'memory' })

test('commands accept globalsecret and globalsecrets for secret', async () => {
  await home.ok('set globalsecret db password=-', { stdin: 'canary-global' })
  assert.equal(await home.ok('get globalsecret db.password'), 'canary-global')
  assert.equal(await home.ok('get globalsecret db'), await home.ok('get secret db'))
  assert.equal(await home.ok('list globalsecrets'), await home.ok('list secrets'))
  assert.equal(await home.ok('list globalsecret'), await home.ok('list secrets'))
  assert.equal(await home.ok('history globalsecret db -o name'), 'db@1\n')
  assert.equal(await home.ok('get globalsecrets/db -o name'), 'sharedsecret/db\n')
  assert.equal(await home.ok('can-i get globalsecrets'), await home.ok('can-i get secrets'))
  assert.match(await home.ok('help get globalsecret'), /^Show the keys of a secret/)
  assert.equal(await home.ok('delete globalsecret db --yes'), 'sharedsecret/db deleted\n')
})

test('discovery has the short names, and help the name', async () => {
  const { body } = await server.request('GET', '/apis/management.platform.sh/v1')
  const { shortNames } = body.resources.find((one: { name: string }) => one.name === 'sharedsecrets')
  assert.deepEqual(shortNames, ['shs', 'globalsecret', 'globalsecrets'])
  assert.match(await home.ok('get secret --help'), /global secret/i)
  assert.match(await home.ok('--help'), /^Global secrets and project secrets:$/m)
})
