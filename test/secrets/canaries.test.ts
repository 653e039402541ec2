// Values of secrets, their copies and their history appear only in responses to requests for them (D28, D35).

import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { must, ours, secrets, soon } from '../access/people.ts'
import { startServer } from '../support/server.ts'

const merge = { 'content-type': 'application/merge-patch+json' }
const copies = `${ours}/namespaces/p-web/projectsecrets`
const policy = { apiVersion: 'audit.k8s.io/v1', kind: 'Policy', rules: [{ level: 'RequestResponse' }] }

test('no value of a secret, a copy or a version is in the data directory, the log or the most verbose audit log', async () => {
  const values = Array.from({ length: 4 }, (_, index) => `canary-${index}-${'0123456789abcdef'.repeat(2)}`)
  const encoded = values.map(value => Buffer.from(value).toString('base64'))
  const directory = mkdtempSync(join(tmpdir(), 'platform-canaries-'))
  writeFileSync(join(directory, 'policy.json'), JSON.stringify(policy))
  const args = ['--log-level', 'debug', '--audit-policy', join(directory, 'policy.json')]
  const server = await startServer({ directory, args })
  try {
    const path = `${secrets()}/cage`
    const data = (index: number) => ({ spec: { data: { bird: encoded[index] } } })
    await must(server.request('POST', secrets(), { body: { metadata: { name: 'cage' }, ...data(0) } }))
    const body = { metadata: { name: 'cage' }, spec: { sharedSecretRef: { name: 'cage' } } }
    await must(server.request('POST', copies, { body }))
    for (const index of [1, 2, 3]) {
      await must(server.request('PATCH', path, { body: data(index), headers: merge }))
      await soon('it is copied', async () => {
        return (await must(server.request('GET', `${copies}/cage`))).spec.data?.bird === encoded[index]
      })
    }
    for (const index of [0, 1, 2, 3])
      assert.equal((await must(server.request('GET', `${path}/history/${index + 1}`))).spec.data.bird, encoded[index])
    const silent = (where: string, text: string) => {
      for (const value of [...values, ...encoded]) assert.ok(!text.includes(value), `${value} is in ${where}`)
    }
    silent('the history', (await server.request('GET', `${path}/history`)).text)
    silent('the metrics', (await server.request('GET', '/../../metrics')).text)
    silent('the log', server.output())
    const audit = () => readFileSync(join(directory, 'audit.log'), 'utf8')
    await soon('the audit log has the version that was shown', async () => {
      await setTimeout(10)
      return audit().includes('history/4')
    })
    for (const file of readdirSync(server.directory, { recursive: true }) as string[]) {
      const at = join(server.directory, file)
      if (statSync(at).isFile()) silent(file, readFileSync(at).toString('latin1'))
    }
  } finally {
    await server.stop()
  }
})
