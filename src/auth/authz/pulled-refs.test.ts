// The merged image pull secrets of a caller are those of the caller's teams, also after teams changed (D23).

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ProjectSecret } from '../../kinds/project-secret.ts'
import { pullKey, pullTarget } from '../../kinds/pull-secrets.ts'
import { SharedSecret } from '../../kinds/shared-secret.ts'
import type { PulledSecrets } from './object-permissions.ts'
import { openPulledRefs } from './pulled-refs.ts'

const teams = ['a', 'b', 'c', 'd'] as const

const mapOf = (names: readonly number[]): NonNullable<ReturnType<PulledSecrets>> =>
  new Map(
    names.map(at => {
      const kind = at % 2 ? 'SharedSecret' : 'ProjectSecret'
      const target = pullTarget({ kind, secretName: `secret-${at}`, secretNamespace: 'p-web' })
      return [pullKey(target), { ...target, uid: `uid-${at}` }]
    }),
  )

/** Long lists are kept between two requests, and short ones are not. */
const names = fc
  .tuple(fc.constantFrom(0, 2, 400), fc.array(fc.nat(450), { maxLength: 5 }))
  .map(([first, others]) => [...new Set([...Array(first).keys(), ...others])])
const step = fc.record({
  team: fc.constantFrom(...teams),
  names: fc.option(names, { nil: undefined }),
  members: fc.subarray([...teams]),
  username: fc.constantFrom('jane', 'john'),
})

test('a list of secrets has the pull secrets of all current teams, each once', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 12 }), steps => {
      const stored = new Map<string, NonNullable<ReturnType<PulledSecrets>>>(
        teams.map(team => [team, mapOf([...Array(400).keys()])]),
      )
      const pulledRefs = openPulledRefs(team => stored.get(team))
      for (const { team, names: changed, members, username } of steps) {
        if (changed) stored.set(team, mapOf(changed))
        else stored.delete(team)
        const groups = ['others', ...members.map(one => `platform:team:${one}`)]
        for (const kind of [SharedSecret, ProjectSecret]) {
          const found = pulledRefs({ username, groups }, kind).map(({ name }) => name)
          const all = members.flatMap(one => [...(stored.get(one)?.values() ?? [])])
          const expected = new Set(all.filter(one => one.resource === kind.plural).map(one => one.name))
          assert.deepEqual(found.sort(), [...expected].sort())
        }
      }
    }),
    { numRuns: 300 },
  )
})
