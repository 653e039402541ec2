// How many TokenRevocations a change, a loop or a crowd leaves behind, and that a real gateway refuses what they cover (D33, D61).

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Person } from '../gateway/gateway-fixture.ts'
import { changeStored } from '../support/stored.ts'
import { eventually } from '../support/wire.ts'
import { keys, must, refused, teams } from './people.ts'
import { openTokenStage, type Revocation, revocations, type TokenStage, together } from './token-gateway.ts'

const count = (length: number) => Array.from({ length }, (_, index) => index)

describe('revocations', { timeout: 240_000 }, () => {
  let stage: TokenStage
  before(async () => {
    stage = await openTokenStage({ storage: 'sqlite' })
  })
  after(() => stage.close())

  const patch = (path: string, spec: object, key?: string) => must(stage.ask('PATCH', path, { spec }, key))
  /** The revocations that `work` left behind or changed. */
  const written = async (work: () => Promise<unknown>): Promise<readonly Revocation[]> => {
    const known = new Set((await stage.revocations()).map(({ metadata }) => metadata.resourceVersion))
    await work()
    return (await stage.revocations()).filter(({ metadata }) => !known.has(metadata.resourceVersion))
  }
  const createAndDelete = async (person: Person, minted?: string[]) => {
    const made = await must(stage.ask('POST', keys, { spec: { user: person.user } }, person.key))
    if (minted) {
      const path = '/apis/management.platform.sh/v1/directclusterendpointtokens'
      minted.push((await must(stage.ask('POST', path, { spec: {} }, made.spec.key))).status.token)
    }
    await must(stage.ask('DELETE', `${keys}/${made.metadata.name}`, undefined, person.key))
  }
  const isWhole = ({ spec }: Revocation, user: string) => spec.keyUID === undefined && spec.users?.includes(user)

  test('500 toggles of a key leave one revocation, for the tokens of that key only', async () => {
    const [toggled, other] = [await stage.invite('ada'), await stage.invite('ada')]
    const [lost, kept] = [await toggled.mint(), await other.mint()]
    const uid = await stage.uidOf(toggled)
    const found = await written(async () => {
      for (const _ of count(500))
        for (const disabled of [true, false]) await patch(`${keys}/${toggled.name}`, { disabled }, other.key)
    })
    assert.deepEqual(
      found.map(({ spec }) => spec.keyUID),
      [uid],
    )
    await stage.refused(lost)
    assert.equal(await stage.status(kept), 200)
    await stage.mintsAgain(toggled)
  })

  test('a later revocation replaces an earlier one: revoked tokens stay revoked, and streams of the key since then end', async () => {
    const [person, other] = [await stage.invite('eli'), await stage.invite('eli')]
    const first = await person.mint()
    const toggle = async () => {
      for (const disabled of [true, false]) await patch(`${keys}/${person.name}`, { disabled }, other.key)
    }
    await toggle()
    await stage.refused(first)
    const second = await stage.mintsAgain(person)
    const { ended } = await stage.watch(person.key)
    await toggle()
    await stage.refused(second)
    assert.equal(await stage.status(first), 401)
    await ended
  })

  test('creating and deleting 300 keys leaves at most 101 revocations, and the last covers all tokens of their owner', async () => {
    const [person, bystander] = [await stage.invite('bob'), await stage.invite('eve')]
    const [mine, theirs, minted] = [await person.mint(), await bystander.mint(), [] as string[]]
    const found = await written(async () => {
      for (const index of count(300)) {
        await createAndDelete(person, index % 99 === 0 ? minted : undefined)
        if (index % 60 === 0) assert.ok((await stage.revocations()).length < 110)
      }
    })
    assert.ok(found.length <= 101, String(found.length))
    assert.equal(found.filter(one => isWhole(one, 'bob')).length, 1)
    for (const token of [...minted, mine]) await stage.refused(token)
    assert.equal(await stage.status(theirs), 200)
    await stage.mintsAgain(person)
  })

  test('the limit holds if many keys of an owner end at the same time', async () => {
    const person = await stage.invite('ivy')
    const made = { metadata: { labels: { batch: 'ivy' } }, spec: { user: 'ivy' } }
    await together(count(150), 16, () => must(stage.ask('POST', keys, made)))
    const found = await written(() => must(stage.ask('DELETE', `${keys}?labelSelector=batch%3Divy`)))
    assert.ok(found.length <= 101, String(found.length))
    assert.equal(found.filter(one => isWhole(one, 'ivy')).length, 1)
    await stage.mintsAgain(person)
  })

  test('concurrent writes to keys of one owner lose no revocation, and conflict only on the key itself', async () => {
    const people = await Promise.all(count(24).map(() => stage.invite('gus')))
    const tokens = await Promise.all(people.map(person => person.mint()))
    const spare = await stage.invite('gus')
    // As many as may be: the next ones become one for all keys of their owner.
    for (const _ of count(100)) await createAndDelete(spare)
    await together(people, 24, async ({ name }) => {
      const there = await must(stage.ask('GET', `${keys}/${name}`))
      await must(stage.ask('PUT', `${keys}/${name}`, { ...there, spec: { ...there.spec, disabled: true } }))
    })
    for (const token of tokens) await stage.refused(token)

    const [one, other] = [await stage.invite('hal'), await stage.invite('hal')]
    const token = await one.mint()
    let [done, conflicts] = [0, 0]
    await together(count(8), 8, async client => {
      for (const round of count(12)) {
        const there = await must(stage.ask('GET', `${keys}/${one.name}`))
        const spec = { ...there.spec, disabled: (client + round) % 2 === 0 }
        const answer = await stage.ask('PUT', `${keys}/${one.name}`, { ...there, spec }, other.key)
        if (answer.status === 200) done++
        else {
          const now = await must(stage.ask('GET', `${keys}/${one.name}`))
          assert.equal(answer.status, 409, answer.text)
          assert.notEqual(now.metadata.resourceVersion, there.metadata.resourceVersion)
          conflicts++
        }
      }
    })
    assert.equal(done + conflicts, 96)
    await stage.refused(token)
  })

  test('the limit holds across a restart', async () => {
    const person = await stage.invite('kim')
    const token = await person.mint()
    const found = await written(async () => {
      for (const _ of count(60)) await createAndDelete(person)
      await stage.service.restart()
      for (const _ of count(60)) await createAndDelete(person)
    })
    assert.ok(found.length <= 101, String(found.length))
    assert.equal(found.filter(one => isWhole(one, 'kim')).length, 1)
    await stage.refused(token)
  })

  test('revocations covered by one for all keys of the owner are deleted, and the tokens stay revoked', async () => {
    const person = await stage.invite('lea')
    const minted: string[] = []
    const before = new Set((await stage.revocations()).map(({ metadata }) => metadata.uid))
    await createAndDelete(person, minted)
    for (const _ of count(100)) await createAndDelete(person)
    const own = async () => (await stage.revocations()).filter(({ metadata }) => !before.has(metadata.uid))
    await eventually('one is left', async () => (await own()).length === 1)
    assert.ok(isWhole((await own())[0] as Revocation, 'lea'))
    for (const token of minted) assert.equal(await stage.status(token), 401)
  })

  test('a change that invalidates nothing writes no revocation, nor does a change of an expired key', async () => {
    const person = await stage.invite('mia', { scope: { clusters: [{ cluster: 'prod' }, { cluster: 'dev' }] } })
    const path = `${keys}/${person.name}`
    const calm = await written(async () => {
      await must(stage.ask('PATCH', path, { metadata: { labels: { a: 'b' } } }))
      await patch(path, { description: 'x' })
      await patch(path, { ttl: 30 * 86_400 })
      await patch(path, { ttl: 29 * 86_400 })
    })
    assert.deepEqual(calm, [])
    assert.equal((await written(() => patch(path, { disabled: true }))).length, 1)
    const dead = await written(async () => {
      await patch(path, { scope: { clusters: [{ cluster: 'prod' }] } })
      await patch(path, { ttl: 60 })
      await must(stage.ask('POST', `${path}/rotate`, {}))
      await must(stage.ask('DELETE', path))
    })
    assert.deepEqual(dead, [])
  })

  test('a key that loses its sliding expiry loses its tokens', async () => {
    const person = await stage.invite('nia', { ttl: 3600, ttlAfterLastActivity: true })
    const token = await person.mint()
    await patch(`${keys}/${person.name}`, { ttlAfterLastActivity: false })
    await stage.refused(token)
  })

  test('a manual revocation stays unchanged, and users cannot take names that the server assigns', async () => {
    const person = await stage.invite('oda')
    const token = await person.mint()
    const uid = await stage.uidOf(person)
    const made = await must(stage.ask('POST', revocations, { spec: { keyUID: uid, reason: 'by hand' } }))
    assert.match(made.metadata.name, /^revoked-[a-z0-9]{5}$/)
    await stage.refused(token)
    await patch(`${keys}/${person.name}`, { disabled: true })
    const about = (await stage.revocations()).filter(({ spec }) => spec.keyUID === uid)
    assert.equal(about.length, 2)
    for (const name of [`revoked-key-${uid}`, 'revoked-team-x', 'revoked-owner-x'])
      await refused(stage.ask('POST', revocations, { metadata: { name }, spec: { jti: 'x' } }), 422, /metadata.name/)
  })

  describe('of teams', () => {
    const make = (name: string, spec: object) => must(stage.ask('POST', teams, { metadata: { name }, spec }))

    test('group names of the server are rejected', async () => {
      const bad = {
        metadata: { name: 'everybody' },
        spec: { groups: ['ops', 'system:authenticated', 'platform:user:a'] },
      }
      const { status, body } = await stage.ask('POST', teams, bad)
      assert.equal(status, 422)
      assert.deepEqual(
        body.details.causes.map(({ field }: { field: string }) => field),
        ['spec.groups[1]', 'spec.groups[2]'],
      )
    })

    test('a stored team with such a group can be changed otherwise, and the group gives no membership', async () => {
      await make('stored', { groups: ['stand-in:authenticated'], users: ['pia'] })
      const person = await stage.invite('quin')
      await stage.service.restart(async () =>
        changeStored(stage.service.directory, { bucket: 'teams', name: 'stored' }, text =>
          text.replaceAll('"stand-in:authenticated"', '"system:authenticated"'),
        ),
      )
      const review = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
      const { status } = await must(stage.ask('POST', review, {}, person.key))
      assert.ok(!status.userInfo.groups.includes('platform:team:stored'), String(status.userInfo.groups))
      const changed = await patch(`${teams}/stored`, { description: 'x' })
      assert.deepEqual(changed.spec.groups, ['system:authenticated'])
      await refused(
        stage.ask('PATCH', `${teams}/stored`, { spec: { groups: ['system:authenticated', 'system:masters'] } }),
        422,
      )
      const token = await person.mint()
      await patch(`${teams}/stored`, { groups: [] })
      await refused(stage.ask('PATCH', `${teams}/stored`, { spec: { groups: ['system:authenticated'] } }), 422)
      const barrier = await stage.invite('quin')
      const lost = await barrier.mint()
      await must(stage.ask('DELETE', `${keys}/${barrier.name}`))
      await stage.refused(lost)
      assert.equal(await stage.status(token), 200)
    })

    test('a removed member loses the tokens with the group of the team, and no others', async () => {
      const [rex, rita, sam] = [await stage.invite('rex'), await stage.invite('rita'), await stage.invite('sam')]
      await make('crew', { users: ['rita'] })
      const [other, without] = [await rita.mint(), await rex.mint()]
      await patch(`${teams}/crew`, { users: ['rita', 'rex'] })
      const [within, stays] = [await rex.mint(), await rita.mint()]
      const never = await sam.mint()
      await patch(`${teams}/crew`, { users: ['rita', 'sam'] })
      await patch(`${teams}/crew`, { users: ['rita'] })
      await stage.refused(within)
      for (const token of [other, without, stays, never]) assert.equal(await stage.status(token), 200)
    })

    test('100 changes leave one revocation with all earlier names; it does not affect members who came back', async () => {
      const [tom, uma] = [await stage.invite('tom'), await stage.invite('uma', { groups: ['night-shift'] })]
      await make('shift', { users: ['tom'], groups: ['night-shift'] })
      const [first, second] = [await tom.mint(), await uma.mint()]
      const found = await written(async () => {
        await patch(`${teams}/shift`, { users: [] })
        await patch(`${teams}/shift`, { users: ['tom'] })
        for (const index of count(100)) await patch(`${teams}/shift`, { users: ['tom', `guest-${index}`] })
      })
      assert.equal(found.length, 1)
      await stage.refused(first)
      const back = await stage.mintsAgain(tom)
      await patch(`${teams}/shift`, { groups: [] })
      await stage.refused(second)
      assert.equal(await stage.status(first), 401)
      assert.equal(await stage.status(back), 200)
    })

    test('with more than 500 names one revocation covers every token with the group of the team', async () => {
      const [vic, wes] = [await stage.invite('vic'), await stage.invite('wes')]
      await make('crowd', { users: ['vic', ...count(600).map(index => `u${index}`)] })
      const [internalClient, outside] = [await vic.mint(), await wes.mint()]
      const [found, ...more] = await written(() => patch(`${teams}/crowd`, { users: ['vic'] }))
      assert.deepEqual([found?.spec.users ?? [], found?.spec.groups, more.length], [[], ['platform:team:crowd'], 0])
      await stage.refused(internalClient)
      assert.equal(await stage.status(outside), 200)
      const again = await stage.mintsAgain(vic)
      await patch(`${teams}/crowd`, { users: ['vic', 'wes'] })
      const joined = await stage.mintsAgain(wes)
      assert.equal((await written(() => patch(`${teams}/crowd`, { users: ['vic'] }))).length, 1)
      await stage.refused(joined)
      assert.equal(await stage.status(again), 200, 'one who leaves later takes nobody along')
    })

    test('deleting a team revokes the tokens with its group, in the same object', async () => {
      const [xia, yan] = [await stage.invite('xia'), await stage.invite('yan')]
      await make('brief', { users: ['xia', 'yan'] })
      const tokens = [await xia.mint(), await yan.mint()]
      const found = await written(async () => {
        await patch(`${teams}/brief`, { users: [] })
        await must(stage.ask('DELETE', `${teams}/brief`))
      })
      assert.equal(found.length, 1)
      assert.match(found[0]?.spec.reason ?? '', /team brief was deleted/)
      for (const token of tokens) await stage.refused(token)
    })
  })
})
