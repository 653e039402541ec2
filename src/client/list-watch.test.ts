// Tests follow with objects that its caller has read before.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Resources } from '../api/resources.ts'
import { Team } from '../kinds/team.ts'
import { follow } from './list-watch.ts'

test('an object that was deleted between the read of the caller and the first list is yielded as DELETED', async () => {
  const resources = {
    list: async () => ({ items: [], resourceVersion: '7' }),
    watch: async () => assert.fail('the list comes first'),
  } as unknown as Pick<Resources, 'list' | 'watch'>
  const gone = { apiVersion: Team.apiVersion, kind: Team.kind, metadata: { name: 'gone' } }
  for await (const { type, object } of follow(resources, Team, { known: [gone] })) {
    assert.deepEqual([type, object.metadata.name], ['DELETED', 'gone'])
    break
  }
})
