// The session cookie of a browser at gateways: the embedded one and a stand-alone one. It authenticates nobody there.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { type GatewayProcess, startGateway } from '../gateway/gateway-fixture.ts'
import { closeAll } from '../support/close-all.ts'
import { openRequests, type RequestOptions } from '../support/request.ts'
import { type Server, startServer } from '../support/server.ts'
import { openPeople, type PeopleStage, secretOf, teams } from './people-stage.ts'

suite('session cookies at gateways', () => {
  const directory = mkdtempSync(join(tmpdir(), 'platform-cookies-'))
  let cluster: Server
  let stage: PeopleStage
  let gateway: GatewayProcess
  let central: ReturnType<typeof openRequests>
  let cookies: { readonly [name: string]: string }
  let secret: string
  before(async () => {
    cluster = await startServer({ storage: 'memory' })
    const file = join(directory, 'gateway.yaml')
    const clusters = [{ name: 'prod', kubeconfig: cluster.kubeconfig }]
    writeFileSync(file, JSON.stringify({ apiVersion: 'config.platform.sh/v1', kind: 'GatewayConfig', clusters }))
    stage = await openPeople({ args: ['--gateway-config', file] })
    gateway = await startGateway(stage.server, { clusters })
    central = openRequests({ base: stage.server.https, ca: stage.server.ca, key: '' })
    const browser = stage.browser()
    await browser.signIn('ada')
    cookies = browser.cookies()
    secret = secretOf(browser)
  })
  after(() =>
    closeAll(
      () => gateway.stop(),
      () => stage.close(),
      () => cluster.stop(),
      async () => rmSync(directory, { recursive: true, force: true }),
    ),
  )

  const path = '/kubernetes/cluster/prod/api'
  const asBrowser = () => ({
    cookie: Object.entries(cookies)
      .map(([name, value]) => `${name}=${value}`)
      .join('; '),
    'sec-fetch-site': 'same-origin',
    'sec-fetch-mode': 'cors',
  })
  const everywhere = (method: string, at: string, options: RequestOptions) =>
    Promise.all([central, gateway].map(one => one.request(method, at, options)))

  test('the cookie is valid at the management API of the same listener', async () => {
    const { status } = await central.request('GET', `/kubernetes/management${teams}`, { headers: asBrowser() })
    assert.equal(status, 200)
  })

  test('neither gateway accepts the cookie, though both accept its key as a bearer token', async () => {
    for (const { status } of await everywhere('GET', path, { key: secret })) assert.equal(status, 200)
    for (const method of ['GET', 'POST', 'OPTIONS'])
      for (const { status, body } of await everywhere(method, path, { headers: asBrowser() })) {
        assert.equal(status, 401, method)
        assert.equal(body.reason, 'Unauthorized')
      }
  })

  test('a stream with the cookie is refused, too', async () => {
    const upgrade = { connection: 'upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' }
    const headers = { ...asBrowser(), ...upgrade, 'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==' }
    for (const { status } of await everywhere('GET', `${path}/v1/namespaces/a/pods/b/exec`, { headers }))
      assert.equal(status, 401)
  })
})
