// The Grafana dashboard: every expression is valid PromQL, and every metric of it and of the alerts exists in the running programs.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { stringify } from 'yaml'
import { startGateway } from '../gateway/gateway-fixture.ts'
import { openCluster } from '../support/cluster.ts'
import { killProgram, startProgram } from '../support/cluster-process.ts'
import { exec } from '../support/exec.ts'
import { notRun } from '../support/missing-tool.ts'
import { findPromtool } from '../support/prometheus.ts'
import { startServer } from '../support/server.ts'
import { openWire } from '../support/wire.ts'

const root = join(import.meta.dirname, '../..')
type Panel = {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[]
}
type Dashboard = {
  readonly panels: readonly Panel[]
  readonly templating: { readonly list: readonly { readonly name: string }[] }
}
const dashboard = JSON.parse(readFileSync(join(root, 'examples/grafana/platform.json'), 'utf8')) as Dashboard
const expressions = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
const alerts = readFileSync(join(root, 'examples/prometheus/alerts.yml'), 'utf8')
const metricsIn = (text: string) =>
  [...text.matchAll(/\b(?:apiserver|platform|gateway|vcluster|process|nodejs)_[a-z0-9_]+/g)].map(([name]) =>
    name.replace(/_bucket$/, ''),
  )

test('panels have unique ids, do not overlap, and use only known variables', () => {
  const { panels } = dashboard
  assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length)
  for (const [index, { gridPos: one, title }] of panels.entries())
    for (const { gridPos: other, title: second } of panels.slice(index + 1)) {
      const isBeside = one.x + one.w <= other.x || other.x + other.w <= one.x
      const isBelow = one.y + one.h <= other.y || other.y + other.h <= one.y
      assert.ok(isBeside || isBelow, `${title} overlaps ${second}`)
    }
  const known = ['__rate_interval', ...dashboard.templating.list.map(({ name }) => name)]
  for (const [, name = ''] of JSON.stringify(dashboard).matchAll(/\$\{?(\w+)/g)) assert.ok(known.includes(name), name)
})

test('a label in a legend is one that the expression keeps', () => {
  for (const { expr, legendFormat } of dashboard.panels.flatMap(({ targets = [] }) => targets))
    for (const [, label = ''] of legendFormat.matchAll(/\{\{(\w+)\}\}/g))
      assert.match(expr, new RegExp(`(by|on) \\([^)]*\\b${label}\\b`), `${legendFormat}: ${expr}`)
})

const program = await findPromtool()
if (!program) notRun('promtool')
else
  test('promtool accepts every expression of the dashboard', { timeout: 120_000 }, async () => {
    assert.ok(expressions.length > 30)
    const directory = mkdtempSync(join(tmpdir(), 'platform-grafana-'))
    try {
      const file = join(directory, 'rules.yml')
      const rules = expressions.map((expr, index) => ({
        record: `dashboard:expression:${index}`,
        expr: expr.replaceAll('$__rate_interval', '5m').replaceAll('$job', '.+'),
      }))
      writeFileSync(file, stringify({ groups: [{ name: 'dashboard', rules }] }))
      const { code, stdout, stderr } = await exec(program, ['check', 'rules', file])
      assert.equal(code, 0, stdout + stderr)
    } finally {
      rmSync(directory, { recursive: true })
    }
  })

test('the server, the gateway and the syncer have every metric of the dashboard and the alerts', {
  timeout: 180_000,
}, async t => {
  const directory = mkdtempSync(join(tmpdir(), 'platform-grafana-'))
  const put = (name: string, text: string) => {
    writeFileSync(join(directory, name), text)
    return join(directory, name)
  }
  const service = await startServer({ storage: 'memory' })
  const [virtual, host] = await Promise.all([openCluster(), openCluster()])
  t.after(async () => {
    await Promise.all([service.stop(), virtual.close(), host.close()])
    rmSync(directory, { recursive: true })
  })
  const gateway = await startGateway(service, { clusters: [{ name: 'prod', kubeconfig: service.kubeconfig }] })
  t.after(() => gateway.stop())
  const { child, found } = await startProgram(
    [
      ...[join(root, 'bin/platform.js'), 'vcluster', 'sync', '-f', put('vcluster.yaml', ''), '--name', 'vc'],
      ...['--namespace', 'team', '--virtual-kubeconfig', put('v', virtual.kubeconfig)],
      ...['--host-kubeconfig', put('h', host.kubeconfig), '--listen', '127.0.0.1:0'],
    ],
    /^platform: syncing endpoints of vc to team, status at (\S+)$/m,
  )
  t.after(() => killProgram(child))
  const text = (url: string) => fetch(`${url}/metrics`).then(answer => answer.text())
  const pages = [(await openWire(service)('/metrics')).text, await text(gateway.status), await text(found)]
  const named = new Set(pages.flatMap(page => [...page.matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name)))
  assert.deepEqual(
    [...new Set(metricsIn([...expressions, alerts].join('\n')))].filter(name => !named.has(name)),
    [],
  )
  // All programs have the metrics of the process.
  for (const page of pages)
    for (const name of ['process_resident_memory_bytes', 'nodejs_eventloop_lag_p99_seconds'])
      assert.match(page, new RegExp(`^${name} \\d`, 'm'))
})
