// Missing rules: which permissions of a rule are not covered, at a limited cost (D27).

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { maxPermissions, missingRules } from './missing-rules.ts'
import { indexRules, type PolicyRule } from './rbac-rules.ts'

const words = (count: number) => Array.from({ length: count }, (_, index) => `w${index}`)

function missing(held: readonly PolicyRule[], wanted: readonly PolicyRule[], left = maxPermissions) {
  const index = indexRules(held.map(rule => ({ rule, from: undefined })))
  return missingRules(index, wanted, { budget: { left }, maxMissing: 101 })
}

test('one rule that covers a rule of a billion permissions is found without comparing them', async () => {
  const large = { verbs: words(1000), apiGroups: words(1000), resources: words(1000) }
  const cases: [PolicyRule, PolicyRule][] = [
    [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }, large],
    [large, large],
    [
      { ...large, resourceNames: words(1000) },
      { ...large, resourceNames: ['w7', 'w8'] },
    ],
  ]
  for (const [held, wanted] of cases)
    assert.deepEqual(await missing([held], [wanted], 0), { rules: [], isPartial: false })
})

test('the search stops after as many missing permissions as an error needs', async () => {
  const large = { verbs: words(1000), apiGroups: words(1000), resources: words(1000) }
  const { rules, isPartial } = await missing([{ ...large, verbs: ['w0'], apiGroups: ['w0'] }], [large])
  assert.equal(rules.length, 101)
  assert.deepEqual(rules[0], { verbs: ['w0'], apiGroups: ['w1'], resources: ['w0'] })
  assert.equal(isPartial, false)
})

test('a comparison beyond the budget is partial, and all rules share the budget', async () => {
  const held = [
    { verbs: ['*'], apiGroups: ['a'], resources: ['b'] },
    { verbs: ['*'], apiGroups: ['a'], resources: ['c'] },
  ]
  const rule = { verbs: words(10), apiGroups: ['a'], resources: ['b', 'c'] }
  assert.deepEqual(await missing(held, [rule, rule], 40), { rules: [], isPartial: false })
  assert.deepEqual(await missing(held, [rule, rule], 39), { rules: [], isPartial: true })
})

test('the missing parts of a rule are listed; several rules together may cover it', async () => {
  const wanted = { verbs: ['get', 'list'], apiGroups: ['a'], resources: ['b', 'c/d'] }
  const held = [
    { verbs: ['get'], apiGroups: ['a'], resources: ['b', '*/d'] },
    { verbs: ['list'], apiGroups: ['*'], resources: ['b'], resourceNames: ['one'] },
    { verbs: ['*'], apiGroups: ['a'], resources: ['c/d'] },
  ]
  assert.deepEqual((await missing(held, [wanted])).rules, [{ verbs: ['list'], apiGroups: ['a'], resources: ['b'] }])
})

test('every subresource is covered by the same and by all, and covers each', async () => {
  const rule = (...resources: string[]) => ({ verbs: ['get'], apiGroups: ['a'], resources })
  const isCovered = async (wanted: string, ...held: string[]) =>
    (await missing([rule(...held)], [rule(wanted)])).rules.length === 0
  for (const [wanted, held] of [
    ['b/c', 'b/*'],
    ['b/c/d', 'b/*'],
    ['b/c/d', '*/c/d'],
    ['b/*', 'b/*'],
    ['b/*', '*'],
    ['*/*', '*/*'],
  ] as const)
    assert.equal(await isCovered(wanted, held), true, `${wanted} by ${held}`)
  for (const [wanted, ...held] of [
    ['b/*', 'b'],
    ['b/*', 'b/c', 'b/status'],
    ['b/*', '*/*'],
    ['b/*', '*/c'],
    ['b', 'b/*'],
    ['b/c', 'x/*'],
    ['b/c', '*/*'],
    ['b/c/d', '*/c'],
    ['*/c', '*/*'],
    ['*/c', 'b/*'],
    ['*/*', 'b/*'],
    ['*', 'b/*', '*/*'],
  ] as const)
    assert.equal(await isCovered(wanted, ...held), false, `${wanted} by ${held.join()}`)
})

const covered: { readonly [what: string]: readonly [held: PolicyRule, wanted: PolicyRule, isCovered: boolean] } = {
  'a name by a rule for all names': [
    { verbs: ['get'], apiGroups: ['a'], resources: ['b'] },
    { verbs: ['get'], apiGroups: ['a'], resources: ['b'], resourceNames: ['one'] },
    true,
  ],
  'all names by a rule for some': [
    { verbs: ['get'], apiGroups: ['a'], resources: ['b'], resourceNames: ['one'] },
    { verbs: ['get'], apiGroups: ['a'], resources: ['b'] },
    false,
  ],
  'a wildcard by a list': [
    { verbs: ['get', 'list'], apiGroups: ['a'], resources: ['b'] },
    { verbs: ['*'], apiGroups: ['a'], resources: ['b'] },
    false,
  ],
  'a subresource by its resource': [
    { verbs: ['get'], apiGroups: ['a'], resources: ['b'] },
    { verbs: ['get'], apiGroups: ['a'], resources: ['b/c'] },
    false,
  ],
  'a subresource by all with that name': [
    { verbs: ['get'], apiGroups: ['a'], resources: ['*/c'] },
    { verbs: ['get'], apiGroups: ['a'], resources: ['b/c'] },
    true,
  ],
  'a path by a pattern': [
    { verbs: ['get'], nonResourceURLs: ['/logs/*'] },
    { verbs: ['get'], nonResourceURLs: ['/logs/one', '/logs/two/*'] },
    true,
  ],
  'a pattern by a path': [
    { verbs: ['get'], nonResourceURLs: ['/logs/one'] },
    { verbs: ['get'], nonResourceURLs: ['/logs/*'] },
    false,
  ],
  'a resource by a path': [
    { verbs: ['*'], nonResourceURLs: ['*'] },
    { verbs: ['get'], apiGroups: ['a'], resources: ['b'] },
    false,
  ],
  'a path by all resources': [
    { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
    { verbs: ['get'], nonResourceURLs: ['/logs'] },
    false,
  ],
}

for (const [what, [held, wanted, isCovered]] of Object.entries(covered))
  test(`${what} ${isCovered ? 'is' : 'is not'} covered, alone and in a longer rule`, async () => {
    // So many that the index sorts them by group.
    const others = words(50).map(group => ({ verbs: ['*'], apiGroups: [group], resources: ['b', 'b/c', '*/c', '*'] }))
    const second = { verbs: ['other'], apiGroups: ['other'], resources: ['other'] }
    const both = { ...wanted, verbs: [...(wanted.verbs ?? []), 'other-verb'] }
    const parts = [held, { ...wanted, verbs: ['other-verb'] }, second]
    assert.equal((await missing([held], [wanted])).rules.length === 0, isCovered)
    assert.equal((await missing([...others, held], [wanted])).rules.length === 0, isCovered)
    // Two rules cover it in parts, so each permission is compared.
    assert.equal((await missing(parts, [both])).rules.length === 0, isCovered)
  })
