// A direct-cluster token that is requested while a write that revokes it is not committed yet (D33).

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { send } from '../support/direct-http.ts'
import { openDirectServer } from '../support/direct-server.ts'
import { eventually } from '../support/wire.ts'

const ours = '/kubernetes/management/apis/management.platform.sh/v1'
const merge = 'application/merge-patch+json'

/** A server with a clock that the test moves, and a disk that it holds. */
async function openServer() {
  const clock = { now: Date.parse('2030-01-01T00:00:00.900Z') }
  const disk: { held: Promise<void> | undefined; waiting: number } = { held: undefined, waiting: 0 }
  const { adminKey, handle, close } = await openDirectServer({
    now: () => clock.now,
    wrapStore: store =>
      new Proxy(store, {
        get: (target, name) => {
          const value = Reflect.get(target, name) as unknown
          if (name !== 'commit') return typeof value === 'function' ? value.bind(target) : value
          return async (...args: Parameters<typeof target.commit>) => {
            disk.waiting++
            await disk.held
            return target.commit(...args)
          }
        },
      }),
  })
  const ask = async (key: string, method: string, path: string, body?: object, type = 'application/json') => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': type }
    const request = { method, url: `${ours}/${path}`, headers, ...(body ? { body: JSON.stringify(body) } : {}) }
    const { code, text } = await send(handle, request)
    return { code, body: JSON.parse(text) as { spec: { key: string }; status: { token: string } } }
  }
  return {
    clock,
    disk,
    admin: (...args: [string, string, object?, string?]) => ask(adminKey, ...args),
    ask,
    close,
  }
}

const claimsOf = (token: string) =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as { groups: string[]; exp: number }

const writes: { readonly [what: string]: [string, string, object?, string?] } = {
  'the key is disabled': ['PATCH', 'ownedaccesskeys/mallory', { spec: { disabled: true } }, merge],
  'the key is deleted': ['DELETE', 'ownedaccesskeys/mallory'],
  'the user leaves a team': ['PATCH', 'teams/crew', { spec: { users: [] } }, merge],
  'the key is rotated': ['POST', 'ownedaccesskeys/mallory/rotate', { spec: { overlapSeconds: 60 } }],
}

for (const [what, write] of Object.entries(writes))
  test(`a token that is requested while ${what} does not outlive the write`, async t => {
    const server = await openServer()
    t.after(server.close)
    await server.admin('POST', 'teams', { metadata: { name: 'crew' }, spec: { users: ['mallory'] } })
    const made = await server.admin('POST', 'ownedaccesskeys', {
      metadata: { name: 'mallory' },
      spec: { user: 'mallory' },
    })
    const { key } = made.body.spec
    const mint = () => server.ask(key, 'POST', 'directclusterendpointtokens', { spec: { ttl: 86_400 } })
    await eventually('the signing key exists', async () => (await mint()).code === 201)

    const { promise, resolve: release } = Promise.withResolvers<void>()
    server.disk.held = promise
    server.disk.waiting = 0
    const written = server.admin(...write)
    await eventually('the write waits for the disk', async () => server.disk.waiting > 0)
    server.clock.now += 1000 // the token is issued in a later second than the revocation
    const minted = mint()
    for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate)
    server.disk.held = undefined
    release()
    assert.ok((await written).code < 300)
    const { code, body } = await minted
    if (code !== 201) return assert.ok([401, 409].includes(code), `${code}`)
    const claims = claimsOf(body.status.token)
    assert.ok(!claims.groups.includes('platform:team:crew') || claims.exp * 1000 <= server.clock.now + 60_000)
  })
