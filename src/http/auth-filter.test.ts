// Authorization after the first check: the target of a write, and watches that lose their permission.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Resource } from '../api/object.ts'
import { SharedSecret } from '../kinds/shared-secret.ts'
import type { Exchange } from '../serving/exchange.ts'
import { type Access, type AuthResult, reauthorizeWatch } from './auth-filter.ts'
import { checkTarget } from './write-check.ts'

const question = {
  verb: 'delete',
  target: { group: SharedSecret.group, resource: 'sharedsecrets', namespace: 'default', name: 'a' },
}
const object = (uid: string, user = 'ada'): Resource => ({
  apiVersion: SharedSecret.apiVersion,
  kind: 'SharedSecret',
  metadata: { name: 'a', namespace: 'default', uid },
  spec: { owner: { user } },
})
const caller = { username: 'ada', groups: [] }
const authResult = (granting?: Resource): AuthResult => ({
  caller,
  verdict: { answer: 'yes', reason: '', ...(granting ? { object: granting } : {}) },
})
const access = {
  authenticate: () => caller,
  prepare: () => undefined,
  authorizer: {
    authorize: () => ({ answer: 'no', reason: '' }),
    decide: (_: unknown, __: unknown, stored: Resource) => ({
      allowed: (stored.spec as { owner: { user: string } }).owner.user === 'ada',
      reason: '',
    }),
  },
  permissionVersions: { current: () => 0, isAffected: () => false, step: () => {} },
  permissionsChanged: (callback: (affects: () => boolean) => void) => {
    callback(() => true)
    return () => {}
  },
} as unknown as Access

test('a permission granted by an object applies to that object, as long as the object grants it', () => {
  assert.equal(checkTarget(access, authResult(), question, SharedSecret), undefined, 'a role gave it')
  const check = checkTarget(access, authResult(object('one')), question, SharedSecret)
  assert.ok(check)
  check(object('one'))
  assert.throws(() => check(object('two')), { code: 409 })
  assert.throws(() => check(object('one', 'bob')), { code: 403 })
  assert.throws(() => check(undefined), { code: 404 })
})

test('a watch that loses permission while it opens ends immediately', () => {
  const exchange = { request: { headers: {}, httpVersionMajor: 1, socket: {} } } as unknown as Exchange
  const watching = reauthorizeWatch(access, exchange, { ...question, verb: 'watch' }, authResult())
  let ended = false
  watching.onDenied(() => {
    ended = true
  })
  watching.close()
  assert.equal(ended, true)
})

test('a watch uses changed permissions before it is notified', () => {
  const exchange = { request: { headers: {}, httpVersionMajor: 1, socket: {} } } as unknown as Exchange
  let version = 0
  const permissionVersions = { current: () => version, isAffected: () => true, step: () => {} }
  const later = { ...access, permissionVersions, permissionsChanged: () => () => {} }
  const first: AuthResult = {
    caller,
    verdict: { answer: 'only', reason: '', filter: () => true, among: () => undefined },
  }
  const watching = reauthorizeWatch(later, exchange, { ...question, verb: 'watch' }, first)
  assert.equal(watching.selection.only?.(object('one')), true)
  assert.equal(watching.isAllowed(), true)
  version++
  assert.equal(watching.selection.only?.(object('one')), false)
  assert.equal(watching.isAllowed(), false)
  watching.close()
})
