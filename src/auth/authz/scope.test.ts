// Scopes: words are matched as whole words, and a narrower scope allows nothing that the wider one does not (D25).

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Scope, ScopeRule } from '../../api/caller.ts'
import { indexRules } from './rbac-rules.ts'
import { allows, isNoWider, restricts } from './scope.ts'
import { withinScope } from './scope-permissions.ts'
import type { Request } from './scope-rules.ts'

test('a group or role named like an inherited object member grants nothing (D25)', () => {
  for (const word of ['constructor', 'toString', '__proto__', 'hasOwnProperty']) {
    const act = { verb: 'create', group: word, resource: 'length', namespace: '' }
    assert.equal(allows({ roles: [{ role: 'platform-cli' }] }, { target: 'Management', act }), undefined, word)
    assert.equal(allows({ roles: [{ role: word }] }, { target: 'Management', act }), undefined, word)
  }
})

test('exec, attach, portforward, proxy and upgrades are writes for every HTTP method, also for rules (D25)', () => {
  const reads = ['get', 'list', 'watch']
  const pod = { group: '', resource: 'pods', namespace: 'shop', name: 'till' }
  const at = (act: Request['act']): Request => ({ target: 'ProjectSpace', project: 'web', space: 's1', act })
  const asked = [
    ...['exec', 'attach', 'portforward', 'proxy'].map(subresource => at({ verb: 'get', ...pod, subresource })),
    at({ verb: 'get', ...pod, subresource: 'console', upgrades: true }),
    at({ verb: 'get', path: '/console', upgrades: true }),
  ]
  for (const one of asked) {
    const text = JSON.stringify(one)
    assert.equal(allows({ rules: [{ verbs: reads }] }, one), undefined, text)
    assert.equal(allows({ projects: [{ project: 'web', readOnly: true }] }, one), undefined, text)
    // A key that could not read does not read through a stream.
    assert.equal(allows({ rules: [{ verbs: ['create'] }] }, one), undefined, text)
    assert.equal(allows({ rules: [{ verbs: ['get', 'create'] }] }, one), 'scope.rules[0]', text)
    assert.equal(allows({ rules: [{ verbs: ['*'] }] }, one), 'scope.rules[0]', text)
  }
  const posted = at({ verb: 'create', ...pod, subresource: 'exec' })
  const resources = [{ group: '', resources: ['pods/exec'] }]
  assert.equal(allows({ rules: [{ verbs: ['create'], resources }] }, posted), 'scope.rules[0]')
  assert.equal(allows({ rules: [{ verbs: reads, resources }] }, posted), undefined)
})

const ours = 'management.platform.sh'
const pick = (...words: string[]) => fc.constantFrom(...words)
const some = (...words: string[]) => fc.array(pick(...words), { maxLength: 2 })
const name = pick('web', 'ops', '*')
const optional = <T>(fields: { [K in keyof T]: fc.Arbitrary<T[K]> }) => fc.record(fields, { requiredKeys: [] })

const rule = optional({
  verbs: some('get', 'list', 'create', '*'),
  resources: fc.array(
    optional({
      group: pick(ours, ''),
      resources: some('teams', 'projectsecrets', 'teams/*', '*/status', '*'),
      resourceNames: some('one', 'two'),
    }),
    { maxLength: 1 },
  ),
  namespaces: some('', 'default', 'p-web', '*'),
  nonResourceURLs: some('/version', '/apis/*', '*'),
  requestTargets: some('Management', 'Cluster', 'ProjectVirtualCluster'),
  cluster: pick('', 'c1', '*'),
  virtualClusters: fc.array(fc.record({ name: pick('v1', '*'), namespace: pick('p-web', '*') }), { maxLength: 1 }),
}) as fc.Arbitrary<ScopeRule>

const scope = optional({
  roles: fc.array(
    optional({
      role: pick('platform-cli', 'agent', 'metrics-reader', 'workspace'),
      projects: some('web', '*'),
      virtualClusters: some('v1'),
    }),
    { maxLength: 2 },
  ),
  projects: fc.array(optional({ project: name, readOnly: fc.boolean() }), { maxLength: 2 }),
  secrets: fc.array(
    optional({ namespace: pick('default', ''), project: pick('web', 'ops', ''), name: pick('one', 'three') }),
    { maxLength: 2 },
  ),
  spaces: fc.array(optional({ project: name, space: pick('s1', '*') }), { maxLength: 2 }),
  virtualClusters: fc.array(optional({ project: name, virtualCluster: pick('v1', '*') }), { maxLength: 2 }),
  clusters: fc.array(optional({ cluster: pick('c1', '*') }), { maxLength: 1 }),
  rules: fc.array(rule, { maxLength: 2 }),
  allowPlatformCli: fc.boolean(),
}) as fc.Arbitrary<Scope>

const act = fc.oneof(
  fc.record({ verb: pick('get', 'create'), path: pick('/version', '/apis/x', '/metrics') }),
  fc.record(
    {
      verb: pick('get', 'list', 'create', 'delete'),
      group: pick(ours, '', 'authentication.k8s.io'),
      resource: pick('teams', 'projectsecrets', 'sharedsecrets', 'tokenreviews', 'selfsubjectreviews', 'pods'),
      namespace: pick('', 'default', 'p-web', 'p-ops'),
      subresource: pick('status', 'history', 'exec'),
      name: pick('one', 'three'),
      metadataOnly: fc.boolean(),
    },
    { requiredKeys: ['verb', 'group', 'resource', 'namespace'] },
  ),
)
const request = fc.oneof(
  fc.record({ target: fc.constant('Management'), act }),
  fc.record({ target: fc.constant('Cluster'), cluster: pick('c1', 'c2'), act }),
  fc.record({ target: fc.constant('ProjectSpace'), project: pick('web', 'ops'), space: pick('s1', 's2'), act }),
  fc.record({
    target: fc.constant('ProjectVirtualCluster'),
    project: pick('web', 'ops'),
    virtualCluster: pick('v1', 'v2'),
    act,
  }),
) as fc.Arbitrary<Request>

/** A scope and a variant with a few parts removed or added, so that both results are common. */
const pair = fc
  .tuple(scope, scope, fc.boolean())
  .map(([outer, other, isNear]) => [outer, isNear ? near(outer, other) : other] as const)

function near(outer: Scope, other: Scope): Scope {
  const [first] = outer.rules ?? []
  return first ? { rules: [{ ...first, ...other.rules?.[0] }] } : { ...outer, ...other }
}

test('a scope within another covers only requests that the other covers (D25)', () => {
  let noWider = 0
  fc.assert(
    fc.property(pair, fc.array(request, { minLength: 20, maxLength: 20 }), ([outer, inner], requests) => {
      if (!isNoWider(inner, outer)) return
      noWider++
      for (const one of requests)
        if (allows(inner, one)) assert.ok(allows(outer, one), `${JSON.stringify({ outer, inner, one })}`)
    }),
    { numRuns: 10_000 },
  )
  assert.ok(noWider > 500, `only ${noWider} pairs were within each other`)
})

test('the rules of a scope allow what the scope allows, and nothing else (D25)', () => {
  const everything = [
    { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
    { verbs: ['*'], nonResourceURLs: ['*'] },
  ]
  let allowed = 0
  fc.assert(
    fc.property(scope, act, (one, asked) => {
      // Kinds of this API have no subresource exec, which is a write.
      if (!restricts(one) || ('subresource' in asked && asked.subresource === 'exec')) return
      const namespace = 'path' in asked ? 'default' : asked.namespace
      const { rules, isPartial } = withinScope(everything, one, { namespace, maxWords: 20_000 })
      assert.equal(isPartial, false)
      const { verb } = asked
      const question = 'path' in asked ? { verb, path: asked.path } : { verb, target: asked }
      const found = indexRules(rules.map(rule => ({ rule, from: undefined }))).find(question)
      const because = allows(one, { target: 'Management', act: asked })
      // Rules know neither metadata nor `*\/*`, and only what is in the namespace.
      if (because === 'scope role platform-cli' || JSON.stringify(one).includes('*/')) return
      if (because) allowed++
      assert.equal(found !== undefined, because !== undefined, JSON.stringify({ one, asked, rules }))
    }),
    { numRuns: 10_000 },
  )
  assert.ok(allowed > 500, `only ${allowed} requests were allowed`)
})

test('the rules of a scope are within the rules that are held (D25)', () => {
  const held = [
    { verbs: ['get', 'list'], apiGroups: [ours], resources: ['projectsecrets', '*/status'] },
    { verbs: ['get'], apiGroups: ['*'], resources: ['sharedsecrets'], resourceNames: ['one', 'two'] },
    { verbs: ['get'], nonResourceURLs: ['/apis/*', '/metrics'] },
  ]
  const rulesIn = (one: Scope, namespace: string) =>
    withinScope(held, one, { namespace, maxWords: 20_000 }).rules.filter(rule => rule.resources)
  assert.deepEqual(rulesIn({ projects: [{ project: 'web' }] }, 'p-web'), [
    { verbs: ['get', 'list'], apiGroups: [ours], resources: ['projectsecrets', 'projectsecrets/status'] },
  ])
  assert.deepEqual(rulesIn({ projects: [{ project: 'web' }] }, 'p-ops'), [])
  const names = { rules: [{ verbs: ['get'], resources: [{ group: ours, resources: ['*'], resourceNames: ['two'] }] }] }
  assert.deepEqual(rulesIn(names, 'default').at(-1)?.resourceNames, ['two'])
  const { nonResourceURLs } = withinScope(held, names, { namespace: '', maxWords: 20_000 }).rules[0] ?? {}
  assert.deepEqual(nonResourceURLs, ['/apis/*'])
  assert.equal(withinScope(held, names, { namespace: '', maxWords: 3 }).isPartial, true)
})

test('a secret of a project is not a shared secret of all namespaces (D25)', () => {
  const held = [{ verbs: ['get'], apiGroups: [ours], resources: ['*'] }]
  const secrets = [{ namespace: '', project: 'web', name: 'one' }]
  const { rules } = withinScope(held, { secrets }, { namespace: '', maxWords: 20_000 })
  assert.deepEqual(
    rules.filter(rule => rule.resourceNames),
    [],
  )
})

test('the rules of a scope are partial where a comparison would take too long, and correct as far as they go', () => {
  const words = (prefix: string, count: number) => Array.from({ length: count }, (_, at) => `${prefix}${at}/status`)
  const review = (count: number) => {
    const held = words('role', count).map(resource => ({
      verbs: ['get'],
      apiGroups: [ours],
      resources: [resource, ...words('thing', 200)],
    }))
    const rules = words('scope', count).map(resource => ({
      verbs: ['get'],
      resources: [{ group: ours, resources: [resource, 'thing7/*'] }],
    }))
    return withinScope(held, { rules }, { namespace: '', maxWords: 20_000 })
  }
  const allowed = [{ verbs: ['get'], apiGroups: [ours], resources: ['thing7/status'] }]
  assert.deepEqual(review(5), { rules: allowed, notes: [], isPartial: false })
  assert.deepEqual(review(40), { rules: allowed, notes: [], isPartial: true })
})

test('a comparison of scopes that would take too long says wider (D25)', () => {
  const words = (count: number) => Array.from({ length: count }, (_, at) => `word-${at}`)
  const scopes = {
    rules: (rules: number, count: number): Scope => ({
      rules: words(rules).map(own => ({ verbs: [...words(count), `of-${own}`] })),
    }),
    roles: (roles: number, count: number): Scope => ({
      roles: words(roles).map(own => ({ role: 'platform-cli', projects: [...words(count), `of-${own}`] })),
    }),
  }
  for (const [what, make] of Object.entries(scopes)) {
    assert.equal(isNoWider(make(20, 19), make(20, 20)), true, what)
    assert.equal(isNoWider(make(190, 239), make(190, 240)), false, what)
    assert.equal(isNoWider(make(190, 240), make(190, 240)), true, what)
  }
})

test('a namespace widens a rule about paths, and a star is not a namespace (D25)', () => {
  const paths = { nonResourceURLs: ['/version'] }
  assert.equal(isNoWider({ rules: [{ ...paths, namespaces: ['default'] }] }, { rules: [paths] }), false)
  assert.equal(isNoWider({ rules: [{ namespaces: ['default'] }] }, { rules: [{ namespaces: ['*'] }] }), false)
  assert.equal(isNoWider({ rules: [{ ...paths, verbs: ['get'] }] }, { rules: [{ ...paths, verbs: ['*'] }] }), true)
})
