// Reading a policy file: all problems are reported together, with their positions.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PolicyError, readPolicy } from './audit-policy-file.ts'

const read = (text: string) => readPolicy(Buffer.from(text))
const problemsOf = (text: string): readonly string[] => {
  try {
    read(text)
    return []
  } catch (error) {
    assert.ok(error instanceof PolicyError)
    return error.problems
  }
}

test("Kubernetes' own example of a policy is read", () => {
  const policy = read(`
apiVersion: audit.k8s.io/v1
kind: Policy
metadata: {name: example}
omitStages: [RequestReceived]
rules:
  - level: RequestResponse
    resources: [{group: "", resources: [pods]}]
  - level: None
    users: ["system:kube-proxy"]
    verbs: [watch]
    resources: [{group: "", resources: [endpoints, services]}]
  - level: None
    userGroups: ["system:authenticated"]
    nonResourceURLs: ["/api*", /version]
  - level: Metadata
    omitStages:
    omitManagedFields: true
`)
  assert.equal(policy.rules.length, 4)
  assert.deepEqual(policy.omitStages, ['RequestReceived'])
  assert.deepEqual(policy.rules[3], { level: 'Metadata', omitManagedFields: true })
})

test('all problems are found together, each with its position', () => {
  const problems = problemsOf(`
apiVersion: audit.k8s.io/v1beta1
kind: Policy
omitStages: [Later]
rules:
  - users: ada
  - level: Everything
    verb: [get]
  - level: None
    nonResourceURLs: [version, "/a*b"]
    namespaces: [x]
  - level: None
    resources: [{group: rbac.authorization.k8s.io/v1, resourceNames: [a]}]
    omitManagedFields: sometimes
  - 7
`)
  const places = problems.map(text => text.split(': ')[0])
  assert.deepEqual(places, [
    'apiVersion',
    'omitStages[0]',
    'rules[0].users',
    'rules[0].level',
    'rules[1].level',
    'rules[1].verb',
    'rules[2].nonResourceURLs[0]',
    'rules[2].nonResourceURLs[1]',
    'rules[2].nonResourceURLs',
    'rules[3].resources[0].group',
    'rules[3].resources[0].resourceNames',
    'rules[3].omitManagedFields',
    'rules[4]',
  ])
  assert.match(problems[4] ?? '', /None, Metadata, Request, RequestResponse/)
})

test('a policy without rules, an empty file, a duplicate key and invalid YAML are rejected', () => {
  assert.match(problemsOf('apiVersion: audit.k8s.io/v1\nkind: Policy').join(), /rules: requires at least one rule/)
  assert.match(
    problemsOf('apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: []').join(),
    /rules: requires at least one rule/,
  )
  assert.match(problemsOf('').join(), /not a map/)
  assert.match(problemsOf('kind: Policy\nkind: Policy').join(), /kind/)
  assert.equal(problemsOf('a: [').length, 1)
})
