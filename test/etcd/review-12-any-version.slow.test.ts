// `resourceVersion=0` allows older state for reads. It must not allow writes with permissions that were revoked.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { etcdArgs, startReplicas } from '../support/replicas.ts'
import { type Server, startServer } from '../support/server.ts'
import { lateLink } from '../support/tcp-link.ts'

const ours = '/apis/management.platform.sh/v1'
const teams = `${ours}/teams`
const keys = `${ours}/ownedaccesskeys`

test('a write with resourceVersion=0 and a revoked key is refused', async t => {
  const replicas = await startReplicas({ replicas: 1 })
  t.after(() => replicas.close())
  const [one] = replicas.servers as [Server]
  const link = await lateLink(t, replicas.etcd.endpoints[0] as string)
  const two = await startServer({ args: etcdArgs({ endpoints: [link.endpoint] }), replicaOf: one })
  t.after(() => two.kill())
  const role = await one.request('POST', '/apis/rbac.authorization.k8s.io/v1/clusterroles', {
    body: {
      metadata: { name: 'teams' },
      rules: [{ apiGroups: ['management.platform.sh'], resources: ['teams'], verbs: ['*'] }],
    },
  })
  assert.equal(role.status, 201, JSON.stringify(role.body))
  const bound = await one.request('POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
    body: {
      metadata: { name: 'eve' },
      subjects: [{ kind: 'User', name: 'eve', apiGroup: 'rbac.authorization.k8s.io' }],
      roleRef: { kind: 'ClusterRole', name: 'teams', apiGroup: 'rbac.authorization.k8s.io' },
    },
  })
  assert.equal(bound.status, 201, JSON.stringify(bound.body))
  const { body } = await one.request('POST', keys, { body: { metadata: { name: 'k' }, spec: { user: 'eve' } } })
  const key = body.spec.key as string
  const write = (name: string, query: string) =>
    two.request('POST', `${teams}${query}`, { key, body: { metadata: { name } } })
  assert.equal((await write('before', '')).status, 201)
  link.delay(800)
  assert.equal((await one.request('DELETE', `${keys}/k`)).status, 200)
  // All of them begin after the key is gone.
  const [any, confirmed] = await Promise.all([write('any', '?resourceVersion=0'), write('confirmed', '')])
  assert.deepEqual([any.status, confirmed.status], [401, 401])
})
