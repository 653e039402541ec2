// Warnings of `vcluster validate` and `vcluster patch` about patches without an effect on the host, such as references to unsynced objects.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { commands } from '../../src/cli/index.ts'
import { runCommand } from '../../src/cli/run-command.ts'
import type { Io } from '../../src/host/command.ts'
import { fakeIo } from '../support/fake-io.ts'

const license = readFileSync(join(import.meta.dirname, '../../examples/development.license'))
const endpoints = (kind: string) =>
  `{apiVersion: v1, kind: Endpoints, metadata: {name: web, namespace: default, uid: u}, subsets: [{addresses: [{ip: 10.0.0.7, targetRef: {kind: ${kind}, name: db}}], ports: [{port: 80}]}]}\n`

/** Returns the exit code and the warnings and notes. */
async function run(words: string, files: { readonly [path: string]: string }) {
  let told = ''
  const io: Io = {
    ...fakeIo(),
    out: () => {},
    err: text => {
      told += text
    },
    readFile: async path => (path === 'license' ? license : new TextEncoder().encode(files[path] ?? '')),
    env: { PLATFORM_LICENSE: 'license' },
    now: Date.now,
    isTerminal: false,
  }
  const code = await runCommand(commands, `vcluster ${words}`.split(' '), io)
  const lines = told.split('\n').filter(line => line && !line.includes('development license'))
  return { code, lines }
}
const validate = (reference: string, more = '') => {
  const patch = `{path: metadata.annotations.a, reference: ${reference}}`
  return run('validate -f v.yaml', { 'v.yaml': `sync: {toHost: {${more}endpoints: {patches: [${patch}]}}}\n` })
}

const only = 'the patch only translates the name'
for (const [reference, message, more] of [
  [
    '{apiVersion: rbac.authorization.k8s.io/v1, kind: Role}',
    `Role.rbac.authorization.k8s.io objects are never synced to the host, because they grant permissions on the host; ${only}`,
  ],
  [
    '{apiVersion: v1, kind: ServiceAccount}',
    `ServiceAccount objects are never synced to the host, because they are credentials of the host; ${only}`,
  ],
  [
    '{apiVersion: networking.k8s.io/v1, kind: Ingress}',
    `Ingress.networking.k8s.io objects are synced to the host only with --sync-references Ingress.networking.k8s.io; otherwise ${only}`,
  ],
  [
    '{apiVersion: v1, kind: Secret}',
    `Secret objects are not synced to the host, because sync.toHost.secrets.enabled is false; ${only}`,
    'secrets: {enabled: false}, ',
  ],
] as const)
  test(`validate warns about ${reference}`, async () => {
    const { code, lines } = await validate(reference, more)
    assert.equal(code, 0)
    assert.equal(lines.length, 1, lines.join('\n'))
    assert.match(lines[0] ?? '', /^platform: v\.yaml:1:\d+: warning: patches\[0\]\.reference: /)
    assert.ok(lines[0]?.endsWith(message), lines[0])
  })

test('validate does not warn about kinds that are synced, and not about the default of a kindPath', async () => {
  for (const reference of [
    ...['{apiVersion: v1, kind: Secret}', '{apiVersion: v1, kind: ConfigMap}', '{apiVersion: v1, kind: Service}'],
    ...['{apiVersion: v1, kind: Pod}', '{apiVersion: v1, kind: Role, kindPath: kind, namePath: name}', '{labels: {}}'],
  ])
    assert.deepEqual(await validate(reference), { code: 0, lines: [] }, reference)
})

test('patch notes the kind that an object names, and repeats no warning of the file', async () => {
  const path = 'subsets[*].addresses[*].targetRef'
  const config = (reference: string) =>
    `sync: {toHost: {endpoints: {patches: [{path: '${path}', reference: ${reference}}]}}}\n`
  const patch = (reference: string, kind: string) =>
    run('patch -f v.yaml --object o.yaml --name vc --namespace team', {
      'v.yaml': config(reference),
      'o.yaml': endpoints(kind),
    })
  const byPath = '{apiVersion: v1, kind: Secret, kindPath: kind, namePath: name}'
  assert.deepEqual((await patch(byPath, 'Secret')).lines, [])
  assert.deepEqual((await patch(byPath, 'ServiceAccount')).lines, [
    `platform: note: subsets[0].addresses[0].targetRef: ServiceAccount objects are never synced to the host, because they are credentials of the host; ${only}`,
  ])
  const fixed = await patch('{apiVersion: v1, kind: PersistentVolumeClaim, namePath: name}', 'Other')
  assert.equal(fixed.lines.length, 1, fixed.lines.join('\n'))
  assert.match(fixed.lines[0] ?? '', /: warning: patches\[0\]\.reference: PersistentVolumeClaim objects are synced/)
})

test('patch notes a reference into a namespace without a mapping', async () => {
  const reference = '{apiVersion: v1, kind: Secret, namePath: name, namespacePath: namespace}'
  const { lines } = await run('patch -f v.yaml --object o.yaml --name vc --namespace team', {
    'v.yaml': `sync: {toHost: {namespaces: {enabled: true, mappings: {byName: {default: team}}}, endpoints: {patches: [{path: 'subsets[*].addresses[*].targetRef', reference: ${reference}}]}}}\n`,
    'o.yaml': endpoints('Secret, namespace: other'),
  })
  assert.deepEqual(lines, [
    'platform: note: Secret other/db is not synced to the host: namespace "other" is not synced',
  ])
})

test('--sync-references suppresses warnings about the kinds that it names', async () => {
  const path = 'subsets[*].addresses[*].targetRef'
  const files = (reference: string) => ({
    'v.yaml': `sync: {toHost: {endpoints: {patches: [{path: '${path}', reference: ${reference}}]}}}\n`,
    'o.yaml': endpoints('PersistentVolumeClaim'),
  })
  const fixed = '{apiVersion: v1, kind: PersistentVolumeClaim, namePath: name}'
  const byPath = '{apiVersion: v1, kind: Secret, kindPath: kind, namePath: name}'
  const patch = 'patch -f v.yaml --object o.yaml --name vc --namespace team'
  for (const [words, reference] of [
    ['validate -f v.yaml', fixed],
    [patch, fixed],
    [patch, byPath],
  ] as const) {
    assert.equal((await run(words, files(reference))).lines.length, 1)
    const other = await run(`${words} --sync-references Ingress.networking.k8s.io`, files(reference))
    assert.equal(other.lines.length, 1)
    const flagged = await run(
      `${words} --sync-references Ingress.networking.k8s.io --sync-references PersistentVolumeClaim`,
      files(reference),
    )
    assert.deepEqual(flagged, { code: 0, lines: [] })
    const wrong = await run(`${words} --sync-references Pod`, files(reference))
    assert.equal(wrong.code, 2)
    assert.match(wrong.lines[0] ?? '', /--sync-references: "Pod" objects never cross to the host/)
  }
})

test('validate and patch say that patches of the labels that the syncer sets have no effect', async () => {
  const key = 'kubernetes.io/service-name'
  const files = (patch: string) => ({
    'v.yaml': `sync: {toHost: {endpointSlices: {enabled: true, patches: [${patch}]}}}\n`,
    'o.yaml': `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: web-1, namespace: default, uid: u, labels: {${key}: web}}, addressType: IPv4, endpoints: [{addresses: [10.0.0.7]}], ports: [{port: 80}]}\n`,
  })
  const validate = (patch: string) => run('validate -f v.yaml', files(patch))
  const preview = async (patch: string) =>
    (await run('patch -f v.yaml --object o.yaml --name vc --namespace team -o trace', files(patch))).lines
  const one = `{path: 'metadata.labels["${key}"]', expression: '"victim"'}`
  const { code, lines } = await validate(one)
  assert.deepEqual([code, lines.length], [0, 1])
  assert.match(
    lines[0] ?? '',
    /: warning: patches\[0\]\.path: the syncer sets the label kubernetes\.io\/service-name itself, so this patch has no effect$/,
  )
  assert.deepEqual(await preview(one), lines, 'patch prints the warning of the file and does not repeat it')
  const all = `{path: metadata.labels, expression: '({...value, "${key}": "victim", a: "b"})'}`
  assert.deepEqual(await validate(all), { code: 0, lines: [] })
  assert.deepEqual(await preview(all), [
    `platform: note: metadata.labels["${key}"] keeps its value: the syncer sets this label itself`,
  ])
  const other = `{path: metadata.labels.a, expression: '"b"'}`
  assert.deepEqual(
    [(await validate(other)).lines, await preview(`{path: metadata.labels, expression: '({...value, a: "b"})'}`)],
    [[], []],
  )
})
