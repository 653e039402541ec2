// Rotation with an overlap: the old secret and tokens issued with it work until the overlap ends (D22).

import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { Person } from '../gateway/gateway-fixture.ts'
import { eventually } from '../support/wire.ts'
import { keys, must, ours, refused } from './people.ts'
import { openTokenStage, type TokenStage } from './token-gateway.ts'

const tokens = `${ours}/directclusterendpointtokens`
const secret = (letter: string) => `secret-${letter.repeat(40)}`

describe('a rotation with an overlap', { timeout: 240_000 }, () => {
  let stage: TokenStage
  before(async () => {
    stage = await openTokenStage({ storage: 'sqlite' })
  })
  after(() => stage.close())

  const rotate = ({ name }: Person, spec: object = {}) =>
    stage.ask('POST', `${keys}/${name}/rotate`, { kind: 'KeyRotation', spec })
  /** The person with the new secret. */
  const rotated = async (person: Person, spec: object): Promise<Person> => {
    const { key } = (await must(rotate(person, spec))).spec
    return { ...person, key, mint: (wanted = {}) => mint(key, wanted) }
  }
  const mint = async (key: string, spec: object = {}): Promise<string> =>
    (await must(stage.ask('POST', tokens, { spec }, key))).status.token
  const claimsIn = (token: string) => JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
  /** When the older secret of a key ends. */
  const overlapOf = async ({ name }: Person): Promise<string> =>
    (await must(stage.ask('GET', `${keys}/${name}`))).status.keys[1].until
  const about = async (person: Person) => {
    const uid = await stage.uidOf(person)
    return (await stage.revocations()).filter(({ spec }) => spec.keyUID === uid)
  }
  test('tokens issued with the old secret expire with the overlap, tokens of the new one do not', async () => {
    const person = await stage.invite('ada')
    const after = await rotated(person, { overlapSeconds: 600 })
    const until = Date.parse(await overlapOf(person)) / 1000
    const [old, fresh] = [claimsIn(await person.mint({ ttl: 3600 })), claimsIn(await after.mint({ ttl: 3600 }))]
    assert.ok(old.exp <= until, `${old.exp} is after ${until}`)
    assert.equal(fresh.exp - fresh.iat, 3600)
    const short = claimsIn(await person.mint({ ttl: 60 }))
    assert.equal(short.exp - short.iat, 60)
  })

  test('tokens from before the rotation work until the overlap ends; afterwards they and their watches end', async () => {
    const person = await stage.invite('bob')
    const token = await person.mint({ ttl: 3600 })
    const after = await rotated(person, { overlapSeconds: 4 })
    const { ended } = await stage.watch(token)
    const open = await stage.watch(after.key)
    assert.deepEqual(await about(person), [])
    // Not in the second of the rotation, whose tokens may be of either secret.
    const [from, fresh] = await (async () => {
      for (;;) {
        const one = await after.mint()
        const { status } = await must(stage.ask('GET', `${keys}/${person.name}`))
        if (claimsIn(one).iat > Date.parse(status.rotatedAt) / 1000) return [status.rotatedAt, one] as const
      }
    })()
    await stage.refused(token)
    await ended
    assert.ok(Date.now() >= Date.parse(from) + 4000, 'not before the overlap ended')
    const [found, ...more] = await about(person)
    assert.deepEqual([found?.spec.notBefore, more.length], [from, 0])
    assert.equal(await stage.status(fresh), 200)
    assert.equal(await stage.status(after.key), 200)
    assert.ok(open.isOpen(), 'what the new secret opened stays open')
    const recorded = async () => {
      const log = await readFile(join(stage.service.directory, 'audit.log'), 'utf8')
      const events = log.split('\n').flatMap(line => (line ? [JSON.parse(line)] : []))
      return events.filter(({ objectRef }) => objectRef?.name === found?.metadata.name)
    }
    await eventually('it is in the audit log', async () => (await recorded()).length === 1)
    const [{ verb, user }] = await recorded()
    assert.deepEqual([verb, user.username], ['create', 'system:platform'])
  })

  test('an overlap that ends while the server is stopped revokes its tokens, once', async () => {
    const person = await stage.invite('cy')
    const token = await person.mint({ ttl: 3600 })
    const after = await rotated(person, { overlapSeconds: 2 })
    await stage.service.restart(async () => {
      const end = Date.now() + 2500
      await eventually('the overlap is over', async () => Date.now() > end)
    })
    await stage.refused(token)
    const [found] = await about(person)
    await stage.service.restart()
    await stage.mintsAgain(after)
    assert.deepEqual(await about(person), [found])
  })

  test('another rotation during the overlap is a conflict that names the end of the overlap, unless it is forced', async () => {
    const person = await stage.invite('dee')
    const after = await rotated(person, { overlapSeconds: 600 })
    const until = await overlapOf(person)
    for (const spec of [{}, { overlapSeconds: 900 }, { force: false }]) {
      const { status, body } = await rotate(person, spec)
      assert.deepEqual([status, body.reason], [409, 'Conflict'])
      assert.match(body.message, new RegExp(`${until}.*force: true`))
    }
    for (const force of ['yes', 1]) await refused(rotate(person, { force }), 422, /spec.force/)
    assert.deepEqual(await about(person), [])
    await must(stage.ask('GET', `${keys}/${person.name}`, undefined, person.key))
    const [old, fresh] = [await person.mint(), await after.mint()]
    const last = await rotated(person, { overlapSeconds: 600, force: true })
    const [found, ...more] = await about(person)
    assert.match(found?.spec.reason ?? '', /was replaced/)
    assert.equal(more.length, 0)
    await stage.refused(old)
    await stage.refused(fresh)
    await refused(stage.ask('GET', `${keys}/${person.name}`, undefined, person.key), 401)
    await must(stage.ask('GET', `${keys}/${person.name}`, undefined, after.key))
    await stage.mintsAgain(last)
  })

  test('a rotation after the overlap needs no force, and writes pending revocations of the overlap', async () => {
    const person = await stage.invite('eve')
    const token = await person.mint({ ttl: 3600 })
    await rotated(person, { overlapSeconds: 1 })
    await eventually('the overlap is over', async () => (await rotate(person, { overlapSeconds: 600 })).status === 201)
    await stage.refused(token)
  })

  test('updating spec.key replaces both secrets of an overlap and revokes their tokens', async () => {
    const person = await stage.invite('fay')
    const after = await rotated(person, { overlapSeconds: 600 })
    const issued = [await person.mint(), await after.mint()]
    // The same secret again takes nothing away.
    await must(stage.ask('PATCH', `${keys}/${person.name}`, { spec: { key: after.key, description: 'x' } }))
    assert.deepEqual(await about(person), [])
    await must(stage.ask('GET', `${keys}/${person.name}`, undefined, person.key))
    await must(stage.ask('PATCH', `${keys}/${person.name}`, { spec: { key: secret('a') } }))
    const [found, ...more] = await about(person)
    assert.match(found?.spec.reason ?? '', /was replaced/)
    assert.equal(more.length, 0)
    for (const token of issued) await stage.refused(token)
    for (const key of [person.key, after.key])
      await refused(stage.ask('GET', `${keys}/${person.name}`, undefined, key), 401, /was rotated/)
    await must(stage.ask('GET', `${keys}/${person.name}`, undefined, secret('a')))
  })
})
