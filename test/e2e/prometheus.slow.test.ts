// The Prometheus examples with a real Prometheus: it scrapes a server with a key for metrics only, and evaluates every alert.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { parse } from 'yaml'
import { killProgram } from '../support/cluster-process.ts'
import { readDocument } from '../support/docs.ts'
import { notRun } from '../support/missing-tool.ts'
import { freePort } from '../support/ports.ts'
import { findPrometheus } from '../support/prometheus.ts'
import { startServer } from '../support/server.ts'
import { eventually } from '../support/wire.ts'

const examples = join(import.meta.dirname, '../../examples/prometheus')
type Rule = { readonly alert: string; readonly expr: string }
const alerts = (
  parse(readFileSync(join(examples, 'alerts.yml'), 'utf8')) as { groups: { name: string; rules: Rule[] }[] }
).groups

test('docs/MONITORING.md lists every alert, and every metric of an alert is documented', () => {
  const page = readDocument('docs/MONITORING.md')
  const metrics = ['OPERATIONS', 'GATEWAY', 'SYNCER'].map(name => readDocument(`docs/${name}.md`)).join('\n')
  for (const { alert, expr } of alerts.flatMap(({ rules }) => rules)) {
    assert.ok(page.includes(`| \`${alert}\` |`), alert)
    for (const [name] of expr.matchAll(/\b(?:apiserver|platform|gateway|vcluster)_\w+/g))
      assert.ok(metrics.includes(`\`${name.replace(/_bucket$/, '')}\``), `${alert}: ${name}`)
  }
})

const program = await findPrometheus()
if (!program) notRun('prometheus')
else
  test('Prometheus scrapes the server with the example, and evaluates every alert', { timeout: 120_000 }, async t => {
    const server = await startServer({ storage: 'memory' })
    t.after(() => server.stop())
    const directory = mkdtempSync(join(tmpdir(), 'platform-prometheus-'))
    const ours = '/apis/management.platform.sh/v1/ownedaccesskeys'
    const rbac = '/apis/rbac.authorization.k8s.io/v1'
    const role = { metadata: { name: 'metrics' }, rules: [{ nonResourceURLs: ['/metrics'], verbs: ['get'] }] }
    const binding = {
      metadata: { name: 'metrics' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'metrics' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'prometheus' }],
    }
    assert.equal((await server.request('POST', `${rbac}/clusterroles`, { body: role })).status, 201)
    assert.equal((await server.request('POST', `${rbac}/clusterrolebindings`, { body: binding })).status, 201)
    const made = await server.request('POST', ours, {
      body: { metadata: { name: 'prometheus' }, spec: { user: 'prometheus', ttl: 86_400 } },
    })
    cpSync(examples, directory, { recursive: true })
    const config = readFileSync(join(examples, 'prometheus.yml'), 'utf8')
    writeFileSync(
      join(directory, 'prometheus.yml'),
      config.replaceAll('30s', '1s').replace('platform.example.org:8443', new URL(server.https).host),
    )
    writeFileSync(join(directory, 'metrics.key'), made.body.spec.key)
    writeFileSync(join(directory, 'ca.crt'), server.ca)
    const address = `127.0.0.1:${await freePort()}`
    const args = [`--config.file=${directory}/prometheus.yml`, `--storage.tsdb.path=${directory}/data`]
    const child = spawn(program, [...args, `--web.listen-address=${address}`], { stdio: 'ignore' })
    t.after(async () => {
      await killProgram(child)
      rmSync(directory, { recursive: true })
    })
    // biome-ignore lint/suspicious/noExplicitAny: the API of Prometheus
    const ask = async (path: string): Promise<any> => {
      const answer = await fetch(`http://${address}/api/v1/${path}`).catch(() => undefined)
      return answer?.ok ? ((await answer.json()) as { data: unknown }).data : undefined
    }
    await eventually('the target is up', async () => {
      const [target] = (await ask('targets'))?.activeTargets ?? []
      return target?.health === 'up'
    })
    type Evaluated = { readonly name: string; readonly health: string; readonly state: string }
    let rules: readonly Evaluated[] = []
    await eventually('every rule is evaluated, and the alert about the key of this test fires', async () => {
      const groups = ((await ask('rules'))?.groups ?? []) as { rules: Evaluated[] }[]
      rules = groups.flatMap(group => group.rules)
      return (
        rules.every(({ health }) => health !== 'unknown') &&
        rules.some(({ name, state }) => name === 'PlatformKeysExpireToday' && state === 'firing')
      )
    })
    assert.deepEqual(
      rules.map(({ name, health }) => `${name} ${health}`).toSorted(),
      alerts
        .flatMap(group => group.rules)
        .map(({ alert }) => `${alert} ok`)
        .toSorted(),
    )
  })
