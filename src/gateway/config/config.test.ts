// A gateway.yaml: all problems are reported together with their positions, and valid files are accepted.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadGatewayConfig } from './config.ts'

const load = (text: string, alone = true) => loadGatewayConfig(Buffer.from(text), alone).problems
const head = 'apiVersion: config.platform.sh/v1\nkind: GatewayConfig\n'
const whole = `${head}listen: 127.0.0.1:8444
tls: {certificate: a.crt, key: a.key}
issuer: {url: https://platform.test}
service: {keyFile: agent.key}
`

test('a complete file has no problems, standalone and embedded', () => {
  assert.deepEqual(load(whole), [])
  assert.deepEqual(load(`${whole}clusters: [{name: prod, inCluster: true}]\nagent: {cluster: prod}\n`), [])
  assert.deepEqual(load(`${head}clusters: [{name: prod, inCluster: true}]\n`, false), [])
})

test('all type errors are reported together, each with line and column', () => {
  const problems = load(`apiVersion: config.platform.sh/v2
kind: GatewayConfig
lisen: x
clusters:
  - name: 7
    kubeconfg: a
spaces: {}
timeouts: {connect: 0, answer: soon}
`)
  assert.deepEqual(
    problems.map(({ line, column, message }) => `${line}:${column} ${message.replace(/ \(known.*/, '')}`),
    [
      '1:1 listen is missing',
      '1:1 tls is missing',
      '1:1 issuer is missing',
      '1:1 service is missing',
      '1:13 apiVersion must be config.platform.sh/v1',
      '3:1 unknown key lisen; did you mean listen?',
      '5:11 clusters[0].name must be a string',
      '6:5 unknown key clusters[0].kubeconfg; did you mean kubeconfig?',
      '7:9 spaces must be a list',
      '8:21 timeouts.connect must be at least 1',
      '8:32 timeouts.answer must be a whole number',
    ],
  )
})

test('targets are validated: names, duplicates, one kind of access, spaces in existing clusters', () => {
  const problems = load(`${whole.replace('platform.test', 'platform.test/').replace('127.0.0.1:8444', 'here')}
status: nowhere
identity: {userPrefix: "system:x", groupPrefix: "a b"}
limits: {share: 101}
clusters:
  - {name: prod, kubeconfig: a, inCluster: true}
  - {name: prod, kubeconfig: a}
  - {name: Bad, inCluster: true, context: x}
virtualClusters: [{name: v, project: web}]
spaces: [{name: s, project: web, cluster: prd, namespace: a}]
`)
  const messages = problems.map(({ message }) => message)
  for (const expected of [
    /listen must be HOST:PORT/,
    /issuer.url must be an https URL without a trailing slash/,
    /status must be HOST:PORT or off/,
    /identity.userPrefix must consist of .* must not start with system:/,
    /identity.groupPrefix must consist of/,
    /limits.share must be a percentage/,
    /clusters\[0\] requires either kubeconfig or inCluster/,
    /clusters: duplicate name "prod"/,
    /clusters\[2\].name must consist of lower-case/,
    /clusters\[2\].context requires kubeconfig/,
    /virtualClusters\[0\] requires either kubeconfig or inCluster/,
    /spaces\[0\].cluster: "prd" is not in clusters; did you mean prod\?/,
  ])
    assert.ok(
      messages.some(one => expected.test(one)),
      `${expected} is missing in:\n${messages.join('\n')}`,
    )
  assert.equal(messages.length, 12)
})

test('an agent belongs to one of the clusters, and only to a standalone gateway', () => {
  const clusters = 'clusters: [{name: prod, inCluster: true}]\n'
  const messages = (text: string, alone = true) => load(text, alone).map(({ message }) => message)
  assert.deepEqual(messages(`${whole}${clusters}agent: {cluster: prd, namespace: A.b}\n`), [
    'agent.cluster: "prd" is not in clusters; did you mean prod?',
    'agent.namespace must be the name of a namespace',
  ])
  assert.deepEqual(messages(`${whole}${clusters}agent: {}\n`), ['agent.cluster is missing'])
  assert.match(messages(`${head}${clusters}agent: {cluster: prod}\n`, false).join(), /only for a standalone gateway/)
})

test('a part of the wrong type does not hide problems of the rest, and is not checked further', () => {
  const problems = load(`${whole.replace('127.0.0.1:8444', 'here').replace('{keyFile: agent.key}', '{keyFile: 7}')}
limts: {}
limits: {share: 101, reads: many}
clusters:
  - nothing
  - {name: 5, kubeconfig: a}
  - {kubeconfig: a, inCluster: true}
  - {name: Prod, kubeconfig: 3}
  - {name: dev, kubeconfig: a}
  - {name: dev, kubeconfig: a}
spaces:
  - {name: s, project: web, cluster: prod, namespace: UPPER}
`)
  assert.deepEqual(
    problems.map(({ line, message }) => `${line} ${message.replace(/ \(known.*/, '')}`),
    [
      '3 listen must be HOST:PORT',
      '6 service.keyFile must be a string',
      '8 unknown key limts; did you mean limits?',
      '9 limits.share must be a percentage from 1 to 100',
      '9 limits.reads must be a whole number',
      '11 clusters[0] must be a map of keys and values',
      '12 clusters[1].name must be a string',
      '13 clusters[2].name is missing',
      '13 clusters[2] requires either kubeconfig or inCluster: true',
      '14 clusters[3].name must consist of lower-case letters, digits, - and .',
      '14 clusters[3].kubeconfig must be a string',
      '16 clusters: duplicate name "dev"',
      '18 spaces[0].namespace must consist of lower-case letters, digits, - and .',
    ],
  )
})

test('unreadable, duplicate or too large input is a problem, not a crash', () => {
  for (const text of ['a: [', '- 1', `${head}kind: GatewayConfig\n`, 'x'.repeat(1024 * 1024 + 1), '\xff'])
    assert.ok(load(text).length > 0, text.slice(0, 20))
})
