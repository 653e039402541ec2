// Security review 11: the garbage collector deletes no User for somebody who may not enable it.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startServer } from '../support/server.ts'

const ours = '/apis/management.platform.sh/v1'
const rbac = '/apis/rbac.authorization.k8s.io/v1'
const merge = { 'content-type': 'application/merge-patch+json' }

test('a manager of Users cannot give a User with more permissions an owner, whose deletion would delete it', async () => {
  const server = await startServer({ storage: 'memory', inProcess: true })
  try {
    const made = async (path: string, body: object, key?: string) => {
      const answer = await server.request('POST', path, { body, ...(key ? { key } : {}) })
      assert.equal(answer.status, 201, answer.text)
      return answer.body
    }
    const eve = (await made(`${ours}/ownedaccesskeys`, { metadata: { name: 'eve' }, spec: { user: 'eve' } })).spec.key
    const apiGroups = ['management.platform.sh']
    const rules = [
      { apiGroups, resources: ['users'], verbs: ['get', 'list', 'update', 'patch', 'delete'] },
      { apiGroups, resources: ['teams'], verbs: ['create'] },
    ]
    await made(`${rbac}/clusterroles`, { metadata: { name: 'user-manager' }, rules })
    const apiGroup = 'rbac.authorization.k8s.io'
    const bind = (name: string, role: string, user: string) =>
      made(`${rbac}/clusterrolebindings`, {
        metadata: { name },
        roleRef: { apiGroup, kind: 'ClusterRole', name: role },
        subjects: [{ apiGroup, kind: 'User', name: user }],
      })
    await bind('eve', 'user-manager', 'eve')
    await bind('boss', 'platform-admin', 'boss')
    await made(`${ours}/users`, { metadata: { name: 'boss' }, spec: { username: 'boss' } })
    const path = `${ours}/users/boss`
    const { metadata } = await made(`${ours}/teams`, { metadata: { name: 'bait' }, spec: {} }, eve)
    const ownerReferences = [{ apiVersion: 'management.platform.sh/v1', kind: 'Team', name: 'bait', uid: metadata.uid }]
    const linked = await server.request('PATCH', path, {
      key: eve,
      headers: merge,
      body: { metadata: { ownerReferences } },
    })
    assert.equal(linked.status, 403, linked.text)
  } finally {
    await server.stop()
  }
})
