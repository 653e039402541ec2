// The namespaces that the agent remembers: recorded before the first write, forgotten after the last Secret.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiError } from '../../src/api/errors.ts'
import { labelsOf } from '../../src/gateway/agent/marks.ts'
import { openNamespaceRecord } from '../../src/gateway/agent/namespace-record.ts'
import { openSecretWatches } from '../../src/gateway/agent/secret-watches.ts'
import { Secret } from '../../src/reconcile/kubernetes-kinds.ts'
import { openAgentCluster } from '../support/agent-cluster.ts'
import { until } from '../support/cluster.ts'

test('a namespace is watched after it is recorded, and forgotten when it is empty and nobody wants it', async () => {
  const cluster = await openAgentCluster()
  const { people } = cluster
  const at = { namespace: 'platform-agent', name: 'platform-agent-u' }
  const record = openNamespaceRecord(people, at, 'u')
  let isBroken = true
  const changed: string[] = []
  const watches = openSecretWatches({
    resources: people,
    record: {
      read: record.read,
      write: async namespaces => {
        if (isBroken) throw new ApiError(403, 'Forbidden', 'no permission')
        await record.write(namespaces)
      },
    },
    uid: 'u',
    changed: key => changed.push(key),
    moved: () => {},
    failed: () => {},
    wait: () => new Promise(setImmediate),
    signal: new AbortController().signal,
  })
  const isReady = (namespace: string) =>
    until(`${namespace} is ready`, async () => watches.state(namespace) === 'ready')
  const isRecorded = (...names: string[]) =>
    until(`recorded: ${names}`, async () => [...(await record.read())].join() === names.join())
  await cluster.createSecret({ metadata: { namespace: 'a', name: 'token', labels: labelsOf('u') } })
  watches.watch(new Set(['a', 'b']), false)
  await until('the error', async () => watches.state('a') instanceof ApiError)
  isBroken = false
  await isReady('a')
  await isReady('b')
  await isRecorded('a', 'b')
  assert.deepEqual(changed, ['Secret/a/token'])
  watches.watch(new Set(), false)
  await isRecorded('a', 'b')
  watches.watch(new Set(), true)
  await isRecorded('a')
  assert.equal(watches.state('b'), undefined)
  await people.delete(Secret, { namespace: 'a', name: 'token' })
  await until('the deletion is seen', async () => watches.size === 0)
  watches.watch(new Set(['c']), true)
  await isRecorded('c')
  watches.stop()
  await cluster.close()
})
