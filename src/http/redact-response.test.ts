// An answer to a write shows its caller what they may get of the very object in it.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Resource } from '../api/object.ts'
import { documentOf } from '../api/resources.ts'
import type { Authorizer } from '../auth/authz/authorize.ts'
import { SharedSecret } from '../kinds/shared-secret.ts'
import { redactResponse } from './redact-response.ts'
import type { ResourceInfo } from './request-info.ts'

const secretOf = (user: string): Resource => ({
  apiVersion: SharedSecret.apiVersion,
  kind: 'SharedSecret',
  metadata: { name: 'a', namespace: 'default', managedFields: [] },
  spec: { owner: { user }, data: { p: 'VklDVElN' } },
})
/** Under the name, dora has an object of her own by now. */
const authorizer = {
  decide: (caller, _question, object = secretOf('dora')) => {
    const { spec } = typeof object === 'function' ? object() : object
    return { allowed: (spec as { owner: { user: string } }).owner.user === caller?.username, reason: '' }
  },
} as Authorizer
const dora = { username: 'dora', groups: [] }
const info = { kind: SharedSecret } as unknown as ResourceInfo

test('permission to see a deleted object depends on that object, not on the one that has its name now', () => {
  const shown = (user: string) =>
    redactResponse(
      { type: 'list', list: { items: [documentOf(secretOf(user))], resourceVersion: '1' } },
      info,
      dora,
      authorizer,
    )
  assert.equal(JSON.stringify(shown('victim')).includes('VklDVElN'), false)
  const { list } = shown('dora') as Extract<ReturnType<typeof shown>, { type: 'list' }>
  assert.deepEqual(list.items[0]?.object.spec, secretOf('dora').spec)
})

test('managedFields, which contain values of sets, are not shown without get', () => {
  const document = documentOf(secretOf('victim'))
  const answer = redactResponse({ type: 'document', code: 200, document }, info, dora, authorizer)
  const { object } = (answer as Extract<typeof answer, { type: 'document' }>).document
  assert.deepEqual(object.metadata, { name: 'a', namespace: 'default' })
})
