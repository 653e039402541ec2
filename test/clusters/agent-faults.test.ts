// The agent when its setup or its cluster is in the way: missing permissions, finalizers, a cluster that is created again.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { ApiError } from '../../src/api/errors.ts'
import { Secret } from '../../src/reconcile/kubernetes-kinds.ts'
import type { Denial } from '../support/agent-cluster.ts'
import { until } from '../support/cluster.ts'
import { type AgentStage, base64, openAgentStage, secretFor } from './agent-fixture.ts'

const at = { namespace: 'shop', name: 'token' }

describe('the agent', () => {
  let stage: AgentStage
  beforeEach(async () => {
    stage = await openAgentStage()
  })
  afterEach(() => stage.close())
  const noSecretsIn =
    (namespace: string): Denial =>
    (_, kind, where) =>
      kind === Secret && where.namespace === namespace
        ? new ApiError(403, 'Forbidden', `secrets is forbidden in ${namespace}`)
        : undefined

  test('reports namespaces without permission, and works in the others', async () => {
    const { cluster, service, problem, delivered, noProblems } = stage
    cluster.namespaces.set('jobs', 'Active')
    cluster.deny = noSecretsIn('jobs')
    service.put('a', secretFor())
    service.put('b', secretFor({ namespace: 'jobs' }))
    const agent = stage.start()
    await delivered('shop', 'token', 'first')
    const { secret, namespace, name, message } = await problem('Forbidden')
    assert.deepEqual([secret, namespace, name], ['p-shop/token', 'jobs', 'token'])
    assert.equal(message, 'secrets is forbidden in jobs')
    cluster.deny = () => undefined
    await delivered('jobs', 'token', 'first')
    await noProblems()
    await agent.stop()
    // It must delete there, and may not look.
    cluster.deny = noSecretsIn('jobs')
    service.remove('b')
    stage.start()
    await until('the namespace is reported', async () => (await problem('Forbidden'))['secret'] === undefined)
    cluster.deny = () => undefined
    await until('it is deleted', async () => (await cluster.secret('jobs', 'token')) === undefined)
    await noProblems()
  })

  test('without its own namespace it cannot lead, and reports that', async () => {
    const { cluster, service, problem, delivered, noProblems } = stage
    cluster.namespaces.delete('platform-agent')
    service.put('a', secretFor())
    const agent = stage.start()
    assert.match((await problem('NotFound'))['message'] ?? '', /"platform-agent" not found/)
    assert.equal(agent.isLeading, false)
    cluster.namespaces.set('platform-agent', 'Active')
    await delivered('shop', 'token', 'first')
    await noProblems()
  })

  test('does not fight at full speed with a program that keeps changing a Secret', async () => {
    const { cluster, service, problem, delivered } = stage
    service.put('a', secretFor())
    stage.start()
    await delivered('shop', 'token', 'first')
    for (let n = 0; n < 6; n++) {
      const body = { data: { token: base64(`edited ${n}`) } }
      await cluster.people.patch(Secret, at, { type: 'merge', body })
      await delivered('shop', 'token', 'first')
    }
    assert.equal((await problem('Contested'))['secret'], 'p-shop/token')
    assert.equal(cluster.writes.length, 7)
    service.put('a', secretFor({ value: 'second' }))
    await delivered('shop', 'token', 'second')
    await stage.noProblems()
  })

  test('waits for the finalizers of others', async () => {
    const { cluster, service, problem, delivered, noProblems } = stage
    service.put('a', secretFor())
    stage.start()
    const { metadata } = await delivered('shop', 'token', 'first')
    const patch = (finalizers: readonly string[] | null) =>
      cluster.people.patch(Secret, at, { type: 'merge', body: { metadata: { finalizers } } })
    await patch(['example.org/wait'])
    service.remove('a')
    await until('it is being deleted', async () => (await cluster.secret('shop', 'token'))?.metadata.deletionTimestamp)
    service.put('a', secretFor({ value: 'second' }))
    await problem('Terminating')
    await patch(null)
    assert.notEqual((await delivered('shop', 'token', 'second')).metadata.uid, metadata.uid)
    await noProblems()
  })

  test('objects of a cluster that was deleted and created again are foreign', async () => {
    const { cluster, service, delivered, problem } = stage
    service.put('a', secretFor())
    stage.start()
    await delivered('shop', 'token', 'first')
    const before = service.uid
    service.uid = randomUUID()
    service.put('b', secretFor({ name: 'other' }))
    const { metadata } = await delivered('shop', 'other', 'first')
    assert.equal(metadata.labels?.['platform.sh/cluster-uid'], service.uid)
    await problem('SecretExists')
    service.remove('a')
    await stage.noProblems()
    const old = await cluster.secret('shop', 'token')
    assert.equal(old?.metadata.labels?.['platform.sh/cluster-uid'], before)
  })
})
