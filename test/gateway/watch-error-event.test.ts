// A watch whose token is no longer valid ends with an ERROR event, as in Kubernetes, if the stream allows it.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:http2'
import { afterEach, test } from 'node:test'
import { eventually } from '../support/wire.ts'
import { tls } from './http2-cluster.ts'
import { type Options, openBackend, openTestGateway, type TestGateway } from './in-process.ts'

const pods = '/kubernetes/cluster/prod/api/v1/pods'
const event = '{"type":"ADDED","object":{}}\n'
const certificates = { current: { certificate: tls.cert, key: tls.key }, follow: () => {}, stop: () => {} }
const json = { 'content-type': 'application/json' }

let gateway: TestGateway
afterEach(() => gateway.close())

type Answer = { readonly headers: { readonly [name: string]: string }; readonly text: string }

/** A cluster that says so much of an answer and then nothing. */
async function open({ headers, text }: Answer, options: Partial<Options> = {}) {
  const ended: boolean[] = []
  const backend = await openBackend((_, response) => {
    response.on('close', () => ended.push(true))
    response.writeHead(200, headers).flushHeaders()
    if (text) response.write(text)
  })
  gateway = await openTestGateway({ backend, ...options })
  return { ended, authorization: `Bearer ${await gateway.sign()}` }
}
const revoke = () => gateway.revoke({ users: ['ada'], reason: 'left' })

function checkLast(text: string, before: string): void {
  assert.ok(text.startsWith(before) && text.endsWith('\n'), text)
  const { type, object } = JSON.parse(text.slice(before.length))
  assert.deepEqual([type, object.kind, object.code, object.reason], ['ERROR', 'Status', 401, 'Unauthorized'])
  assert.equal(object.message, 'the token is no longer valid: left')
}

/** The data that a client has read, up to its end or abort. */
async function follow(answer: Response) {
  const seen = { text: '', end: '' }
  const decoder = new TextDecoder()
  const reading = (async () => {
    for await (const chunk of answer.body ?? []) seen.text += decoder.decode(chunk, { stream: true })
  })().then(
    () => (seen.end = 'whole'),
    () => (seen.end = 'broken'),
  )
  return { seen, reading }
}

for (const [what, text] of [
  ['after an event', event],
  ['before any event', ''],
] as const)
  test(`a watch ${what} ends with an ERROR event of 401, and so does the upstream request`, async () => {
    const { ended, authorization } = await open({ headers: json, text })
    const { seen, reading } = await follow(await fetch(`${gateway.url}${pods}?watch=1`, { headers: { authorization } }))
    await eventually('it is told', async () => seen.text === text)
    await revoke()
    await reading
    assert.equal(seen.end, 'whole')
    checkLast(seen.text, text)
    await eventually('the cluster is left', async () => ended.length === 1 && gateway.streams.open === 0)
    assert.equal(gateway.streams.cut, 1)
  })

test('a watch over HTTP/2 ends likewise: without a stream error', async t => {
  const { authorization } = await open({ headers: json, text: event }, { certificates })
  const session = connect(gateway.url, { rejectUnauthorized: false })
  t.after(() => session.destroy())
  const stream = session.request({ ':path': `${pods}?watch=1`, authorization })
  let text = ''
  stream.setEncoding('utf8').on('data', chunk => {
    text += chunk
  })
  await eventually('it is told', async () => text === event)
  await revoke()
  await once(stream, 'close')
  assert.equal(stream.rstCode, 0)
  checkLast(text, event)
})

for (const [what, query, headers, text] of [
  ['in the middle of a line', '?watch=1', json, event.slice(0, 9)],
  ['in another format', '?watch=1', { 'content-type': 'application/vnd.kubernetes.protobuf;stream=watch' }, event],
  ['compressed', '?watch=1', { ...json, 'content-encoding': 'br' }, ''],
  ['of a size of its own', '?watch=1', { ...json, 'content-length': '1000' }, event],
  ['that does not belong to a watch', '', json, event],
] as const)
  test(`a response ${what} is aborted, because it cannot contain a message`, async () => {
    const { authorization } = await open({ headers, text })
    const { seen, reading } = await follow(await fetch(`${gateway.url}${pods}${query}`, { headers: { authorization } }))
    await eventually('it is told', async () => seen.text === text)
    await revoke()
    await reading
    assert.deepEqual(seen, { text, end: 'broken' })
  })
