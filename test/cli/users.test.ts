// Users on the command line: list, link and offboard (D63, D65).

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { openHome, signedIn } from '../support/cli-home.ts'

const { server, home } = await signedIn()
const ada = await openHome()
after(() => ada.close())
await ada.signIn(server, (await home.ok('create accesskey ada --for-user ada')).trim())

const issuer = 'https://login.example'

test('link user creates the User, links it, and list users shows it', async () => {
  await home.fails(2, 'link user grace')
  await home.ok(`link user corp:grace --provider corp --subject 42 --issuer ${issuer} --dry-run server`)
  assert.doesNotMatch(await home.ok('list users'), /corp:grace/)
  const linked = await home.ok(`link user corp:grace --provider corp --subject 42 --issuer ${issuer}`)
  assert.match(linked, /^user\/corp-grace-[0-9a-f]{8} linked to 42 at corp\n$/)
  await home.ok(`link user corp:grace --provider corp --subject 42 --issuer ${issuer}`)
  const table = await home.ok('list users')
  assert.match(table, /^NAME +USERNAME +DISPLAY-NAME +DISABLED +LAST-ACTIVITY/)
  assert.match(table, /corp-grace-\w+ +corp:grace +/)
  const { items } = JSON.parse(await home.ok('list users -o json'))
  assert.equal(items[0].status.identities.length, 1)
  await home.fails(6, `link user other --provider corp --subject 42 --issuer ${issuer}`)
})

test('offboard disables the user, and lists what the user owns', async () => {
  const body = { metadata: { name: 'db' }, spec: { owner: { user: 'ada' } } }
  const path = '/apis/management.platform.sh/v1/namespaces/default/sharedsecrets'
  assert.equal((await server.request('POST', path, { body })).status, 201)
  await ada.ok('whoami')
  assert.match(await home.fails(2, 'offboard ada'), /Use --yes/)
  const left = await home.ok('offboard ada --yes')
  assert.match(left, /^user\/ada created, disabled\nada still owns:\n/)
  assert.match(left, /sharedsecret +default +db\n/)
  assert.match(left, /ownedaccesskey +ada\n/)
  assert.match(await ada.fails(4, 'list teams'), /disabled/)
  assert.match(await home.ok('offboard ada --yes'), /^user\/ada unchanged: it is disabled already\n/)
  assert.match(await home.ok('offboard nobody --yes'), /nobody owns nothing that you can see\n/)
})
