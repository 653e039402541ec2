// The address of the server in redirects of sign-in: the base URL, a loopback name or a name of the certificate, and no other Host.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { hostname } from 'node:os'
import { after, before, suite, test } from 'node:test'
import { openPeople, type PeopleStage } from './people-stage.ts'

const page = { accept: 'text/html', 'sec-fetch-mode': 'navigate', 'sec-fetch-site': 'none' }

/** A request with any Host to the HTTPS listener. */
async function send({ server }: PeopleStage, method: string, path: string, headers: Headers, body?: string) {
  // Otherwise Node compares the certificate with the header.
  const call = request(`${server.https}${path}`, { method, headers, ca: server.ca, servername: 'localhost' })
  call.end(body)
  const [response] = (await once(call, 'response')) as [IncomingMessage]
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) text += chunk
  return { status: response.statusCode, headers: response.headers, text }
}

type Headers = { readonly [name: string]: string }

const start = (stage: PeopleStage, host: string) => send(stage, 'GET', '/auth/login/corp', { ...page, host })

suite('without a base URL', () => {
  let stage: PeopleStage
  before(async () => {
    stage = await openPeople({ args: ['--tls-san', 'platform.example.org', '--tls-san', '192.0.2.7'] })
  })
  after(() => stage.close())

  test('sign-in starts at loopback names and names of the certificate', async () => {
    for (const host of [
      'localhost:8443',
      '127.0.0.1:8443',
      '[::1]:8443',
      'platform.example.org',
      'PLATFORM.example.org:8443',
      '192.0.2.7',
      hostname(),
    ]) {
      const { status, headers, text } = await start(stage, host)
      assert.equal(status, 303, `${host}: ${text}`)
      const uri = new URL(headers.location ?? '').searchParams.get('redirect_uri')
      assert.equal(uri?.toLowerCase(), `https://${host.toLowerCase()}/auth/callback/corp`)
    }
  })

  test('any other Host gets a page that names the setting, and no redirect', async () => {
    for (const host of [
      'evil.example',
      'platform.example.org.evil.example',
      'sub.platform.example.org',
      'localhost.evil.example',
      '127.0.0.1.evil.example',
      '192.0.2.8',
      'platform.example.org@evil.example',
      'evil.example#localhost',
      '[::2]:8443',
    ]) {
      const { status, headers, text } = await start(stage, host)
      assert.equal(status, 400, host)
      assert.equal(headers.location, undefined)
      assert.equal(headers['set-cookie'], undefined)
      if (headers['content-type']?.startsWith('text/html')) assert.match(text, /--base-url[\s\S]*<code>UnknownHost</)
    }
  })

  test('a device gets no address of another host', async () => {
    const json = { 'content-type': 'application/json' }
    const code = async (headers: Headers) => send(stage, 'POST', '/auth/device/code', { ...json, ...headers }, '{}')
    const refused = await code({ host: 'evil.example' })
    assert.equal(refused.status, 400)
    assert.equal(JSON.parse(refused.text).reason, 'UnknownHost')
    assert.equal(JSON.parse((await code({})).text).verification_uri, `${stage.server.https}/auth/device`)
  })

  test('sign-out works at any Host', async () => {
    const headers = {
      ...page,
      'sec-fetch-site': 'same-origin',
      host: 'evil.example',
    }
    const { status, headers: given } = await send(stage, 'POST', '/auth/logout', headers)
    assert.equal(status, 303)
    assert.equal(given.location, 'login')
  })
})

test('with a base URL, the Host does not matter', async () => {
  const stage = await openPeople({ args: ['--base-url', 'https://platform.example.org/console'] })
  try {
    const { status, headers } = await start(stage, 'evil.example')
    assert.equal(status, 303)
    const uri = new URL(headers.location ?? '').searchParams.get('redirect_uri')
    assert.equal(uri, 'https://platform.example.org/console/auth/callback/corp')
  } finally {
    await stage.close()
  }
})
