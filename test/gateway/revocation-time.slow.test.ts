// The time that a revocation takes to reach a gateway: at most five seconds (D33). The fast suites test its effect.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { must, ours, rbac, teams } from '../access/people.ts'
import { eventually } from '../support/wire.ts'
import { type GatewayProcess, type GatewayStage, openGatewayStage } from './gateway-fixture.ts'

const longest = 5000
const path = `/kubernetes/cluster/prod${teams}`

describe('a revocation takes effect within five seconds:', { timeout: 120_000 }, () => {
  let stage: GatewayStage
  let gateway: GatewayProcess
  before(async () => {
    stage = await openGatewayStage(['prod'])
    gateway = stage.gateways[0] as GatewayProcess
    const [cluster] = stage.clusters
    const body = {
      metadata: { name: 'ada' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'platform-admin' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'ada' }],
    }
    if (cluster) await must(cluster.request('POST', `${rbac}/clusterrolebindings`, { body }))
    if (cluster) await must(cluster.request('POST', teams, { body: { metadata: { name: 'crew' }, spec: {} } }))
  })
  after(() => stage.close())

  for (const credential of ['token', 'key'] as const)
    test(`the gateway ends watches of a deleted key, and rejects requests, with the ${credential}`, async () => {
      const guest = await stage.invite('ada')
      const key = credential === 'key' ? guest.key : await guest.mint()
      const watch = gateway.watch(path, { key })
      assert.equal((await watch.next()).value?.object.metadata.name, 'crew')
      const began = performance.now()
      await must(stage.service.request('DELETE', `${ours}/ownedaccesskeys/${guest.name}`))
      for await (const _ of watch);
      await eventually('the credential is rejected', async () => {
        const { status } = await gateway.request('GET', path, { key })
        return status === 401
      })
      const took = performance.now() - began
      assert.ok(took < longest, `${took} ms`)
    })
})
