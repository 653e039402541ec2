// Groups that a person loses while only a gateway sees the person: streams and direct tokens cause the refresh, and end after it.

import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { must } from '../access/people.ts'
import { type GatewayProcess, startGateway } from '../gateway/gateway-fixture.ts'
import { closeAll } from '../support/close-all.ts'
import { eventually } from '../support/wire.ts'
import { keys, openPeople, type PeopleStage, secretOf } from './people-stage.ts'

suite('a person at a gateway', { concurrency: true }, () => {
  let stage: PeopleStage
  let gateway: GatewayProcess
  before(async () => {
    stage = await openPeople({ login: { lifetimes: { refreshAfter: '2s' } } })
    gateway = await startGateway(stage.server, { clusters: [{ name: 'prod', kubeconfig: stage.server.kubeconfig }] })
  })
  after(() =>
    closeAll(
      () => gateway.stop(),
      () => stage.close(),
    ),
  )

  /** Signs in, and creates the credentials of an account. */
  const signIn = async (account: string) => {
    stage.provider.accounts[account] = { groups: ['dev', 'ops'] }
    const browser = stage.browser()
    await browser.signIn(account)
    const session = secretOf(browser)
    const path = '/apis/management.platform.sh/v1/directclusterendpointtokens'
    const { token } = (await must(stage.ask('POST', path, { spec: {} }, session))).status
    const child = (await must(stage.ask('POST', keys, { spec: {} }, session))).spec.key as string
    return { session, token: token as string, child }
  }
  const status = async (key: string) => (await gateway.request('GET', '/kubernetes/cluster/prod/api', { key })).status
  /** Everybody sees their own keys. */
  const watch = async (key: string) => {
    const events = gateway.watch(`/kubernetes/cluster/prod${keys}`, { key })
    assert.equal((await events.next()).value?.type, 'ADDED')
    return async () => {
      for await (const { type, object } of events) if (type === 'ERROR') return object.code as number
      return undefined
    }
  }

  test('an open stream of a direct token ends when its group is lost, without another request', async () => {
    const { token } = await signIn('carl')
    const ended = (await watch(token))()
    stage.provider.accounts['carl'] = { groups: ['dev'] }
    assert.equal(await ended, 401)
    assert.equal(await status(token), 401)
  })

  test('streams of the session and of a key made with it end, too', async () => {
    const { session, child } = await signIn('dora')
    const watches = [await watch(session), await watch(child)].map(end => end())
    stage.provider.accounts['dora'] = { groups: ['dev'] }
    assert.deepEqual(await Promise.all(watches), [401, 401])
    // The person is still signed in, with fewer groups.
    await eventually('new requests are accepted', async () => (await status(session)) === 200)
    assert.equal(await status(child), 200)
  })

  test('a disabled account ends all of them', async () => {
    const { session, token, child } = await signIn('emil')
    const watches = [await watch(session), await watch(token), await watch(child)].map(end => end())
    stage.provider.accounts['emil'] = { groups: ['dev', 'ops'], disabled: true }
    assert.deepEqual(await Promise.all(watches), [401, 401, 401])
    for (const key of [session, token, child])
      await eventually('it is refused', async () => (await status(key)) === 401)
  })
})
