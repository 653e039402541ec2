// An agent whose lease somebody else takes: it stops writing, and works again after the lease expires.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Lease, Secret } from '../../src/reconcile/kubernetes-kinds.ts'
import { until } from '../support/cluster.ts'
import { base64, openAgentStage, secretFor } from './agent-fixture.ts'

const at = { namespace: 'shop', name: 'token' }

test('stops writing when it loses the lease', async () => {
  const stage = await openAgentStage()
  const { cluster, service, delivered } = stage
  service.put('a', secretFor())
  const agent = stage.start()
  await delivered('shop', 'token', 'first')
  const lease = { namespace: 'platform-agent', name: `platform-agent-${service.uid}` }
  await cluster.people.patch(Lease, lease, { type: 'merge', body: { spec: { holderIdentity: 'somebody else' } } })
  await until('it does not lead', async () => !agent.isLeading)
  const { length } = cluster.writes
  await cluster.people.patch(Secret, at, { type: 'merge', body: { data: { token: base64('edited') } } })
  // It leads again when the other one does not renew the lease.
  await delivered('shop', 'token', 'first')
  assert.ok(agent.isLeading)
  assert.equal(cluster.writes.length, length + 1)
  await stage.close()
})
