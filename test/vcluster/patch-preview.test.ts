// PatchPreview (D70): the server evaluates patches in the sandbox, with trace, reverse, round trip and fixpoint, within limits.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type Server, startServer } from '../support/server.ts'

const ours = '/apis/management.platform.sh/v1'
const previews = `${ours}/patchpreviews`

// biome-ignore lint/suspicious/noExplicitAny: tests look at whatever is there
type Any = any

const endpoints = (labels: object = { app: 'web' }) => ({
  apiVersion: 'v1',
  kind: 'Endpoints',
  metadata: { name: 'web', namespace: 'default', labels },
  subsets: [{ addresses: [{ ip: '10.0.0.7' }], ports: [{ port: 80 }] }],
})
const label = (expression: string, reverseExpression?: string) => ({
  path: 'metadata.labels.app',
  expression,
  ...(reverseExpression === undefined ? {} : { reverseExpression }),
})

let server: Server
before(async () => {
  server = await startServer({ storage: 'memory', args: ['--limits-previews', '1000'] })
})
after(() => server.stop())

const ask = (spec: object, key?: string) =>
  server.request('POST', previews, { body: { spec }, ...(key ? { key } : {}) })

async function preview(spec: object): Promise<Any> {
  const { status, body, text } = await ask(spec)
  assert.equal(status, 201, text)
  return body.status
}

describe('results', () => {
  test('the object on the host, the trace, the way back, and that it settles', async () => {
    const patches = [label('"x-" + value', 'value.slice(2)')]
    const status = await preview({ object: endpoints(), patches })
    assert.equal(status.problem, undefined)
    assert.equal(status.object.metadata.labels.app, 'x-web')
    assert.equal(status.plain.metadata.labels.app, 'web')
    const [step] = status.trace
    assert.deepEqual(
      [step.patch, step.path, step.changes],
      [0, 'metadata.labels.app', [{ path: 'metadata.labels.app', before: 'web', after: 'x-web' }]],
    )
    assert.equal(status.reverse.object.metadata.labels.app, 'web')
    assert.deepEqual([status.roundTrip.equal, status.roundTrip.differences], [true, []])
    assert.equal(status.roundTrip.values[0].broken.length, 0)
    assert.deepEqual([status.fixpoint.settled, status.fixpoint.changing], [true, []])
  })

  test('a rule that never settles is named, with the path and its values', async () => {
    const status = await preview({ object: endpoints(), patches: [label('"x" + value', 'value')], maxRounds: 6 })
    assert.equal(status.roundTrip.equal, false)
    assert.deepEqual(status.roundTrip.differences, [{ path: 'metadata.labels.app', before: 'web', after: 'xweb' }])
    assert.deepEqual([status.fixpoint.settled, status.fixpoint.rounds], [false, 6])
    const changing = status.fixpoint.changing.find((one: Any) => one.side === 'virtual')
    assert.deepEqual([changing.path, changing.patches], ['metadata.labels.app', [0]])
    assert.deepEqual(changing.values.slice(-2), ['xxxxxweb', 'xxxxxxweb'])
  })

  test('without patches, the object is what the syncer writes', async () => {
    const status = await preview({ object: endpoints() })
    assert.equal(status.object.metadata.name, 'web-x-default-x-my-vcluster')
    assert.equal(status.object.metadata.namespace, 'my-namespace')
    assert.equal(status.fixpoint.settled, true)
  })

  test('toVirtual shows the way back from the host', async () => {
    const vcluster = { name: 'vc', namespace: 'team' }
    const patches = [label('"x-" + value', 'value.slice(2)')]
    const { object } = await preview({ object: endpoints(), patches, vcluster })
    const back = await preview({ object, patches, vcluster, direction: 'toVirtual' })
    assert.equal(back.problem, undefined)
    assert.equal(back.object.metadata.labels.app, 'web')
    assert.equal(back.reverse.object.metadata.labels.app, 'x-web')
    assert.equal(back.roundTrip.equal, true)
  })

  test('an error of syntax has line and column, and nothing runs', async () => {
    const status = await preview({ object: endpoints(), patches: [label('value +\n  (')] })
    const [problem] = status.problems
    assert.deepEqual([problem.patch, problem.field, problem.line], [0, 'expression', 2])
    assert.equal(typeof problem.column, 'number')
    assert.equal(status.problem.reason, 'InvalidPatch')
    assert.equal(status.object, undefined)
  })

  test('an error at run time is in the trace of its patch', async () => {
    const status = await preview({ object: endpoints(), patches: [label('value.none.more')] })
    assert.deepEqual(
      [status.problem.reason, status.problem.patch, status.problem.field],
      ['PatchFailed', 0, 'expression'],
    )
    assert.match(status.trace[0].error.message, /undefined/)
  })

  test('a broken configuration and a foreign host object are reported', async () => {
    const broken = await preview({
      object: endpoints(),
      config: { sync: { toHost: { endpoints: { enabled: 'yes' } } } },
    })
    assert.equal(broken.problem.reason, 'InvalidConfig')
    assert.equal(broken.problems[0].patch, undefined)
    const off = await preview({
      object: endpoints(),
      config: { sync: { toHost: { endpoints: { enabled: false }, services: { enabled: false } } } },
    })
    assert.equal(off.problem.reason, 'NotSynced')
  })
})

describe('limits', () => {
  test('an endless loop is cut off', async () => {
    const status = await preview({ object: endpoints(), patches: [label('(() => { for (;;) {} })()')] })
    assert.equal(status.problem.reason, 'PatchFailed')
    assert.match(status.problem.message, /took longer than/)
  })

  test('a memory bomb is cut off', async () => {
    const bomb = '(() => { let all = []; for (;;) all = [...all, "x".repeat(1e6) + all.length] })()'
    const status = await preview({ object: endpoints(), patches: [label(bomb)] })
    assert.equal(status.problem.reason, 'PatchFailed')
    assert.match(status.problem.message, /memory|longer/)
  })

  test('a result that grows with every round is cut off, and the next preview works', async () => {
    const path = 'metadata.annotations.a'
    const patches = [{ path, expression: 'value + value', reverseExpression: 'value' }]
    const object = endpoints()
    const grown = { ...object, metadata: { ...object.metadata, annotations: { a: 'x'.repeat(60_000) } } }
    const status = await preview({ object: grown, patches, maxRounds: 20 })
    assert.ok(
      status.problem?.reason === 'OutputLimit' || status.fixpoint.settled === false,
      JSON.stringify(status).slice(0, 300),
    )
    assert.equal((await preview({ object: endpoints() })).problem, undefined)
  })

  for (const [what, spec, field] of [
    ['no object', {}, 'spec.object'],
    [
      'another kind',
      { object: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a', namespace: 'b' } } },
      'spec.object',
    ],
    ['an object that is text', { object: 'text' }, 'spec.object'],
    ['a large object', { object: endpoints({ app: 'x'.repeat(300_000) }) }, 'spec'],
    [
      'too many patches',
      { object: endpoints(), patches: Array.from({ length: 101 }, () => label('value')) },
      'spec.patches',
    ],
    ['an unknown direction', { object: endpoints(), direction: 'up' }, 'spec.direction'],
    ['too many rounds', { object: endpoints(), maxRounds: 1000 }, 'spec.maxRounds'],
    ['an invalid name', { object: endpoints(), vcluster: { name: 'A B' } }, 'spec.vcluster.name'],
  ] as const)
    test(`${what} is rejected with 422`, async () => {
      const { status, body } = await ask(spec)
      assert.equal(status, 422, JSON.stringify(body))
      assert.ok(
        body.details.causes.some((cause: Any) => cause.field === field),
        JSON.stringify(body.details.causes),
      )
    })
})

describe('permissions and quota', () => {
  test('every authenticated user may preview by the role platform-user; a scope can exclude it', async () => {
    const key = async (name: string, spec: object) =>
      (await server.request('POST', `${ours}/ownedaccesskeys`, { body: { metadata: { name }, spec } })).body.spec.key
    assert.equal((await ask({ object: endpoints() }, await key('ada', { user: 'ada' }))).status, 201)
    const scoped = await key('scoped', { user: 'ada', scope: { projects: [{ project: 'shop' }] } })
    assert.equal((await ask({ object: endpoints() }, scoped)).status, 403)
  })

  test('more than one at a time from one user gets a 429 with a time to retry, others are served', async () => {
    const slow = { object: endpoints(), patches: [label('(() => { for (;;) {} })()')] }
    const bob = await server.request('POST', `${ours}/ownedaccesskeys`, {
      body: { metadata: { name: 'bob' }, spec: { user: 'bob' } },
    })
    const answers = Promise.all(Array.from({ length: 12 }, () => ask(slow)))
    assert.equal((await ask({ object: endpoints() }, bob.body.spec.key)).status, 201)
    const codes = (await answers).map(({ status }) => status)
    assert.ok(codes.includes(429) && codes.includes(201), String(codes))
    const refused = (await answers).find(({ status }) => status === 429)
    assert.equal(refused?.body.reason, 'TooManyRequests')
    assert.equal(refused?.body.details.retryAfterSeconds, 1)
  })

  test('limits.previews 0 turns previews off', async () => {
    const other = await startServer({ storage: 'memory', inProcess: true, args: ['--limits-previews', '0'] })
    try {
      const { status, body } = await other.request('POST', previews, { body: { spec: { object: endpoints() } } })
      assert.equal(status, 403)
      assert.match(body.message, /limits\.previews/)
    } finally {
      await other.stop()
    }
  })

  test('the rate per user is limited by limits.previews', async () => {
    const other = await startServer({ storage: 'memory', args: ['--limits-previews', '3'] })
    try {
      const codes: number[] = []
      for (let index = 0; index < 5; index++)
        codes.push((await other.request('POST', previews, { body: { spec: { object: endpoints() } } })).status)
      assert.deepEqual(codes, [201, 201, 201, 429, 429])
    } finally {
      await other.stop()
    }
  })
})
