// The agent with 100 secrets in each of 50 namespaces: all of them arrive, once each, with a bounded number of requests at a time.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { until } from '../support/cluster.ts'
import { type AgentStage, openAgentStage, secretFor } from './agent-fixture.ts'

const [namespaces, secrets] = [50, 100]
const all = namespaces * secrets
let stage: AgentStage
before(async () => {
  stage = await openAgentStage()
})
after(() => stage.close())

test('delivers 5,000 Secrets from cold, and removes most of them after a restart', { timeout: 300_000 }, async t => {
  const { cluster, service, settled } = stage
  for (let n = 0; n < namespaces; n++) {
    cluster.namespaces.set(`shop-${n}`, 'Active')
    for (let s = 0; s < secrets; s++)
      service.put(`${n}-${s}`, secretFor({ namespace: `shop-${n}`, name: `token-${s}`, value: `value ${n} ${s}` }))
  }
  const begun = performance.now()
  const agent = stage.start()
  await until('everything is delivered', async () => agent.counts().secrets === all, 120_000)
  t.diagnostic(`${all} Secrets in ${Math.round(performance.now() - begun)} ms`)
  assert.equal(cluster.writes.length, all)
  assert.equal(new Set(cluster.writes).size, all)
  // 16 writes, and the lists of the namespaces before them.
  assert.ok(cluster.mostInFlight() <= namespaces + 16, String(cluster.mostInFlight()))
  await settled()
  await agent.stop()
  cluster.writes.length = 0
  for (let n = 0; n < namespaces; n++) for (let s = 1; s < secrets; s++) if (n % 10 === 0) service.remove(`${n}-${s}`)
  const again = stage.start()
  const left = all - (namespaces / 10) * (secrets - 1)
  await until(
    'the others are gone',
    async () => again.counts().secrets === left && again.counts().problems === 0,
    120_000,
  )
  assert.equal(cluster.writes.length, all - left)
  assert.ok(cluster.writes.every(write => write.startsWith('delete ')))
})
