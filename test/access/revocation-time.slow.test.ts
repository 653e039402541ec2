// The time until an open watch ends whose key or permission was taken away: at most a second (D17, D18, D27).

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { keys, must, openStage, rbac, type Stage, teams } from './people.ts'

const longest = 1000
const merge = { 'content-type': 'application/merge-patch+json' }

describe('an open watch ends within a second', { timeout: 60_000 }, () => {
  let stage: Stage
  before(async () => {
    stage = await openStage()
    await must(stage.admin.ask('POST', teams, { metadata: { name: 'readers' }, spec: { users: ['ada'] } }))
    const rules = [{ verbs: ['get', 'list', 'watch'], apiGroups: ['management.platform.sh'], resources: ['teams'] }]
    await must(stage.admin.ask('POST', `${rbac}/clusterroles`, { metadata: { name: 'reader' }, rules }))
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'reader' }
    const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'platform:team:readers' }]
    const binding = { metadata: { name: 'readers' }, roleRef, subjects }
    await must(stage.admin.ask('POST', `${rbac}/clusterrolebindings`, binding))
  })
  after(() => stage.close())

  for (const [what, act] of Object.entries({
    'the key is disabled': (key: string) =>
      stage.admin.ask('PATCH', `${keys}/${key}`, { spec: { disabled: true } }, merge),
    'the key is deleted': (key: string) => stage.admin.ask('DELETE', `${keys}/${key}`),
    'the user leaves the team': () => stage.admin.ask('PATCH', `${teams}/readers`, { spec: { users: null } }, merge),
  }))
    test(`after ${what}`, async () => {
      const made = await must(stage.admin.ask('POST', keys, { spec: { user: 'ada' } }))
      const events = stage.person('ada', made.spec.key).watch(`${teams}?watch=1`)
      assert.equal((await events.next()).value?.type, 'ADDED')
      const began = performance.now()
      await must(act(made.metadata.name))
      for await (const _ of events);
      const took = performance.now() - began
      assert.ok(took < longest, `${took} ms`)
    })
})
