// Tokens of workloads: where they come from, the request that exchanges them, and errors of the client.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, beforeEach, suite, test } from 'node:test'
import { type FakeIo, fakeIo } from '../../../test/support/fake-io.ts'
import { openSignInApi } from './sign-in-api.ts'
import { loginWithWorkload } from './workload-login.ts'
import type { TokenFlags } from './workload-token.ts'

const jwt = (name: string) => `${name}.body.signature`
const noFlags: TokenFlags = {
  'token-file': undefined,
  'token-env': undefined,
  'github-audience': undefined,
  gitlab: undefined,
}

type Seen = { readonly url: string; readonly headers: IncomingHttpHeaders; readonly body: string }

suite('tokens of workloads', () => {
  let base = ''
  let seen: Seen[] = []
  let answer: { code: number; body: unknown }
  const respond = async (request: IncomingMessage, response: ServerResponse) => {
    let body = ''
    for await (const chunk of request.setEncoding('utf8')) body += chunk
    const { url = '', headers } = request
    seen.push({ url, headers, body })
    const isGitHub = url.startsWith('/github')
    response.writeHead(isGitHub ? 200 : answer.code, { 'Content-Type': 'application/json' })
    response.end(JSON.stringify(isGitHub ? { value: jwt('github') } : answer.body))
  }
  const server = createServer((request, response) => void respond(request, response))
  before(async () => {
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  after(() => {
    server.close()
    server.closeAllConnections()
  })
  beforeEach(() => {
    seen = []
    const issued = 'urn:ietf:params:oauth:token-type:access_token'
    answer = {
      code: 200,
      body: { access_token: 'plat_x', issued_token_type: issued, token_type: 'Bearer', expires_in: 3600 },
    }
  })

  type Machine = { readonly env?: FakeIo['env']; readonly files?: { readonly [path: string]: string } }
  async function login(flags: Partial<TokenFlags>, { env = {}, files = {} }: Machine = {}) {
    const own = fakeIo(files)
    const read = async (path: string) => {
      const text = files[path]
      return text === undefined ? undefined : new TextEncoder().encode(text)
    }
    const io = { ...own, env, files: { ...own.files, read } }
    const api = openSignInApi(io, { server: base, ca: undefined })
    const result = await loginWithWorkload(io, api, { ...noFlags, ...flags }).then(
      key => ({ key, message: '' }),
      error => ({ key: '', message: (error as Error).message }),
    )
    api.close()
    const sent = seen.find(({ url }) => url === '/auth/token')
    return { ...result, said: own.said(), token: new URLSearchParams(sent?.body).get('subject_token') }
  }
  const projected = '/var/run/secrets/tokens/platform'
  const standard = '/var/run/secrets/kubernetes.io/serviceaccount/token'
  const github = () => ({
    ACTIONS_ID_TOKEN_REQUEST_URL: `${base}/github?run=7`,
    ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'of-the-run',
  })

  test('the exchange is a form of RFC 8693, without a key', async () => {
    const { key, said } = await login({ 'token-file': 'token' }, { files: { token: `${jwt('file')}\n` } })
    assert.equal(key, 'plat_x')
    assert.equal(said, 'Using the token of file token.\n')
    const [{ headers, body } = assert.fail()] = seen
    assert.equal(headers['content-type'], 'application/x-www-form-urlencoded')
    assert.equal(headers.authorization, undefined)
    assert.deepEqual(Object.fromEntries(new URLSearchParams(body)), {
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token: jwt('file'),
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    })
  })

  test('a flag names the source', async () => {
    const env = { MINE: jwt('mine'), PLATFORM_ID_TOKEN: jwt('other'), ...github() }
    assert.equal((await login({ 'token-env': 'MINE' }, { env })).token, jwt('mine'))
    seen = []
    assert.equal((await login({ gitlab: 'MINE' }, { env })).token, jwt('mine'))
    seen = []
    assert.equal((await login({ 'github-audience': 'https://other.example' }, { env })).token, jwt('github'))
    assert.equal(seen[0]?.url, '/github?run=7&audience=https%3A%2F%2Fother.example')
    assert.equal(seen[0]?.headers.authorization, 'Bearer of-the-run')
  })

  test('without a flag the source is found and named: GitHub Actions, GitLab, Kubernetes', async () => {
    const files = { [projected]: jwt('projected'), [standard]: jwt('standard') }
    const PLATFORM_ID_TOKEN = jwt('gitlab')
    const onGitHub = await login({}, { env: { PLATFORM_ID_TOKEN, ...github() }, files })
    assert.equal(onGitHub.token, jwt('github'))
    assert.match(seen[0]?.url ?? '', new RegExp(`&audience=${encodeURIComponent(base)}$`))
    assert.equal(onGitHub.said, `Using the token of GitHub Actions, audience ${base}.\n`)
    seen = []
    const onGitLab = await login({}, { env: { PLATFORM_ID_TOKEN, GITLAB_CI: 'true' }, files })
    assert.equal(onGitLab.token, PLATFORM_ID_TOKEN)
    assert.match(onGitLab.said, /the token of GitLab, variable PLATFORM_ID_TOKEN\./)
    seen = []
    const inPod = await login({}, { files })
    assert.equal(inPod.token, jwt('projected'))
    assert.equal(inPod.said, `Using the token of Kubernetes service account, file ${projected}.\n`)
    seen = []
    const byDefault = await login({}, { files: { [standard]: jwt('standard') } })
    assert.equal(byDefault.token, jwt('standard'))
    assert.match(byDefault.said, /warning: .* also valid for the API server of the cluster/)
  })

  test('without a token nothing is sent, and the message says how to get one', async () => {
    assert.match((await login({})).message, /found no token of a workload.*--token-file or --token-env/)
    const onGitHub = await login({}, { env: { GITHUB_ACTIONS: 'true' } })
    assert.match(onGitHub.message, /permissions: \{ id-token: write \}/)
    assert.match((await login({}, { env: { GITLAB_CI: 'true' } })).message, /id_tokens of the job/)
    assert.match((await login({ 'github-audience': 'x' })).message, /permissions: \{ id-token: write \}/)
    assert.match((await login({ gitlab: 'NONE' })).message, /NONE is not set; declare it in id_tokens/)
    const env = { ...github(), ACTIONS_ID_TOKEN_REQUEST_URL: 'http://plane.example/token' }
    assert.match((await login({}, { env })).message, /not set/)
    assert.deepEqual(seen, [])
  })

  test('text that is not a JWT is neither sent nor repeated', async () => {
    const { message } = await login({ 'token-env': 'MINE' }, { env: { MINE: 'hunter2' } })
    assert.equal(message, 'variable MINE: the content is not a JWT; it was not sent')
    assert.deepEqual(seen, [])
  })

  test('errors of the server are shown without the token', async () => {
    const machine = { env: { MINE: jwt('mine') } }
    answer = { code: 400, body: { error: 'invalid_grant', error_description: 'the token has expired' } }
    const expired = `${base} rejected the token of variable MINE: the token has expired`
    assert.equal((await login({ 'token-env': 'MINE' }, machine)).message, expired)
    answer = { code: 400, body: { error: 'invalid_request' } }
    assert.match((await login({ 'token-env': 'MINE' }, machine)).message, /MINE: invalid_request$/)
    answer = { code: 404, body: { kind: 'Status', code: 404, message: 'not found' } }
    assert.match((await login({ 'token-env': 'MINE' }, machine)).message, /does not exchange tokens/)
    answer = { code: 403, body: { kind: 'Status', code: 403, message: 'the user is disabled' } }
    assert.equal((await login({ 'token-env': 'MINE' }, machine)).message, 'the user is disabled')
    for (const body of ['text', {}, { access_token: 'two\nlines' }]) {
      answer = { code: 200, body }
      const { message } = await login({ 'token-env': 'MINE' }, machine)
      assert.match(message, /without a Status|invalid response/)
      assert.equal(message.includes(jwt('mine')), false)
    }
  })
})
