// The authorizer against a second one, on random worlds: kinds × verbs × subresources × names × namespaces × scopes × rules × graphs.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiError } from '../../src/api/errors.ts'
import type { Question } from '../../src/api/kind.ts'
import type { Decision } from '../../src/api/permissions.ts'
import type { ApiServer } from '../../src/apiserver/api-server.ts'
import { type Ask, mayDo } from './evaluator.ts'
import { build, type Dice, dice, makeWorld, ours, spaces, teamNames, verbs } from './random-objects.ts'

const worlds = 250
const asksPerWorld = 420

function makeAsk(die: Dice): Ask {
  const resource = die.pick([
    'teams',
    'sharedsecrets',
    'projectsecrets',
    'ownedaccesskeys',
    'sharedsecrets',
    'projectsecrets',
  ])
  const spaced = resource === 'sharedsecrets' || resource === 'projectsecrets'
  const name = die.chance(0.25)
    ? ''
    : resource === 'ownedaccesskeys'
      ? `k${Math.floor(die.next() * 7)}`
      : die.pick(resource === 'teams' ? [...teamNames, 'none'] : ['one', 'two', 'none'])
  return {
    verb: die.pick(verbs),
    group: die.chance(0.95) ? ours : 'other',
    resource,
    sub: die.chance(0.15) ? die.pick(['status', 'history', 'permissions', 'rotate']) : '',
    namespace: spaced && die.chance(0.95) ? die.pick(spaces) : '',
    name,
  }
}

/** Like the request pipeline: a key that does not authenticate may do nothing. */
function decide({ authenticate, authorizer }: ApiServer, authorization: string, question: Question): Decision {
  try {
    return authorizer.decide(authenticate(authorization), question)
  } catch (error) {
    assert.ok(error instanceof ApiError && error.code === 401, String(error))
    return { allowed: false, reason: error.message }
  }
}

test(`two evaluators agree on ${worlds * asksPerWorld} random requests, at least a quarter allowed and a quarter denied (D25–D27)`, async () => {
  const seed = Number(process.env['MATRIX_SEED'] ?? Date.now() % 1e9)
  const count = { allowed: 0, denied: 0 }
  for (let index = 0; index < worlds; index++) {
    const die = dice(seed + index)
    const world = makeWorld(die)
    const { apiServer, storage, secrets } = await build(world)
    for (let each = 0; each < asksPerWorld; each++) {
      const key = die.pick(world.keys)
      const ask = makeAsk(die)
      const expected = mayDo(world, key, ask)
      // Denials are the larger part of the world: enough of them are passed over for both to weigh.
      if (!expected && die.chance(0.6)) {
        each--
        continue
      }
      const { verb, sub, name, group, resource, namespace } = ask
      const target = { group, resource, namespace, ...(name ? { name } : {}), ...(sub ? { subresource: sub } : {}) }
      const actual = decide(apiServer, `Bearer ${secrets.get(key.name)}`, { verb, target })
      assert.equal(
        actual.allowed,
        expected,
        `seed ${seed}, world ${index}: ${JSON.stringify({ ask, key, reason: actual.reason })}\n${JSON.stringify(world)}`,
      )
      count[actual.allowed ? 'allowed' : 'denied']++
    }
    apiServer.stop()
    await storage.close()
  }
  const share = count.allowed / (count.allowed + count.denied)
  assert.ok(share >= 0.25 && share <= 0.75, `${Math.round(share * 100)}% were allowed`)
})
