// Impersonation headers: how names are read from them (wire §1.16).

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Caller } from '../../api/caller.ts'
import { impersonate } from './impersonate.ts'

const admin: Caller = { identity: 'User', username: 'admin', groups: [] }
const act = (headers: { [name: string]: string }) =>
  impersonate(admin, headers, { decide: () => ({ allowed: true, reason: '' }), teamNamed: text => text })
/** In Node's encoding. */
const asHeader = (text: string) => Buffer.from(text).toString('latin1')

test('names outside ASCII are read as UTF-8', () => {
  const { username, groups } = act({ 'impersonate-user': asHeader('zoë'), 'impersonate-group': asHeader('日本, ops') })
  assert.equal(username, 'zoë')
  assert.deepEqual(groups, ['日本', 'ops', 'system:authenticated'])
})

test('a header that is not valid UTF-8 is 400', () => {
  for (const name of ['impersonate-user', 'impersonate-group', 'impersonate-uid', 'impersonate-extra-a'])
    assert.throws(() => act({ 'impersonate-user': 'ada', [name]: 'zo\xeb' }), { code: 400 }, name)
})

test('the key of an extra is percent-encoded; an invalid encoding is 400', () => {
  const { extra } = act({ 'impersonate-user': 'ada', 'impersonate-extra-example.com%2fteam': 'web' })
  assert.deepEqual(extra, { 'example.com/team': ['web'] })
  for (const key of ['%', '%zz', '%ff'])
    assert.throws(() => act({ 'impersonate-user': 'ada', [`impersonate-extra-${key}`]: 'x' }), { code: 400 }, key)
})
