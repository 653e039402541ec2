// The audit log of a gateway after a change of its file: every event is in one of the two files, and none is lost.

import assert from 'node:assert/strict'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { eventually } from '../../test/support/wire.ts'
import { UsageError } from '../host/command.ts'
import type { Exchange } from '../serving/exchange.ts'
import { openMetrics } from '../serving/metrics.ts'
import { openGatewayAudit } from './audit.ts'

const ada = { username: 'ada', groups: [] }
const policyOf = (level: string) =>
  JSON.stringify({ apiVersion: 'audit.k8s.io/v1', kind: 'Policy', rules: [{ level }] })

async function open(t: TestContext) {
  const directory = mkdtempSync(join(tmpdir(), 'platform-audit-'))
  const at = (name: string) => join(directory, name)
  const put = (name: string, text: string) => writeFileSync(at(name), text)
  put('policy.yaml', policyOf('Metadata'))
  const metrics = openMetrics()
  const file = at('gateway.yaml')
  const configOf = (log: string, more: object = {}) => ({ audit: { log, policy: 'policy.yaml', ...more } })
  const options = {
    file,
    metrics,
    sourcesOf: () => [],
    now: Date.now,
    failed: (_: string, error: unknown) => assert.fail(String(error)),
  }
  const audit = await openGatewayAudit(configOf('first.log'), options)
  t.after(async () => {
    await audit.close()
    rmSync(directory, { recursive: true })
  })
  const begin = (auditId: string) => {
    const request = { url: '/', headers: {}, socket: {} }
    const exchange = { request, response: {}, method: 'GET', path: '/', query: new URLSearchParams(), auditId }
    const question = { verb: 'create', target: { group: '', resource: 'pods', namespace: '' } } as const
    return audit.begin(exchange as unknown as Exchange, question, ada)
  }
  return {
    audit,
    configOf,
    put,
    at,
    begin,
    record: (id: string) => audit.complete(begin(id), 201, undefined),
    eventsIn: (name: string): string[] =>
      readFileSync(at(name), 'utf8')
        .split('\n')
        .filter(Boolean)
        .map(line => JSON.parse(line))
        .map(({ auditID, stage }) => `${auditID} ${stage}`),
    isOpen: (name: string) =>
      readdirSync('/proc/self/fd').some(fd => {
        const path = join('/proc/self/fd', fd)
        return existsSync(path) && readlinkSync(path) === at(name)
      }),
    count: () => Number(/^apiserver_audit_event_total (\d+)$/m.exec(metrics.render())?.[1]),
    families: () => metrics.render().match(/^# TYPE apiserver_audit/gm)?.length,
  }
}

test('another log takes over: earlier records are in the old one, which is closed, and later ones in the new one', async t => {
  const { audit, configOf, begin, record, eventsIn, isOpen, count, families } = await open(t)
  assert.equal(await audit.prepare(configOf('first.log')), undefined)
  record('before')
  const across = begin('across')
  const change = await audit.prepare(configOf('second.log'))
  record('meanwhile')
  change?.use()
  change?.done()
  audit.complete(across, 201, undefined)
  record('after')
  await eventually('the old one is closed', async () => !isOpen('first.log'))
  assert.deepEqual(eventsIn('first.log'), [
    'before RequestReceived',
    'before ResponseComplete',
    'across RequestReceived',
    'meanwhile RequestReceived',
    'meanwhile ResponseComplete',
  ])
  await audit.close()
  assert.deepEqual(eventsIn('second.log'), [
    'across ResponseComplete',
    'after RequestReceived',
    'after ResponseComplete',
  ])
  assert.deepEqual([count(), families()], [8, 2], 'both are counted as one')
})

test('an unusable log, policy or salt is reported and changes nothing', async t => {
  const { audit, configOf, put, at, record, eventsIn } = await open(t)
  mkdirSync(at('directory'))
  put('none.yaml', 'kind: Nothing')
  put('none.salt', 'short')
  const says = (words: RegExp) => (error: unknown) => error instanceof UsageError && words.test(error.message)
  await assert.rejects(audit.prepare(configOf('directory')), says(/audit\.log: cannot write .*directory: EISDIR/))
  await assert.rejects(audit.prepare(configOf('missing/audit.log')), says(/audit\.log: cannot write .*: ENOENT/))
  await assert.rejects(audit.prepare(configOf('first.log', { policy: 'none.yaml' })), says(/audit\.policy: /))
  await assert.rejects(
    audit.prepare(configOf('first.log', { salt: 'none.salt' })),
    says(/audit\.salt: .*is not a valid salt/),
  )
  record('after')
  await audit.close()
  assert.deepEqual(eventsIn('first.log'), ['after RequestReceived', 'after ResponseComplete'])
})

test('a prepared log that is dropped is closed, and the previous one stays in use', async t => {
  const { audit, configOf, record, eventsIn, isOpen } = await open(t)
  const change = await audit.prepare(configOf('second.log'))
  assert.ok(isOpen('second.log'))
  change?.use()
  change?.drop()
  record('after')
  await eventually('the other one is closed', async () => !isOpen('second.log'))
  await audit.close()
  assert.deepEqual([eventsIn('first.log').length, eventsIn('second.log').length], [2, 0])
})

test('another policy applies to the next request, in the same log; `off` ends it', async t => {
  const { audit, configOf, put, begin, record, eventsIn, isOpen } = await open(t)
  const use = async (config: object) => {
    const change = await audit.prepare(config)
    change?.use()
    change?.done()
  }
  const across = begin('across')
  put('policy.yaml', policyOf('None'))
  await use(configOf('first.log'))
  record('unrecorded')
  audit.complete(across, 201, undefined)
  put('policy.yaml', policyOf('Metadata'))
  await use(configOf('first.log'))
  record('again')
  await use(configOf('off'))
  record('off')
  await eventually('it is closed', async () => !isOpen('first.log'))
  assert.deepEqual(eventsIn('first.log'), [
    'across RequestReceived',
    'across ResponseComplete',
    'again RequestReceived',
    'again ResponseComplete',
  ])
})
