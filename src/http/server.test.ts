// The request pipeline with fakes below it: how long a request counts as in flight.

import assert from 'node:assert/strict'
import { request } from 'node:http'
import { type TestContext, test } from 'node:test'
import { defineKind } from '../api/kind.ts'
import { type Document, documentOf, type Resources } from '../api/resources.ts'
import { openInflightLimits } from '../serving/inflight-limits.ts'
import { listenHttp } from '../serving/listener.ts'
import { requestHandler, type ServerOptions } from './server.ts'

const kind = defineKind({
  kind: 'Thing',
  plural: 'things',
  singular: 'thing',
  namespaced: false,
  description: 'A thing.',
  sample: {},
})
const path = '/kubernetes/management/apis/management.platform.sh/v1/things'
const thing = documentOf({ apiVersion: kind.apiVersion, kind: 'Thing', metadata: { name: 'a' } })

type Wanted = Pick<ServerOptions, 'fairness' | 'observe'> & {
  readonly create: () => Promise<Document>
  readonly closed?: () => void
  readonly may?: () => boolean
}

async function listen(context: TestContext, { create, closed = () => {}, may = () => true, ...wanted }: Wanted) {
  const limits = openInflightLimits({
    max: { read: 1, write: 1, watch: 1 },
    share: 1,
    rate: 0,
    burst: 0,
    now: Date.now,
  })
  const access = {
    authenticate: () => ({ identity: 'User', username: 'ada', groups: [] }),
    prepare: () => undefined,
    authorizer: {
      authorize: () => ({ answer: may() ? 'yes' : 'no', reason: '' }),
      decide: () => ({ allowed: true, reason: '' }),
    },
    isCurrent: () => true,
    permissionVersions: { current: () => 0, isAffected: () => false, step: () => {} },
    permissionsChanged: () => () => {},
    warningFor: () => undefined,
    audit: { begin: () => ({}), started: () => {}, complete: () => {}, failure: undefined },
  } as unknown as ServerOptions['access']
  const handle = requestHandler({
    kinds: [kind],
    access,
    resourcesFor: () => ({ create }) as unknown as Resources,
    confirm: () => undefined,
    reachVersion: async () => {},
    indexed: () => undefined,
    noteRead: () => {},
    lastActivity: () => undefined,
    pages: () => undefined,
    rootPages: () => undefined,
    limits,
    refuseUnaudited: false,
    loopbackOnly: true,
    now: Date.now,
    uuid: () => 'id',
    ending: new AbortController().signal,
    ...wanted,
  })
  const listener = await listenHttp({ host: '127.0.0.1', port: 0 }, (asked, answer) => {
    void handle(asked, answer)
    answer.once('close', closed)
  })
  context.after(() => listener.close(0))
  return { limits, listener }
}

test('a write with a 504 response occupies its slot until its work is done', async context => {
  let finish = () => {}
  const working = new Promise<void>(resolve => {
    finish = resolve
  })
  const create = async () => {
    await working
    return thing
  }
  const { limits, listener } = await listen(context, { create, fairness: () => undefined, observe: () => {} })
  const post = (query: string) =>
    new Promise<number | undefined>(resolve => {
      const call = request(`${listener.url}${path}${query}`, { method: 'POST', agent: false }, answer => {
        answer.resume().on('end', () => resolve(answer.statusCode))
      })
      call.end('{}')
    })
  assert.equal(await post('?timeout=50ms'), 504)
  assert.equal(limits.current.write, 1)
  assert.equal(await post(''), 429, 'there is no place for another')
  finish()
  await new Promise(setImmediate)
  assert.equal(limits.current.write, 0)
  assert.equal(await post(''), 201)
})

test('a client that disconnects before its turn changes nothing, and the audit log has an error', async context => {
  let go = () => {}
  let isWaiting = () => {}
  const waiting = new Promise<void>(resolve => {
    isWaiting = resolve
  })
  const turn = new Promise<void>(resolve => {
    go = resolve
  })
  const codes: number[] = []
  let isGone = () => {}
  const gone = new Promise<void>(resolve => {
    isGone = resolve
  })
  const { limits, listener } = await listen(context, {
    create: async () => assert.fail('it was created'),
    fairness: () => {
      isWaiting()
      return turn
    },
    observe: ({ code }) => void codes.push(code),
    closed: isGone,
  })
  const call = request(`${listener.url}${path}`, { method: 'POST', agent: false }).on('error', () => {})
  call.end('{}')
  await waiting
  assert.equal(limits.current.write, 1)
  call.destroy()
  await gone
  await new Promise(setImmediate)
  assert.deepEqual(codes, [400])
  assert.equal(limits.current.write, 0, 'others have its place before its turn has come')
  go()
})

test('a client that loses its permission while it waits for its turn is denied', async context => {
  let go = () => {}
  const turn = new Promise<void>(resolve => {
    go = resolve
  })
  let may = true
  const { limits, listener } = await listen(context, {
    create: async () => assert.fail('it was created'),
    fairness: () => {
      may = false
      setImmediate(go)
      return turn
    },
    observe: () => {},
    may: () => may,
  })
  const code = await new Promise<number | undefined>(resolve => {
    request(`${listener.url}${path}`, { method: 'POST', agent: false }, answer => {
      answer.resume().on('end', () => resolve(answer.statusCode))
    }).end('{}')
  })
  assert.equal(code, 403)
  assert.equal(limits.current.write, 0)
})
