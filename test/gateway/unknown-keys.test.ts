// Unknown keys at a gateway, and what the service makes of a gateway that asks about them: two programs.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { makeKey } from '../../src/kinds/key-format.ts'
import { closeAll } from '../support/close-all.ts'
import { type Server, startServer } from '../support/server.ts'
import { type GatewayProcess, invite, startGateway } from './gateway-fixture.ts'

const limit = 2
/** As many times what one address may do is what a gateway may ask about. */
const ofGateway = 50 * limit

describe('unknown keys at a gateway', () => {
  let service: Server
  let gateway: GatewayProcess
  before(async () => {
    service = await startServer({ storage: 'memory', args: ['--limits-unknown-keys', String(limit)] })
    gateway = await startGateway(service, { clusters: [{ name: 'prod', kubeconfig: service.kubeconfig }] })
  })
  after(async () => {
    await closeAll(gateway.stop, service.stop)
  })
  const unknown = () => makeKey(size => randomBytes(size))
  const at = (one: GatewayProcess, key: string) => one.request('GET', '/kubernetes/cluster/prod/version', { key })
  const review = () =>
    service.request('POST', '/apis/authentication.k8s.io/v1/tokenreviews', {
      body: { spec: { token: unknown() } },
    })

  test('do not count as guesses of the gateway: the next one gets 401, too, and loopback is not counted', async () => {
    for (let count = 0; count < 25; count++) assert.equal((await at(gateway, unknown())).status, 401)
  })

  test('other clients that review unknown keys must wait after the limit of one address, also as the same user', async () => {
    const codes: number[] = []
    for (let count = 0; count <= limit; count++) codes.push((await review()).status)
    assert.deepEqual(codes, [...new Array<number>(limit).fill(201), 429])
  })

  test('are limited per gateway by the management API, whatever the gateway counts; known keys still work', async () => {
    const ada = await invite(service, 'ada')
    const codes: number[] = []
    for (let count = 25; count <= ofGateway; count++) codes.push((await at(gateway, unknown())).status)
    assert.deepEqual(codes, [...new Array<number>(ofGateway - 25).fill(401), 429])
    assert.equal((await at(gateway, ada.key)).status, 200)
  })
})
