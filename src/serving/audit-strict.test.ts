// Writes that must be audited: announced before the write, concluded before the response, each once.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Caller } from '../api/caller.ts'
import type { Question } from '../api/kind.ts'
import { openAudit } from './audit.ts'
import type { Policy } from './audit-policy.ts'
import type { Exchange } from './exchange.ts'

const ada: Caller = { username: 'ada', groups: ['system:authenticated'] }
const exchange = { request: { url: '/x', headers: {}, socket: {} }, auditId: 'id' } as unknown as Exchange
const create = (resource: string): Question => ({
  verb: 'create',
  target: { group: 'management.platform.sh', resource, namespace: '' },
})

function open(policy: Policy, room = Number.POSITIVE_INFINITY) {
  const lines: string[] = []
  const sink = {
    write: (line: string) => lines.length < room && lines.push(line) > 0,
    failure: undefined,
    flush: async () => {},
    settled: async () => true,
    close: async () => {},
  }
  const audit = openAudit({ policy, sink, hash: text => text, now: () => 0, sourcesOf: () => [], counted: () => {} })
  const events = () => lines.map(line => JSON.parse(line))
  return { audit, events, begin: (resource: string) => audit.begin(exchange, create(resource), ada) }
}
const quietAtFirst: Policy = { omitStages: ['RequestReceived'], rules: [{ level: 'Metadata' }] }

test('a write is announced and concluded once each, whatever stages the policy omits', async () => {
  for (const policy of [quietAtFirst, { rules: [{ level: 'Metadata' as const }] }]) {
    const { audit, events, begin } = open(policy)
    const context = begin('teams')
    assert.equal(await audit.announce(context), true)
    assert.equal(await audit.conclude(context, 201), true)
    audit.complete(context, 201, undefined)
    assert.deepEqual(
      events().map(({ stage, responseStatus }) => [stage, responseStatus?.code]),
      [
        ['RequestReceived', undefined],
        ['ResponseComplete', 201],
      ],
    )
  }
})

test('a line that did not fit into the queue counts as not recorded', async () => {
  const { audit, begin } = open(quietAtFirst, 1)
  const context = begin('teams')
  assert.equal(await audit.announce(context), true)
  assert.equal(await audit.conclude(context, 201), false)
})

test('requests without a record are not required to be recorded; issuing a key always is', () => {
  const { audit, begin } = open({ rules: [{ level: 'None' }] })
  assert.equal(audit.isDue(begin('teams')), false)
  assert.equal(audit.isDue(begin('ownedaccesskeys')), true)
})
