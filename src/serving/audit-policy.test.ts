// The audit policy: the first match decides, every field means what it means in Kubernetes, and the decision None is cheap.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { cpuMilliseconds } from '../../test/support/cpu-time.ts'
import type { Question } from '../api/kind.ts'
import { compilePolicy, defaultPolicy, type Policy, type PolicyRule, type Requester, stages } from './audit-policy.ts'

const ada: Requester = { username: 'ada', groups: ['system:authenticated', 'dev'] }
const ours = 'management.platform.sh'
const on = (verb: string, resource: string, more: object = {}): Question => ({
  verb,
  target: { group: ours, resource, namespace: '', ...more },
})
const levelOf = (policy: Policy, question: Question, ...who: [Requester?]) =>
  compilePolicy(policy)(question, who.length ? who[0] : ada).level
const one = (rule: Omit<PolicyRule, 'level'>): Policy => ({ rules: [{ level: 'Metadata', ...rule }] })

test('the first matching rule decides, and without one nothing is recorded', () => {
  const policy: Policy = {
    rules: [
      { level: 'None', users: ['ada'] },
      { level: 'Request', verbs: ['create'] },
      { level: 'Metadata', verbs: ['create', 'get'] },
    ],
  }
  assert.equal(levelOf(policy, on('create', 'teams')), 'None')
  const bob: Requester = { username: 'bob', groups: [] }
  assert.equal(levelOf(policy, on('create', 'teams'), bob), 'Request')
  assert.equal(levelOf(policy, on('get', 'teams'), bob), 'Metadata')
  assert.equal(levelOf(policy, on('list', 'teams'), bob), 'None')
})

test('users and groups match only authenticated callers', () => {
  assert.equal(levelOf(one({ users: ['ada'] }), on('get', 'teams'), undefined), 'None')
  assert.equal(levelOf(one({ userGroups: ['dev'] }), on('get', 'teams'), undefined), 'None')
  assert.equal(levelOf(one({ userGroups: ['ops', 'dev'] }), on('get', 'teams')), 'Metadata')
  assert.equal(levelOf(one({}), on('get', 'teams'), undefined), 'Metadata')
})

test('resources match by group, and pods/* means pods as well, as in Kubernetes', () => {
  const rule = (resources: string[]) => one({ resources: [{ group: ours, resources }] })
  const status = on('get', 'teams', { subresource: 'status' })
  assert.equal(levelOf(rule(['teams']), on('get', 'teams')), 'Metadata')
  assert.equal(levelOf(rule(['teams']), status), 'None')
  assert.equal(levelOf(rule(['teams/status']), status), 'Metadata')
  assert.equal(levelOf(rule(['*/status']), status), 'Metadata')
  assert.equal(levelOf(rule(['*/status']), on('get', 'teams')), 'None')
  assert.equal(levelOf(rule(['teams/*']), status), 'Metadata')
  assert.equal(levelOf(rule(['teams/*']), on('get', 'teams')), 'Metadata')
  assert.equal(levelOf(rule(['*']), status), 'Metadata')
  assert.equal(levelOf(rule([]), status), 'Metadata')
  assert.equal(levelOf(one({ resources: [{ resources: ['teams'] }] }), on('get', 'teams')), 'None')
  assert.equal(levelOf(rule(['*']), { verb: 'get', path: '/version' }), 'None')
})

test('resourceNames and namespaces narrow a rule', () => {
  const policy = one({
    resources: [{ group: ours, resources: ['sharedsecrets'], resourceNames: ['a', 'b'] }],
    namespaces: ['x', ''],
  })
  assert.equal(levelOf(policy, on('get', 'sharedsecrets', { name: 'b', namespace: 'x' })), 'Metadata')
  assert.equal(levelOf(policy, on('get', 'sharedsecrets', { name: 'c', namespace: 'x' })), 'None')
  assert.equal(levelOf(policy, on('get', 'sharedsecrets', { name: 'a', namespace: 'y' })), 'None')
  assert.equal(levelOf(policy, on('list', 'sharedsecrets', { namespace: 'x' })), 'None')
})

test('nonResourceURLs match whole paths, or a prefix before a final *', () => {
  const at = (path: string): Question => ({ verb: 'get', path })
  assert.equal(levelOf(one({ nonResourceURLs: ['/healthz*'] }), at('/healthz/ping')), 'Metadata')
  assert.equal(levelOf(one({ nonResourceURLs: ['/healthz'] }), at('/healthz/ping')), 'None')
  assert.equal(levelOf(one({ nonResourceURLs: ['*'] }), at('/version')), 'Metadata')
  assert.equal(levelOf(one({ nonResourceURLs: ['*'] }), on('get', 'teams')), 'None')
})

test('a path that looks like a resource does not match resources', () => {
  const decide = compilePolicy({ rules: [{ level: 'None', nonResourceURLs: ['*'] }, { level: 'Metadata' }] })
  assert.equal(decide({ verb: 'get', path: 'namespaces' }, ada).level, 'None')
  const namespaces = { group: '', resource: 'namespaces', namespace: '' }
  assert.equal(decide({ verb: 'get', target: namespaces }, ada).level, 'Metadata')
})

test('stages are omitted by the policy or the rule; managed fields by the rule, or else by the policy', () => {
  const policy: Policy = {
    omitStages: ['RequestReceived'],
    omitManagedFields: true,
    rules: [
      { level: 'Request', verbs: ['get'], omitStages: ['Panic'], omitManagedFields: false },
      { level: 'Request', verbs: ['list'] },
    ],
  }
  const decide = compilePolicy(policy)
  const get = decide(on('get', 'teams'), ada)
  assert.deepEqual([...get.omitStages], ['RequestReceived', 'Panic'])
  assert.equal(get.omitManagedFields, false)
  assert.equal(decide(on('list', 'teams'), ada).omitManagedFields, true)
})

test('the default policy records writes and reads of secrets, and no other read', () => {
  const decide = compilePolicy(defaultPolicy)
  const level = (question: Question) => decide(question, ada).level
  for (const verb of ['create', 'update', 'patch', 'delete', 'deletecollection'])
    assert.equal(level(on(verb, 'teams', { name: 'a' })), 'Metadata')
  for (const verb of ['get', 'list', 'watch']) {
    assert.equal(level(on(verb, 'teams')), 'None')
    assert.equal(level(on(verb, 'sharedsecrets')), 'Metadata')
    assert.equal(level(on(verb, 'projectsecrets', { subresource: 'history', name: 'a' })), 'Metadata')
  }
  assert.equal(level({ verb: 'get', path: '/metrics' }), 'None')
  const review = { group: 'authorization.k8s.io', resource: 'selfsubjectaccessreviews', namespace: '' }
  assert.equal(level({ verb: 'create', target: review }), 'None')
})

test('the compiled policy agrees with a naive evaluation of the rules (2,000 policies)', () => {
  const few = (words: readonly string[]) =>
    fc.option(fc.array(fc.constantFrom(...words), { maxLength: 2 }), { nil: undefined })
  const rule = fc.record({
    level: fc.constantFrom('None', 'Metadata', 'Request', 'RequestResponse'),
    users: few(['ada', 'bob']),
    userGroups: few(['dev', 'ops']),
    verbs: few(['get', 'create', 'watch']),
    namespaces: few(['', 'x', 'y']),
    nonResourceURLs: few(['*', '/a', '/a*', '/b/*']),
    omitStages: few(stages),
    resources: fc.option(
      fc.array(
        fc.record({
          group: fc.option(fc.constantFrom('', 'g'), { nil: undefined }),
          resources: few(['*', 'teams', 'teams/status', 'teams/*', '*/status', 'keys']),
          resourceNames: few(['n', 'm']),
        }),
        { maxLength: 2 },
      ),
      { nil: undefined },
    ),
  })
  const question = fc.oneof(
    fc.record({
      verb: fc.constantFrom('get', 'create', 'list'),
      target: fc.record({
        group: fc.constantFrom('', 'g'),
        resource: fc.constantFrom('teams', 'keys'),
        subresource: fc.option(fc.constantFrom('status', 'log'), { nil: undefined }),
        namespace: fc.constantFrom('', 'x', 'y'),
        name: fc.option(fc.constantFrom('n', 'm', 'o'), { nil: undefined }),
      }),
    }),
    fc.record({ verb: fc.constantFrom('get', 'create'), path: fc.constantFrom('/a', '/ab', '/b', '/b/c', '/') }),
  )
  const who = fc.option(
    fc.record({
      username: fc.constantFrom('ada', 'bob', 'eve'),
      groups: fc.array(fc.constantFrom('dev', 'ops'), { maxLength: 2 }),
    }),
    { nil: undefined },
  )
  let recorded = 0
  let silent = 0
  fc.assert(
    fc.property(
      fc.array(rule, { maxLength: 5 }),
      fc.array(fc.tuple(question, who), { maxLength: 6 }),
      (rules, asked) => {
        const policy = { rules, omitStages: ['Panic'] } as unknown as Policy
        const decide = compilePolicy(policy)
        for (const [one, someone] of [...asked, ...asked]) {
          const expected = naive(policy, one as Question, someone)
          const decision = decide(one as Question, someone)
          assert.equal(decision.level, expected?.level ?? 'None')
          assert.deepEqual(
            [...decision.omitStages].sort(),
            [...new Set(['Panic', ...(expected?.omitStages ?? [])])].sort(),
          )
          if (expected) recorded++
          else silent++
        }
      },
    ),
    { numRuns: 2000 },
  )
  assert.ok(recorded > 1000 && silent > 1000, `${recorded} matched, ${silent} did not`)
})

/** A direct implementation of the field descriptions, one condition after the other. */
function naive({ rules }: Policy, question: Question, who: Requester): PolicyRule | undefined {
  const allows = (list: readonly string[] | undefined, ...values: readonly string[]) =>
    !list?.length || values.some(value => list.includes(value))
  return rules.find(rule => {
    if (rule.users?.length && !who) return false
    if (rule.userGroups?.length && !who) return false
    if (who && !(allows(rule.users, who.username) && allows(rule.userGroups, ...who.groups))) return false
    if (!allows(rule.verbs, question.verb)) return false
    const isForResources = (rule.resources?.length ?? 0) + (rule.namespaces?.length ?? 0) > 0
    if (!('target' in question)) {
      if (isForResources) return false
      if (!rule.nonResourceURLs?.length) return true
      return rule.nonResourceURLs.some(url =>
        url.endsWith('*') ? question.path.startsWith(url.slice(0, -1)) : url === question.path,
      )
    }
    if (!isForResources) return !rule.nonResourceURLs?.length
    const { group, resource, subresource, namespace, name = '' } = question.target
    if (!allows(rule.namespaces, namespace)) return false
    if (!rule.resources?.length) return true
    return rule.resources.some(entry => {
      if ((entry.group ?? '') !== group) return false
      if (!entry.resources?.length) return true
      if (!allows(entry.resourceNames, name)) return false
      const words = subresource ? [`${resource}/${subresource}`, `*/${subresource}`] : [resource]
      return entry.resources.some(pattern => ['*', `${resource}/*`, ...words].includes(pattern))
    })
  })
}

test('a hundred thousand decisions for None take well below a second, for any number of targets', () => {
  const decide = compilePolicy(defaultPolicy)
  const questions = ['teams', 'namespaces', 'clusterroles', 'roles'].flatMap(resource =>
    ['get', 'list', 'watch'].map(verb => on(verb, resource, { name: 'a' })),
  )
  const strange = Array.from({ length: 10_000 }, (_, index) => on('get', `kind${index}`))
  for (const question of [...strange, ...questions]) assert.equal(decide(question, ada).level, 'None')
  const used = cpuMilliseconds(() => {
    for (let round = 0; round < 100_000; round++) decide(questions[round % questions.length] as Question, ada)
  })
  assert.ok(used < 500, `${used} ms`)
})
