// The time that a ProjectSecret takes to follow its source: at most a second (D30). project-secret.test.ts tests how it follows.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { must, openStage, ours, secrets, soon } from '../access/people.ts'

const longest = 1000
const copy = `${ours}/namespaces/p-web/projectsecrets`
const merge = { 'content-type': 'application/merge-patch+json' }

test('a project secret has new data of its source within a second', { timeout: 60_000 }, async t => {
  const { admin, close } = await openStage()
  t.after(close)
  const hasData = (value: string) =>
    soon('the data is copied', async () => (await must(admin.ask('GET', `${copy}/a`))).spec.data?.a === value)
  await must(admin.ask('POST', secrets(), { metadata: { name: 'a' }, spec: { data: { a: 'YQ==' } } }))
  await must(admin.ask('POST', copy, { metadata: { name: 'a' }, spec: { sharedSecretRef: { name: 'a' } } }))
  await hasData('YQ==')
  for (const value of ['Yg==', 'Yw==', 'ZA==']) {
    const began = performance.now()
    await must(admin.ask('PATCH', `${secrets()}/a`, { spec: { data: { a: value } } }, merge))
    await hasData(value)
    const took = performance.now() - began
    assert.ok(took < longest, `${took} ms`)
  }
})
