// Groups follow the identity provider: refresh, lost groups, grace, suspension, and keys that depend on a sign-in (D66, D67).

import assert from 'node:assert/strict'
import { hash, randomBytes } from 'node:crypto'
import { after, before, beforeEach, suite, test } from 'node:test'
import { eventually } from '../support/wire.ts'
import { keys, openPeople, type PeopleStage, secretOf, teams } from './people-stage.ts'

const team = `${teams}/web`

type Item = { readonly metadata: { readonly name: string }; readonly spec: { readonly type?: string } }

suite('refresh of a sign-in', () => {
  let stage: PeopleStage
  before(async () => {
    stage = await openPeople({ login: { lifetimes: { refreshAfter: '1s', refreshGrace: '3s' } } })
    await stage.ask('POST', teams, { metadata: { name: 'web' }, spec: { groups: ['corp:dev'] } })
  })
  after(() => stage.close())
  beforeEach(() => {
    stage.provider.faults = {}
    stage.provider.accounts['ada'] = { groups: ['dev', 'ops'] }
  })

  const signIn = async (account = 'ada') => {
    const browser = stage.browser()
    const page = await browser.signIn(account)
    assert.equal(page.status, 200, page.text)
    return secretOf(browser)
  }
  const status = async (key: string, path = team) => (await stage.ask('GET', path, undefined, key)).status
  const message = async (key: string) => (await stage.ask('GET', team, undefined, key)).body.message as string
  /** A key for a pipeline, made while signed in. */
  const makeKey = async (session: string) => {
    const { status: code, body } = await stage.ask('POST', keys, { spec: { displayName: 'CI' } }, session)
    assert.equal(code, 201, JSON.stringify(body))
    return { secret: body.spec.key as string, name: body.metadata.name as string, body }
  }

  test('a lost group takes effect with the next request after refreshAfter', async () => {
    const session = await signIn()
    assert.equal(await status(session), 200)
    stage.provider.accounts['ada'] = { groups: ['ops'] }
    await eventually('the group is gone', async () => (await status(session)) === 403)
    assert.equal((await stage.groupsOf(session)).includes('corp:ops'), true)
    stage.provider.accounts['ada'] = { groups: ['dev'] }
    await eventually('the group is back', async () => (await status(session)) === 200)
  })

  test('a watch ends when its group is lost, without another request', async () => {
    const session = await signIn()
    const watch = stage.server.watch(`${teams}?watch=true&fieldSelector=metadata.name=web`, { key: session })
    const first = await watch.next()
    assert.equal(first.value.object.metadata.name, 'web')
    stage.provider.accounts['ada'] = { groups: [] }
    let last = await watch.next()
    while (!last.done && last.value.type !== 'DELETED') last = await watch.next()
    await watch.return?.()
  })

  test('a lost group revokes the tokens of the user', async () => {
    stage.provider.accounts['carl'] = { groups: ['dev', 'ops'] }
    const session = await signIn('carl')
    stage.provider.accounts['carl'] = { groups: ['dev'] }
    await eventually('a revocation', async () => {
      await status(session)
      const { body } = await stage.ask('GET', '/apis/management.platform.sh/v1/tokenrevocations')
      return body.items.some(
        (one: { spec: { users?: string[]; reason: string } }) =>
          one.spec.users?.includes('corp:carl') && /lost groups/.test(one.spec.reason),
      )
    })
  })

  test('a provider that fails keeps the groups for the grace, and no longer', async () => {
    const session = await signIn()
    stage.provider.faults = { status: 503 }
    assert.equal(await status(session), 200)
    await eventually('the grace ends', async () => (await status(session)) === 401)
    assert.match(await message(session), /identity provider did not answer/)
    stage.provider.faults = {}
    await eventually('it works again', async () => (await status(session)) === 200)
  })

  test('a disabled account suspends the session and its keys until the person signs in again', async () => {
    const session = await signIn()
    const { secret } = await makeKey(session)
    stage.provider.accounts['ada'] = { groups: ['dev'], disabled: true }
    await eventually('the session is suspended', async () => (await status(session)) === 401)
    assert.match(await message(session), /the identity provider ended the sign-in; sign in again/)
    assert.equal(await status(secret), 401)
    stage.provider.accounts['ada'] = { groups: ['dev'] }
    assert.equal(await status(secret), 401, 'not before the person signs in')
    await signIn()
    assert.equal(await status(secret), 200)
    assert.equal(await status(session), 401)
  })

  test('a key made while signed in depends on the sign-in, has no expiry, and survives sign-out', async () => {
    const browser = stage.browser()
    await browser.signIn('ada')
    const { secret, body } = await makeKey(secretOf(browser))
    assert.match(body.spec.parent, /^login-/)
    assert.equal(body.spec.ttl, undefined)
    assert.equal((await stage.groupsOf(secret)).includes('corp:dev'), true)
    await browser.submit('/auth/logout', {})
    assert.equal(await status(secret), 200)
    stage.provider.accounts['ada'] = { groups: ['ops'] }
    await eventually('the key loses the group', async () => (await status(secret)) === 403)
    // A key made with it depends on the same sign-in.
    const next = await makeKey(secret)
    assert.equal(next.body.spec.parent, body.spec.parent)
  })

  test('a lost answer does not end the session if the provider accepts a used token for a while', async () => {
    const session = await signIn()
    stage.provider.faults = { loseTokens: 1, reuseLeeway: 60 }
    stage.provider.accounts['ada'] = { groups: ['ops'] }
    await eventually('the group is gone', async () => (await status(session)) === 403)
    assert.equal(stage.provider.faults.loseTokens, 0)
    stage.provider.accounts['ada'] = { groups: ['dev'] }
    await eventually('the next refresh works', async () => (await status(session)) === 200)
  })

  test('without that leeway it ends the session, and the person signs in again', async () => {
    const session = await signIn()
    stage.provider.faults = { loseTokens: 1 }
    await eventually('the session is suspended', async () => (await status(session)) === 401)
    assert.equal(await status(await signIn()), 200)
  })

  test('many requests cause one refresh', async () => {
    const session = await signIn()
    stage.provider.faults = { hold: true, only: '/token' }
    const { requests } = stage.provider
    const earlier = requests['/token'] ?? 0
    await eventually('a refresh starts', async () => {
      void status(session).catch(() => {})
      return (requests['/token'] ?? 0) > earlier
    })
    const waiting = Promise.all(Array.from({ length: 20 }, () => status(session)))
    stage.provider.faults = {}
    assert.deepEqual(new Set(await waiting), new Set([200]))
    assert.equal(requests['/token'], earlier + 1)
  })
})

suite('session keys', () => {
  let stage: PeopleStage
  let session: string
  let name: string
  before(async () => {
    stage = await openPeople()
    const browser = stage.browser()
    await browser.signIn('ada')
    session = secretOf(browser)
    name = (await stage.ask('GET', `${keys}?fieldSelector=spec.user=corp:ada`)).body.items[0].metadata.name
  })
  after(() => stage.close())

  const refused = async (method: string, path: string, body: unknown, key?: string) => {
    const answer = await stage.server.request(method, path, {
      body,
      ...(key === undefined ? {} : { key }),
      headers: { 'content-type': method === 'PATCH' ? 'application/merge-patch+json' : 'application/json' },
    })
    assert.ok([403, 422].includes(answer.status), `${answer.status} ${answer.text}`)
    return answer.body.message as string
  }

  test('nobody creates, changes, rotates or enables one, administrators included', async () => {
    for (const key of [session, undefined]) {
      assert.match(await refused('POST', keys, { spec: { type: 'Login' } }, key), /Login/)
      await refused('PATCH', `${keys}/${name}`, { spec: { ttl: 0 } }, key)
      await refused('PATCH', `${keys}/${name}`, { spec: { identity: { groups: ['corp:admins'] } } }, key)
      await refused('PATCH', `${keys}/${name}`, { metadata: { annotations: { 'platform.sh/session': '{}' } } }, key)
      await refused('POST', `${keys}/${name}/rotate`, {}, key)
    }
    const disable = await stage.server.request('PATCH', `${keys}/${name}`, {
      body: { spec: { disabled: true } },
      headers: { 'content-type': 'application/merge-patch+json' },
    })
    assert.equal(disable.status, 200, disable.text)
    await refused('PATCH', `${keys}/${name}`, { spec: { disabled: false } })
    assert.equal((await stage.ask('GET', teams, undefined, session)).status, 401)
  })

  test('a key that depends on a sign-in gets stronger only with the same sign-in, or by an administrator', async () => {
    stage.provider.accounts['bea'] = { groups: ['dev'] }
    const browser = stage.browser()
    await browser.signIn('bea')
    const signedIn = secretOf(browser)
    const made = await stage.ask('POST', keys, { spec: { displayName: 'CI', ttl: 3600 } }, signedIn)
    const child = `${keys}/${made.body.metadata.name}`
    const off = await stage.ask('POST', keys, { spec: { displayName: 'off', disabled: true } }, signedIn)
    const disabled = `${keys}/${off.body.metadata.name}`
    // The same user, without the groups of the provider.
    const plain = (await stage.ask('POST', keys, { spec: { user: 'corp:bea' } })).body.spec.key as string
    for (const [method, path, body] of [
      ['POST', `${child}/rotate`, {}],
      ['PATCH', child, { spec: { ttl: 0 } }],
      ['PATCH', disabled, { spec: { disabled: false } }],
    ] as const)
      assert.match(await refused(method, path, body, plain), /depends on a sign-in .* sign in/)
    // A change that gives no power is allowed.
    const rename = {
      body: { spec: { displayName: 'mine' } },
      headers: { 'content-type': 'application/merge-patch+json' },
    }
    assert.equal((await stage.server.request('PATCH', child, { ...rename, key: plain })).status, 200)
    // The key itself, another session of the same person, and an administrator.
    const other = stage.browser()
    await other.signIn('bea')
    for (const key of [off.body.spec.key, secretOf(other), signedIn, undefined]) {
      const { status, text } = await stage.server.request('POST', `${child}/rotate`, {
        body: {},
        ...(key ? { key } : {}),
      })
      assert.equal(status, key === off.body.spec.key ? 401 : 201, text)
    }
  })

  test('such a key is not rotated by a session that has lost a group that it still has', async () => {
    stage.provider.accounts['cid'] = { groups: ['dev', 'ops'] }
    const first = stage.browser()
    await first.signIn('cid')
    const { body } = await stage.ask('POST', keys, { spec: { displayName: 'CI' } }, secretOf(first))
    stage.provider.accounts['cid'] = { groups: ['dev'] }
    const second = stage.browser()
    await second.signIn('cid')
    const message = await refused('POST', `${keys}/${body.metadata.name}/rotate`, {}, secretOf(second))
    assert.match(message, /"corp:ops"/)
    assert.equal((await stage.ask('POST', `${keys}/${body.metadata.name}/rotate`, {}, secretOf(first))).status, 201)
  })

  test('a new sign-in adopts no key that was created under the name of another in the meantime', async () => {
    stage.provider.accounts['dan'] = { groups: ['dev'] }
    const browser = stage.browser()
    await browser.signIn('dan')
    const made: string[] = []
    for (let count = 0; count < 20; count++)
      made.push((await stage.ask('POST', keys, { spec: { displayName: 'CI' } }, secretOf(browser))).body.metadata.name)
    const plain = (await stage.ask('POST', keys, { spec: { user: 'corp:dan' } })).body.spec.key as string
    const mine = (await stage.ask('GET', keys, undefined, plain)).body.items as readonly Item[]
    const session = mine.find(({ spec }) => spec.type === 'Login')?.metadata.name
    assert.equal((await stage.ask('DELETE', `${keys}/${session}`, undefined, plain)).status, 200)
    const watch = stage.server.watch(`${keys}?watch=true`, { key: plain })
    assert.ok((await watch.next()).value)
    const last = made.at(-1)
    const replace = async () => {
      for await (const { type, object } of watch)
        if (type === 'ADDED' && object.spec.type === 'Login' && object.metadata.name !== session) break
      const deleting = stage.ask('DELETE', `${keys}/${last}`, undefined, plain)
      for (let tries = 0; tries < 100; tries++) {
        const { status, body } = await stage.ask('POST', keys, { metadata: { name: last } }, plain)
        if (status === 201) return body
      }
      throw new Error(`the key was not created again: ${(await deleting).text}`)
    }
    const replacing = replace()
    await stage.browser().signIn('dan')
    const { metadata, spec } = await replacing
    const { body: stored } = await stage.ask('GET', `${keys}/${last}`)
    assert.equal(stored.metadata.uid, metadata.uid)
    assert.equal(stored.spec.parent, undefined)
    assert.equal((await stage.groupsOf(spec.key)).includes('corp:dev'), false)
    const { body: adopted } = await stage.ask('GET', `${keys}/${made[0]}`)
    assert.match(adopted.spec.parent, /^login-/)
    assert.notEqual(adopted.spec.parent, session)
  })

  test('a new sign-in with fewer groups revokes the tokens of the user', async () => {
    stage.provider.accounts['fay'] = { groups: ['dev', 'ops'] }
    const browser = stage.browser()
    await browser.signIn('fay')
    const { body: child } = await stage.ask('POST', keys, { spec: { displayName: 'CI' } }, secretOf(browser))
    // The key keeps the sign-in.
    assert.equal((await stage.ask('DELETE', `${keys}/${child.spec.parent}`)).status, 200)
    const revoked = async () => {
      const { body } = await stage.ask('GET', '/apis/management.platform.sh/v1/tokenrevocations')
      return body.items.some((one: { spec: { users?: string[] } }) => one.spec.users?.includes('corp:fay'))
    }
    assert.equal(await revoked(), false)
    stage.provider.accounts['fay'] = { groups: ['dev'] }
    await stage.browser().signIn('fay')
    assert.equal(await revoked(), true)
    const groups = await stage.groupsOf(child.spec.key)
    assert.deepEqual([groups.includes('corp:dev'), groups.includes('corp:ops')], [true, false])
  })

  test('signing out everywhere ends sessions that devices get at the same moment, too', async () => {
    const self = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
    const random = () => randomBytes(32).toString('base64url')
    for (const account of ['gus0', 'gus1', 'gus2']) {
      stage.provider.accounts[account] = { groups: ['dev'] }
      const browser = stage.browser()
      await browser.signIn(account)
      const redeem: (() => Promise<{ readonly status: number; readonly text: string }>)[] = []
      for (let count = 0; count < 11; count++) {
        const verifier = random()
        const challenge = hash('sha256', verifier, 'base64url')
        const query = new URLSearchParams({ port: '40123', state: random(), challenge, machine: 'device' })
        const page = await browser.open(`/auth/cli?${query}`)
        const { headers } = await browser.submit('/auth/cli', { ...page.fields, decision: 'approve' })
        const code = new URL(String(headers['location'])).searchParams.get('code')
        redeem.push(() => stage.browser().call('POST', '/auth/cli/token', { body: { code, verifier } }))
      }
      assert.equal((await redeem.pop()?.())?.status, 200)
      const first = redeem.slice(0, 5).map(one => one())
      const leaving = browser.submit('/auth/logout?everywhere=true', {})
      const answers = await Promise.all([...first, ...redeem.slice(5).map(one => one())])
      await leaving
      for (const { status, text } of answers) {
        assert.ok([200, 403].includes(status), text)
        if (status === 200) assert.equal((await stage.ask('POST', self, {}, JSON.parse(text).key)).status, 401)
      }
    }
  })

  test('groups written by an administrator do not count', async () => {
    const spec = { user: 'eve', identity: { groups: ['corp:dev'] }, type: 'Other' }
    const { body } = await stage.ask('POST', keys, { spec })
    assert.equal((await stage.groupsOf(body.spec.key)).includes('corp:dev'), false)
  })
})
