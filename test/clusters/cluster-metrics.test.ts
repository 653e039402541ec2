// The metric of connected clusters by state, which the alert about disconnected clusters uses.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { must } from '../access/people.ts'
import { startServer } from '../support/server.ts'
import { eventually, openWire } from '../support/wire.ts'

const clusters = '/apis/management.platform.sh/v1/clusters'

test('platform_clusters counts the clusters by state', async t => {
  const server = await startServer({ storage: 'memory' })
  t.after(() => server.stop())
  const create = (name: string, spec: object = {}) =>
    must(server.request('POST', clusters, { body: { metadata: { name }, spec } }))
  const report = (name: string, lastContact: string) =>
    must(
      server.request('PATCH', `${clusters}/${name}/status`, {
        body: { status: { lastContact } },
        headers: { 'content-type': 'application/merge-patch+json' },
      }),
    )
  await create('new')
  await create('off', { disabled: true })
  await create('up')
  await create('silent')
  await report('up', new Date().toISOString())
  await report('silent', '2020-01-01T00:00:00Z')
  let last = ''
  await eventually('every cluster is counted', async () => {
    const { text } = await openWire(server)('/metrics')
    last = [...text.matchAll(/^platform_clusters\{state="(\w+)"\} (\d+)$/gm)]
      .map(([, state, count]) => `${state} ${count}`)
      .join()
    return last === 'connected 1,disconnected 1,never_connected 1,disabled 1'
  }).catch(error => assert.fail(`${(error as Error).message}: ${last}`))
})
