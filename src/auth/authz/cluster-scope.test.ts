// The scope of a token for one cluster is within the scope of the caller, and about no other cluster.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Scope } from '../../api/caller.ts'
import { scopeForCluster } from './cluster-scope.ts'
import { allows, isNoWider } from './scope.ts'

const act = { verb: 'list', group: '', resource: 'pods', namespace: 'shop' }
const pods = [{ group: '', resources: ['pods'] }]
const scopes: readonly (Scope | undefined)[] = [
  undefined,
  {},
  { clusters: [] },
  { clusters: [{ cluster: 'prod' }, { cluster: 'dev' }] },
  { clusters: [{ cluster: '*' }] },
  { clusters: [{ cluster: 'dev' }] },
  { projects: [{ project: 'shop' }] },
  { roles: [{ role: 'agent' }], allowPlatformCli: true },
  { rules: [{ verbs: ['list'], resources: pods }] },
  { rules: [{ cluster: 'prod', verbs: ['get'] }, { cluster: 'dev' }] },
  { rules: [{ cluster: '*', resources: pods, requestTargets: ['Cluster', 'ProjectSpace'] }] },
  { rules: [{ requestTargets: ['ProjectSpace'] }] },
  { rules: [{ virtualClusters: [{ name: 'a', namespace: 'p-b' }], verbs: ['list'] }] },
  { clusters: [{ cluster: 'dev' }], rules: [{ cluster: 'prod', namespaces: ['shop'] }] },
]

test('it allows in that cluster what the scope allows, and nothing anywhere else', () => {
  for (const scope of scopes) {
    const own = scopeForCluster(scope, 'prod')
    for (const verb of ['list', 'get', 'delete'])
      for (const namespace of ['shop', 'other']) {
        const wanted = { ...act, verb, namespace }
        const here = { target: 'Cluster', cluster: 'prod', act: wanted } as const
        const text = JSON.stringify({ scope, own, wanted })
        assert.equal(allows(own, here) !== undefined, allows(scope, here) !== undefined, text)
        assert.equal(allows(own, { ...here, cluster: 'dev' }), undefined, text)
        assert.equal(allows(own, { target: 'ProjectSpace', project: 'shop', space: 'a', act: wanted }), undefined, text)
        assert.equal(allows(own, { target: 'Management', act: wanted }), undefined, text)
      }
  }
  assert.ok(isNoWider(scopeForCluster({ clusters: [{ cluster: '*' }] }, 'prod'), { clusters: [{ cluster: '*' }] }))
})
