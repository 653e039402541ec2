// The same gateway inside `platform serve`: the central route, over the server's own listener.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { keys, must, teams } from '../access/people.ts'
import { openRequests } from '../support/request.ts'
import { startServer } from '../support/server.ts'
import { eventually, openBare } from '../support/wire.ts'
import { invite, sendTooMuch } from './gateway-fixture.ts'

test('the server proxies to clusters itself with gateway.config, with the same rules', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'platform-central-'))
  const cluster = await startServer({ storage: 'memory' })
  const file = join(directory, 'gateway.yaml')
  const config = {
    apiVersion: 'config.platform.sh/v1',
    kind: 'GatewayConfig',
    identity: { userPrefix: 'platform-', groupPrefix: 'platform-' },
    clusters: [{ name: 'prod', kubeconfig: cluster.kubeconfig }],
  }
  writeFileSync(file, JSON.stringify({ ...config, listen: '127.0.0.1:1', spaces: [{}] }))
  await assert.rejects(
    startServer({ storage: 'memory', args: ['--gateway-config', file] }),
    /listen is only for a standalone gateway[\s\S]*spaces\[0\]\.name is missing/,
  )
  writeFileSync(file, JSON.stringify(config))
  const service = await startServer({ storage: 'memory', args: ['--gateway-config', file] })
  const { request, watch } = openRequests({ base: service.https, ca: service.ca, key: '' })
  try {
    const ada = await invite(service, 'ada')
    const token = await ada.mint()
    const review = '/kubernetes/cluster/prod/apis/authentication.k8s.io/v1/selfsubjectreviews'
    for (const key of [token, ada.key]) {
      const { status } = await must(request('POST', review, { key, body: { spec: {} } }))
      assert.equal(status.userInfo.username, 'platform-ada')
      assert.ok(status.userInfo.groups.includes('platform-platform:user:ada'))
      assert.ok(status.userInfo.groups.includes('system:authenticated'))
    }
    assert.equal((await request('GET', '/kubernetes/cluster/prod/api/v1/namespaces', { key: token })).status, 403)
    assert.equal((await request('GET', '/kubernetes/cluster/dev/api', { key: token })).status, 404)
    const misplaced = await request('GET', `/kubernetes/management${teams}`, { key: token })
    assert.equal(misplaced.status, 401)
    assert.match(misplaced.body.message, /^this is a direct-cluster token, /)
    const huge = await openBare(service.https, { ca: service.ca })
    const lines = [
      'GET /kubernetes/cluster/prod/api HTTP/1.1',
      'Host: a',
      `Authorization: Bearer ${'A'.repeat(1024 * 1024)}`,
    ]
    huge.socket.write(`${lines.join('\r\n')}\r\n\r\n`)
    assert.match(await huge.ended(), /^HTTP\/1\.1 401 [\s\S]*"reason":"Unauthorized"/)
    assert.equal((await request('GET', `/kubernetes/management${teams}`, { key: ada.key })).status, 200)
    const rules = { roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'platform-admin' } }
    const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'platform-ada' }]
    const body = { metadata: { name: 'ada' }, ...rules, subjects }
    await must(cluster.request('POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', { body }))
    await must(cluster.request('POST', teams, { body: { metadata: { name: 'crew' }, spec: {} } }))
    const watching = watch(`/kubernetes/cluster/prod${teams}`, { key: token })
    assert.equal((await watching.next()).value?.object.metadata.name, 'crew')
    await must(service.request('DELETE', `${keys}/${ada.name}`))
    const told = []
    for await (const { type, object } of watching) told.push(`${type} ${(object as { code?: number }).code}`)
    assert.deepEqual(told, ['ERROR 401'])
    await eventually('key and token are refused', async () => {
      const codes = await Promise.all([token, ada.key].map(key => request('POST', review, { key, body: { spec: {} } })))
      return codes.every(({ status }) => status === 401)
    })
    await sendTooMuch(service.https, service.ca)
    await eventually('it is counted', async () => {
      const { text } = await request('GET', '/metrics', { key: service.adminKey })
      return /^gateway_broken_connections_total{why="Protocol error"} 1$/m.test(text)
    })
    const metrics = await request('GET', '/metrics', { key: service.adminKey })
    assert.match(metrics.text, /^gateway_requests_total{target="Cluster",code="401"} \d+$/m)
  } finally {
    await Promise.all([service.stop(), cluster.stop()])
    rmSync(directory, { recursive: true })
  }
})
