// A vcluster.yaml as users write it: errors with positions, switches and defaults (SPEC §2.10).

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { defaultConfig, loadConfig } from '../../src/vcluster/config/config.ts'
import { jsonSchema } from '../../src/vcluster/config/schema.ts'

const load = (text: string, noPatchesReason?: string) => loadConfig(new TextEncoder().encode(text), { noPatchesReason })
const shown = (list: readonly { line: number; column: number; message: string }[]) =>
  list.map(({ line, column, message }) => `${line}:${column} ${message}`)
const problemsOf = (text: string, noPatchesReason?: string) => shown(load(text, noPatchesReason).problems)
const warningsOf = (text: string) => shown(load(text).warnings)
const toHost = (text: string) => `sync:\n  toHost:\n${text.replace(/^/gm, '    ')}\n`

test('an empty file has the defaults: services and endpoints on, no patches', () => {
  const { config, problems, warnings } = load('')
  assert.deepEqual([problems, warnings], [[], []])
  assert.equal(JSON.stringify(config), JSON.stringify(defaultConfig()))
  assert.equal(config.sync.toHost.endpoints.enabled, true)
  assert.equal(config.sync.toHost.services.enabled, true)
  assert.deepEqual(config.sync.toHost.endpoints.patches, [])
  assert.equal(config.networking.advanced.clusterDomain, 'cluster.local')
})

test('keys of other programs are kept unchanged, for context.vcluster.config', () => {
  const { config, problems } = load(
    'policies: {quota: {cpu: 4}}\nsync: {toHost: {pods: {enabled: false}}, fromHost: 1}\n',
  )
  assert.deepEqual(problems, [])
  const kept = JSON.parse(JSON.stringify(config))
  assert.deepEqual(kept.policies, { quota: { cpu: 4 } })
  assert.deepEqual(kept.sync.toHost.pods, { enabled: false })
  assert.equal(kept.sync.fromHost, 1)
  assert.equal(kept.sync.toHost.endpoints.enabled, true)
})

test('an unknown key under services and endpoints is rejected with its position and a suggestion', () => {
  assert.deepEqual(problemsOf(toHost('endpoints:\n  enable: true\nservices:\n  zebra: 1')), [
    '4:7 unknown key sync.toHost.endpoints.enable; did you mean enabled? (known: enabled, patches, hostDeletePolicy, allowedCIDRs, deniedCIDRs, allowedMetadataKeys, deniedMetadataKeys)',
    '6:7 unknown key sync.toHost.services.zebra (known: enabled, patches)',
  ])
})

test('an unknown key that resembles a known one is a warning; other keys are not', () => {
  const text = 'synk: {}\nsync:\n  toHost:\n    endpoint: {enabled: false}\n    ingresses: {enabled: true}\n'
  const more = 'controlPlane: {statefulSet: {}, distro: {}}\npolicies: {}\nplugins: {}\nexperimental: {}\n'
  assert.deepEqual(problemsOf(text + more), [])
  assert.deepEqual(warningsOf(text + more), ['4:5 sync.toHost.endpoint has no effect here; did you mean endpoints?'])
  assert.deepEqual(warningsOf('synk: {}\n'), ['1:1 synk has no effect here; did you mean sync?'])
})

test('all wrong types are reported, with the expected type', () => {
  const text = toHost('endpoints:\n  enabled: "yes"\n  patches: {}\n  hostDeletePolicy: recreate\n  allowedCIDRs: [1]')
  assert.deepEqual(problemsOf(`privateNodes: [1]\n${text}`), [
    '1:15 privateNodes must be a map of keys and values, not a list',
    '5:16 sync.toHost.endpoints.enabled must be true or false, not a string',
    '6:16 sync.toHost.endpoints.patches must be a list, not a map of keys and values',
    '7:25 sync.toHost.endpoints.hostDeletePolicy must be Recreate or Propagate; did you mean Recreate?',
    '8:22 sync.toHost.endpoints.allowedCIDRs.0 must be a string, not a number',
  ])
})

test('problems of rules and of the schema are reported together', () => {
  const text = toHost(
    'endpoints:\n  enable: true\n  hostDeletePolicy: Never\n  allowedCIDRs: [1, 10.0.0.0/33]\nservices:\n  enabled: true',
  )
  const told = problemsOf(`privateNodes: {enabled: true}\nnetworking: {advanced: {clusterDomain: "a b"}}\n${text}`)
  assert.deepEqual(
    told.map(line => line.split(' ').slice(0, 2).join(' ')),
    [
      '2:40 networking.advanced.clusterDomain',
      '6:7 unknown',
      '7:25 sync.toHost.endpoints.hostDeletePolicy',
      '8:22 sync.toHost.endpoints.allowedCIDRs.0',
      '8:25 allowedCIDRs[1]',
      '10:16 service',
    ],
  )
})

test('endpoints off alone turns services off, with a warning', () => {
  const text = toHost('endpoints:\n  enabled: false')
  assert.deepEqual(problemsOf(text), [])
  assert.deepEqual(warningsOf(text), ['4:16 service sync requires endpoint sync: it is disabled, too'])
  assert.equal(load(text).config.sync.toHost.services.enabled, false)
})

test('endpoints off with services explicitly off has no warning', () => {
  const { problems, warnings } = load(toHost('endpoints: {enabled: false}\nservices: {enabled: false}'))
  assert.deepEqual([problems, warnings], [[], []])
})

test('endpoints off with services explicitly on is rejected, with the key to change', () => {
  assert.deepEqual(problemsOf(toHost('endpoints: {enabled: false}\nservices:\n  enabled: true')), [
    '5:16 service sync requires endpoint sync, but sync.toHost.endpoints.enabled is false: set sync.toHost.endpoints.enabled to true, or sync.toHost.services.enabled to false',
  ])
})

for (const key of ['privateNodes', 'controlPlane.standalone']) {
  const head = key
    .split('.')
    .reduceRight((inside, part) => `{${part}: ${inside}}`, '{enabled: true}')
    .slice(1, -1)
  test(`with ${key}.enabled, endpoints explicitly on is rejected`, () => {
    const [problem, ...rest] = problemsOf(`${head}\n${toHost('endpoints: {enabled: true}')}`)
    assert.deepEqual(rest, [])
    assert.match(problem ?? '', new RegExp(`^4:26 endpoint sync requires .* but ${key}.enabled is true: set sync`))
  })

  test(`with ${key}.enabled, default endpoints and services are switched off, with a warning`, () => {
    const { config, problems, warnings } = load(`${head}\n`)
    assert.deepEqual(problems, [])
    assert.equal(warnings.length, 1)
    assert.match(warnings[0]?.message ?? '', /endpoint sync and service sync are disabled/)
    assert.equal(config.sync.toHost.endpoints.enabled, false)
    assert.equal(config.sync.toHost.services.enabled, false)
  })

  test(`with ${key}.enabled, services explicitly on are rejected`, () => {
    const problems = problemsOf(`${head}\n${toHost('services: {enabled: true}')}`)
    assert.equal(problems.length, 1)
    assert.match(problems[0] ?? '', /service sync requires endpoint sync/)
  })
}

test('multi-namespace mode without mappings is rejected', () => {
  assert.match(
    problemsOf(toHost('namespaces:\n  enabled: true')).join(),
    /^4:16 .*requires sync.toHost.namespaces.mappings.byName/,
  )
})

test('conflicting mappings and invalid names are each rejected', () => {
  const byName = '{a: x, b: x, "c-*": "d", "e-*": "e-*-1", Bad: y}'
  const problems = problemsOf(toHost(`namespaces: {enabled: true, mappings: {byName: ${byName}}}`))
  assert.deepEqual(
    problems.map(problem => problem.replace(/^\d+:\d+ /, '')),
    [
      'b → x: a already maps to it, and names would collide',
      'c-* → d: use one * on both sides, or none',
      'Bad → y: Bad is not a valid namespace name',
    ],
  )
})

test('patches without a license are rejected at load, with the key', () => {
  const text = toHost('endpoints:\n  patches:\n  - path: subsets\n    expression: value')
  assert.deepEqual(problemsOf(text, 'give a license'), [
    '4:7 sync.toHost.endpoints.patches requires a license: give a license',
  ])
  assert.deepEqual(problemsOf(text), [])
  assert.deepEqual(problemsOf(toHost('endpoints: {patches: []}'), 'give a license'), [])
})

test('problems of patches point into the expression, in every YAML string style', () => {
  const ways = [
    ['expression: value +', '6:28'],
    ["expression: 'value +'", '6:29'],
    ['expression: "\\u0076alue +"', '6:34'],
    ['expression: |-\n      value +', '7:18'],
    ['expression: >-\n      value +', '7:18'],
  ]
  for (const [text = '', place] of ways) {
    const [problem = ''] = problemsOf(toHost(`endpoints:\n  patches:\n  - path: subsets\n    ${text}`))
    assert.match(problem, new RegExp(`^${place} patches\\[0\\].expression: `), `${text}: ${problem}`)
  }
})

test('all problems of all patches are reported together', () => {
  const text = toHost(
    [
      'endpoints:',
      '  patches:',
      '  - {path: "a[", expression: value}',
      '  - {path: a.b, expression: value}',
      '  - {path: \'a["b"]\', expression: value, reference: {}}',
      '  - {path: metadata.name, expression: value}',
      '  - {expression: value}',
    ].join('\n'),
  )
  const indexes = new Set(problemsOf(text).map(problem => /patches\[(\d)\]/.exec(problem)?.[1]))
  assert.deepEqual([...indexes].toSorted(), ['0', '2', '3', '4'])
})

test('a file that is not YAML, has a duplicate key, or is not a map, is rejected with the position', () => {
  assert.match(problemsOf('a: [1\nb: 2').join(), /^\d+:\d+ /)
  assert.deepEqual(problemsOf('a: 1\na: 2\n'), ['2:1 key "a" already set in map'])
  assert.deepEqual(problemsOf('sync:\r\n  ä: {b: 1, "b": 2, b: 3}\r\n  ä: 2\r\n'), [
    '2:13 key "b" already set in map',
    '2:21 key "b" already set in map',
    '3:3 key "ä" already set in map',
  ])
  assert.deepEqual(problemsOf('- 1\n'), ['1:1 expected a map of keys and values'])
})

test('a file that is too expensive to parse is rejected', () => {
  const bomb = ['a: &a [x,x,x,x,x,x,x,x,x]']
  for (const [from, to] of ['ab', 'bc', 'cd', 'de', 'ef', 'fg', 'gh'].map(pair => [...pair]))
    bomb.push(`${to}: &${to} [${Array.from({ length: 9 }, () => `*${from}`).join()}]`)
  assert.match(problemsOf(bomb.join('\n')).join(), /aliases expand/)
  assert.match(problemsOf(`a: ${'x'.repeat(1 << 20)}`).join(), /more than 1048576 bytes/)
})

test('keys such as constructor and __proto__ are ordinary keys', () => {
  const { problems, config } = load('__proto__: {enabled: true}\nconstructor: 1\n')
  assert.deepEqual(problems, [])
  assert.equal(Object.hasOwn(config, '__proto__'), true)
  assert.match(problemsOf(toHost('endpoints: {__proto__: 1}')).join(), /unknown key .*__proto__/)
})

test('invalid networks are rejected', () => {
  assert.deepEqual(problemsOf(toHost('endpoints: {deniedCIDRs: [10.0.0.0/8, 10.0.0.0/33, example.org]}')), [
    '3:43 deniedCIDRs[1] must be an address or a network such as 10.0.0.0/8, not "10.0.0.0/33"',
    '3:56 deniedCIDRs[2] must be an address or a network such as 10.0.0.0/8, not "example.org"',
  ])
})

test('schemas/vcluster.schema.json equals the output of the program', () => {
  const published = readFileSync(join(import.meta.dirname, '../../schemas/vcluster.schema.json'), 'utf8')
  assert.equal(published, jsonSchema(), 'run: npx platform vcluster schema > schemas/vcluster.schema.json')
})
