// Back-channel logout when the storage fails: the provider sends the same token again, and then the session ends.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { buildApiServer } from '../../../test/support/in-process.ts'
import { unavailable } from '../../api/errors.ts'
import type { Ref } from '../../api/object.ts'
import { openLoginStates } from '../../auth/sessions/login-states.ts'
import { LoginState } from '../../kinds/login-state.ts'
import { openExchange } from '../../serving/exchange.ts'
import type { SignInContext } from './context.ts'
import { backchannelRoute } from './session.ts'

test('a logout that failed can be repeated with the same token, and one that worked cannot', async t => {
  const { clock, internalClient: resources, opened, close } = await buildApiServer()
  t.after(close)
  const open = (ref: Ref) => {
    try {
      return opened(LoginState, ref)
    } catch {
      return undefined
    }
  }
  const states = openLoginStates({ resources, open, now: clock.now, failed: error => assert.fail(String(error)) })
  t.after(states.stop)
  await states.ready
  let isBroken = true
  const context = {
    providers: { get: () => ({ verifyLogoutToken: async () => ({ sid: 'a', jti: 'b' }) }) },
    states,
    sessions: {
      endAt: async () => {
        if (isBroken) throw unavailable('the storage does not answer')
        return 1
      },
    },
    report: () => {},
  } as unknown as SignInContext
  const server = createServer((request, response) => {
    const exchange = openExchange(request, response, () => 'id')
    const reply = ({ code }: { readonly code: number }) => response.writeHead(code, { Connection: 'close' }).end()
    Promise.resolve(backchannelRoute(context, exchange, 'corp')).then(reply, reply)
  }).listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const logOut = async () =>
    (await fetch(url, { method: 'POST', body: new URLSearchParams({ logout_token: 'x' }) })).status

  assert.equal(await logOut(), 503)
  isBroken = false
  assert.equal(await logOut(), 200)
  assert.equal(await logOut(), 400)
})
