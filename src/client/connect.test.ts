// Error responses, warnings and responses of proxies. test/conformance covers the verbs.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiError } from '../api/errors.ts'
import { defineKind } from '../api/kind.ts'
import { connect, type Fetch } from './connect.ts'
import { readWarnings } from './read-warnings.ts'

const Thing = defineKind({
  kind: 'Thing',
  plural: 'things',
  singular: 'thing',
  namespaced: true,
  description: 'Thing of a test.',
  sample: {},
})

type Call = { readonly url: string; readonly init: RequestInit }

function answering(body: string, init: ResponseInit = {}) {
  const calls: Call[] = []
  const fetch: Fetch = async (url, sent) => {
    calls.push({ url, init: sent })
    return new Response(body, init)
  }
  return { calls, fetch }
}

const thrown = (promise: Promise<unknown>): Promise<ApiError> =>
  promise.then(
    () => assert.fail('it did not fail'),
    error => error,
  )

test('the URL is base, prefix and path, with or without a trailing slash of the base (D1)', async () => {
  for (const url of ['https://plane.example', 'https://plane.example/', 'https://plane.example/sub/']) {
    const { calls, fetch } = answering('{}')
    await connect({ url, key: 'k', fetch }).get(Thing, { namespace: '', name: 'a b' })
    const [call] = calls
    assert.equal(
      call?.url,
      `${url.replace(/\/$/, '')}/kubernetes/management/apis/management.platform.sh/v1/namespaces/default/things/a%20b`,
    )
    assert.equal(new Headers(call?.init.headers).get('authorization'), 'Bearer k')
  }
})

test('an empty name, . or .. is rejected before the request, which would address the collection', async () => {
  const { calls, fetch } = answering('{}')
  const things = connect({ url: 'https://a', key: 'k', fetch })
  const empty = { namespace: '', name: '' }
  for (const asked of [
    () => things.get(Thing, empty),
    () => things.update(Thing, empty, {}),
    () => things.patch(Thing, empty, { type: 'merge', body: {} }),
    () => things.delete(Thing, empty),
    () => things.act(Thing, empty, 'rotate', {}),
  ])
    assert.deepEqual([(await thrown(asked())).message], ['the name of a thing is empty'])
  for (const dots of ['.', '..']) {
    const error = await thrown(things.delete(Thing, { namespace: '', name: dots }))
    assert.deepEqual([error.code, error.message], [400, `"${dots}" is not a valid name for a thing`])
    for (const asked of [things.list(Thing, { namespace: dots }), things.deleteCollection(Thing, { namespace: dots })])
      assert.equal((await thrown(asked)).message, `"${dots}" is not a valid name for a namespace`)
  }
  assert.deepEqual(calls, [])
})

test('invalid numbers in a Status are ignored', async () => {
  const said = async (over: object) => {
    const body = { kind: 'Status', apiVersion: 'v1', code: 429, details: { retryAfterSeconds: 3, name: 'a' }, ...over }
    const { fetch } = answering(JSON.stringify(body), { status: 429, headers: { 'Content-Type': 'application/json' } })
    return thrown(connect({ url: 'https://a', fetch }).get(Thing, { namespace: '', name: 'a' }))
  }
  assert.deepEqual((await said({})).status.details, { retryAfterSeconds: 3, name: 'a' })
  for (const retryAfterSeconds of ['soon', -1, null, {}])
    assert.deepEqual((await said({ details: { retryAfterSeconds, name: 'a' } })).status.details, { name: 'a' })
  for (const code of ['teapot', 4.5, 9000, null]) assert.equal((await said({ code })).code, 429)
})

test('Retry-After is used for responses without a Status, such as 429 of Kubernetes', async () => {
  const said = async (after: string) => {
    const headers = { 'Retry-After': after, 'Content-Type': 'text/plain' }
    const { fetch } = answering('Too many requests, please try again later.', { status: 429, headers })
    const error = await thrown(connect({ url: 'https://a', fetch }).get(Thing, { namespace: '', name: 'a' }))
    assert.equal(error.code, 429)
    return error.status.details?.retryAfterSeconds
  }
  assert.equal(await said('7'), 7)
  for (const unusable of ['soon', '-1', 'Wed, 21 Oct 2026 07:28:00 GMT']) assert.equal(await said(unusable), undefined)
})

test('an ApiError has code, reason, message, details and continue of the server', async () => {
  const status = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: { continue: 'token' },
    status: 'Failure',
    message: 'too old',
    reason: 'Expired',
    details: { causes: [{ reason: 'r', message: 'm', field: 'f' }] },
    code: 410,
  }
  const { fetch } = answering(JSON.stringify(status), { status: 410 })
  const error = await thrown(connect({ url: 'http://x', key: '', fetch }).list(Thing))
  assert.ok(error instanceof ApiError)
  assert.deepEqual(error.status, status)
})

test('a response without a Status is reported as a possible proxy error', async () => {
  for (const body of ['<html>Bad Gateway</html>', '{"kind":"Other"}', '']) {
    const { fetch } = answering(body, { status: 502 })
    const error = await thrown(connect({ url: 'http://x', key: '', fetch }).list(Thing))
    assert.equal(error.code, 502)
    assert.match(error.message, /^response 502 without a Status/)
    assert.equal(error.message.includes('html'), false)
  }
})

test('a filter function (only) is rejected', async () => {
  const { fetch, calls } = answering('{}')
  const resources = connect({ url: 'http://x', key: '', fetch })
  await assert.rejects(resources.list(Thing, { only: () => true }), TypeError)
  await assert.rejects(resources.watch(Thing, { only: () => true }), TypeError)
  assert.deepEqual(calls, [])
})

test('warnings are split correctly with commas, escaped quotes and UTF-8', async () => {
  const bytes = Buffer.from('299 - "unknown field \\"a, b\\"", 299 - "é €"').toString('latin1')
  assert.deepEqual(readWarnings(bytes), ['unknown field "a, b"', 'é €'])
  assert.deepEqual(readWarnings(null), [])
  assert.deepEqual(readWarnings('299 - "caf\u00e9"'), ['café'], 'a server that sends Latin-1 is understood as well')
  const told: string[] = []
  const { fetch } = answering('{}', { headers: { warning: '299 - "one"' } })
  const resources = connect({ url: 'http://x', key: '', fetch, warn: text => told.push(`all ${text}`) })
  await resources.create(Thing, '', {}, { warn: text => told.push(text) })
  await resources.get(Thing, { namespace: '', name: 'a' })
  assert.deepEqual(told, ['one', 'all one'])
})
