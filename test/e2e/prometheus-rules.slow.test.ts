// Every alert of the Prometheus example fires when it should and stays quiet otherwise, as promtool evaluates it.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { parse, stringify } from 'yaml'
import { exec } from '../support/exec.ts'
import { notRun } from '../support/missing-tool.ts'
import { findPromtool } from '../support/prometheus.ts'

const file = join(import.meta.dirname, '../../examples/prometheus/alerts.yml')
type Rule = {
  readonly alert: string
  readonly labels: { readonly severity: string }
  readonly annotations: { readonly summary: string }
}
const { groups } = parse(readFileSync(file, 'utf8')) as { groups: { rules: Rule[] }[] }
const rules = groups.flatMap(group => group.rules)

type Case = {
  /** Series with the values of each minute, in the notation of promtool. */
  readonly fires: { readonly [series: string]: string }
  readonly quiet: { readonly [series: string]: string }
  /** Labels of the alert, without its severity. */
  readonly labels?: { readonly [name: string]: string }
  readonly value?: string
}

const at = 'job="platform",instance="a"'
const target = { job: 'platform', instance: 'a' }
/** A gauge that is too high, with the labels of its series. */
const gauge = (series: string, high: number, low: number, labels: { [name: string]: string } = target): Case => ({
  fires: { [series]: `${high}x30` },
  quiet: { [series]: `${low}x30` },
  labels,
  value: String(high),
})
/** A counter that grows by one every minute. */
const counter = (series: string, labels: { [name: string]: string } = target): Case => ({
  fires: { [series]: '0+1x30' },
  quiet: { [series]: '7x30' },
  labels,
})
const requests = (code: string) => `apiserver_request_total{${at},code="${code}"}`
const bucket = (le: string) => `apiserver_request_duration_seconds_bucket{${at},le="${le}"}`

const cases: { readonly [alert: string]: Case } = {
  PlatformDown: gauge(`up{${at}}`, 0, 1),
  PlatformErrors: {
    fires: { [requests('503')]: '0+6x30', [requests('200')]: '0+100x30' },
    quiet: { [requests('503')]: '0+1x30', [requests('404')]: '0+100x30', [requests('200')]: '0+200x30' },
  },
  PlatformSlow: {
    fires: { [bucket('1')]: '0+98x30', [bucket('2')]: '0+100x30', [bucket('+Inf')]: '0+100x30' },
    quiet: { [bucket('1')]: '0+100x30', [bucket('2')]: '0+100x30', [bucket('+Inf')]: '0+100x30' },
  },
  PlatformBusy: gauge(`nodejs_eventloop_lag_p99_seconds{${at}}`, 0.5, 0.01),
  PlatformAuditEventsLost: counter(`apiserver_audit_error_total{${at}}`),
  PlatformStoreFails: gauge(`platform_store_failing{${at}}`, 1, 0),
  PlatformStoreBehind: gauge(`platform_store_outdated{${at}}`, 1, 0),
  PlatformNoLeader: {
    fires: { 'platform_leader{instance="a"}': '0x30', 'platform_leader{instance="b"}': '0x30' },
    quiet: { 'platform_leader{instance="a"}': '0x30', 'platform_leader{instance="b"}': '1x30' },
  },
  PlatformClustersDisconnected: {
    fires: { 'platform_clusters{instance="a",state="disconnected"}': '2x30' },
    quiet: {
      'platform_clusters{instance="a",state="disconnected"}': '0x30',
      'platform_clusters{instance="a",state="never_connected"}': '3x30',
    },
    value: '2',
  },
  PlatformDecryptionFails: counter(`platform_seal_failures_total{${at}}`, {}),
  PlatformRequestsRefused: {
    fires: { [`platform_requests_refused_total{${at},reason="share"}`]: '0+1x30' },
    quiet: { [`platform_requests_refused_total{${at},reason="unknown_keys"}`]: '0+1x30' },
    labels: { reason: 'share' },
  },
  PlatformUnknownKeys: {
    fires: { [`platform_unknown_keys_total{${at}}`]: '0+20x30' },
    quiet: { [`platform_unknown_keys_total{${at}}`]: '0+5x30' },
    labels: target,
  },
  PlatformEmergencyKey: counter(`platform_emergency_keys_total{${at}}`),
  PlatformKeysExpireThisWeek: gauge(`platform_access_keys_expiring{${at},within="168h"}`, 3, 0, {
    ...target,
    within: '168h',
  }),
  PlatformKeysExpireToday: gauge(`platform_access_keys_expiring{${at},within="24h"}`, 3, 0, {
    ...target,
    within: '24h',
  }),
  GatewayWithoutContact: gauge(`gateway_revocations_age_seconds{${at}}`, 200, 60),
  GatewayReloadFails: gauge(`gateway_reload_failing{${at}}`, 1, 0),
  AgentWithoutContact: gauge(`platform_agent_desired_age_seconds{${at}}`, 200, 60),
  AgentProblems: gauge(`platform_agent_problems{${at}}`, 4, 0),
  SyncerObjectsFail: gauge(`vcluster_sync_objects{${at},state="failed"}`, 2, 0, { ...target, state: 'failed' }),
}

test('every alert has a case', () => {
  assert.deepEqual(
    Object.keys(cases),
    rules.map(({ alert }) => alert),
  )
})

const seriesOf = (values: Case['fires']) => Object.entries(values).map(([series, one]) => ({ series, values: one }))

function expectation({ labels, annotations: { summary } }: Rule, { labels: own = {}, value = '' }: Case) {
  const text = summary
    .replaceAll('{{ $value }}', value)
    .replace(/\{\{ \$labels\.(\w+) \}\}/g, (_, name: string) => own[name] ?? '')
  return { exp_labels: { severity: labels.severity, ...own }, exp_annotations: { summary: text } }
}

const program = await findPromtool()
if (!program) notRun('promtool')
else
  test('promtool: each alert fires in its case, and not otherwise', { timeout: 120_000 }, async () => {
    const directory = mkdtempSync(join(tmpdir(), 'platform-promtool-'))
    const tests = rules.flatMap(rule => {
      const one = cases[rule.alert] as Case
      const look = (isFiring: boolean) => ({
        name: `${rule.alert} ${isFiring ? 'fires' : 'is quiet'}`,
        interval: '1m',
        input_series: seriesOf(isFiring ? one.fires : one.quiet),
        alert_rule_test: [
          { eval_time: '25m', alertname: rule.alert, exp_alerts: isFiring ? [expectation(rule, one)] : [] },
        ],
      })
      return [look(true), look(false)]
    })
    try {
      const cased = join(directory, 'tests.yml')
      writeFileSync(cased, stringify({ rule_files: [file], evaluation_interval: '30s', tests }))
      const checked = await exec(program, ['check', 'rules', file])
      assert.equal(checked.code, 0, checked.stdout + checked.stderr)
      const tested = await exec(program, ['test', 'rules', cased])
      assert.equal(tested.code, 0, tested.stdout + tested.stderr)
    } finally {
      rmSync(directory, { recursive: true })
    }
  })
