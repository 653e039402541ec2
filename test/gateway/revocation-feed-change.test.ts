// A replaced revocation feed, for example after a change of the management API's URL: revocations keep their order.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Json } from '../../src/api/object.ts'
import { openRevocations, type Revocations } from '../../src/gateway/auth/revocations.ts'
import { TokenRevocation } from '../../src/kinds/token-revocation.ts'
import { buildApiServer } from '../support/in-process.ts'
import { eventually } from '../support/wire.ts'

let apiServer: Awaited<ReturnType<typeof buildApiServer>>
before(async () => {
  apiServer = await buildApiServer({ clock: { now: Date.now, forward: () => {} } })
})
after(() => apiServer.close())

const follow = (sequenceNumbers?: Revocations['sequenceNumbers'], at = apiServer) =>
  openRevocations({
    resources: at.resources,
    kind: TokenRevocation,
    now: Date.now,
    changed: () => {},
    failed: () => {},
    ...(sequenceNumbers ? { sequenceNumbers } : {}),
  })
const revoke = async (user: string) => {
  const { object } = await apiServer.resources.create(TokenRevocation, '', { spec: { users: [user] } } as Json)
  return { namespace: '', name: object.metadata.name ?? '' }
}
/** A principal whose key was reviewed after this many revocations. */
const keyOf = (username: string, issued: number) => ({
  caller: { username, groups: [] },
  keyUid: 'k',
  from: '',
  generation: 0,
  jti: undefined,
  issued,
  expires: Number.POSITIVE_INFINITY,
})

test('earlier revocations keep their number and later ones follow, even if others were deleted', async () => {
  const first = follow()
  await first.ready
  await revoke('ada')
  const others = [await revoke('bob'), await revoke('eve')]
  await eventually('all are heard', async () => first.order === 3)
  const [ada, mia] = [keyOf('ada', first.order), keyOf('mia', first.order)]
  for (const ref of others) await apiServer.resources.delete(TokenRevocation, ref, {})
  await eventually('they are gone', async () => first.size === 1)

  const second = follow(first.sequenceNumbers)
  await second.ready
  first.stop()
  assert.equal(second.size, 1)
  assert.equal(second.revokedReason(ada), undefined, 'it was reviewed after that')
  assert.notEqual(second.revokedReason(keyOf('ada', 0)), undefined)
  await revoke('mia')
  await eventually('it is heard', async () => second.size === 2)
  assert.notEqual(second.revokedReason(mia), undefined, 'that is later, whoever heard it')
  second.stop()
})

test('numbers of deleted revocations are dropped, whichever feed received them', async () => {
  const elsewhere = await buildApiServer({ clock: { now: Date.now, forward: () => {} } })
  const first = follow()
  await first.ready
  await revoke('nia')
  await eventually('it is heard', async () => first.revokedReason(keyOf('nia', 0)) !== undefined)
  await eventually('the feed delivered it', async () => first.order === first.sequenceNumbers.last)
  const [there, nia] = [first.size, keyOf('nia', first.order)]
  for (const user of ['sam', 'tom'])
    await elsewhere.resources.create(TokenRevocation, '', { spec: { users: [user] } } as Json)
  // One feed that is prepared and not used, and one that takes over.
  const unused = follow(first.sequenceNumbers, elsewhere)
  await unused.ready
  assert.equal(first.sequenceNumbers.known.size, there + 2)
  unused.stop()
  first.forget()
  assert.equal(first.sequenceNumbers.known.size, there)
  assert.equal(first.revokedReason(nia), undefined, 'the principal stays comparable')

  const second = follow(first.sequenceNumbers, elsewhere)
  await second.ready
  first.stop()
  second.forget()
  assert.equal(second.sequenceNumbers.known.size, 2)
  second.stop()
  await elsewhere.close()
})
