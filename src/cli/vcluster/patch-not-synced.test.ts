// `vcluster patch` and `vcluster test` do not show objects that the syncer would not write.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeIo } from '../../../test/support/fake-io.ts'
import type { Io } from '../../host/command.ts'
import { commands } from '../index.ts'
import { runCommand } from '../run-command.ts'

async function patch(config: string, object: string, more = '') {
  const said = { out: '', err: '' }
  const files: { readonly [path: string]: string } = { 'v.yaml': config, 'o.yaml': object }
  const io: Io = {
    ...fakeIo(),
    out: text => {
      said.out += text
    },
    err: text => {
      said.err += text
    },
    readFile: async path => new TextEncoder().encode(files[path] ?? ''),
    now: Date.now,
    isTerminal: false,
  }
  const words = `vcluster patch -f v.yaml --object o.yaml --name vc --namespace team${more}`.split(' ')
  return { code: await runCommand(commands, words, io), ...said }
}

const slicesOn = 'sync: {toHost: {endpointSlices: {enabled: true}}}\n'
const slice = (labels: string, more = '') =>
  `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: web-1, namespace: default, uid: u, labels: ${labels}${more}}, addressType: IPv4, endpoints: [{addresses: [10.0.0.7]}], ports: [{port: 80}]}\n`
const ofService = slice('{kubernetes.io/service-name: web}')
const endpoints = (name = 'web') =>
  `{apiVersion: v1, kind: Endpoints, metadata: {name: ${name}, namespace: default, uid: u}, subsets: [{addresses: [{ip: 10.0.0.7}], ports: [{port: 80}]}]}\n`

for (const [what, config, object, why] of [
  ['slices are off by default', '', ofService, 'sync.toHost.endpointSlices.enabled is false'],
  [
    'Endpoints are off',
    'sync: {toHost: {endpoints: {enabled: false}, services: {enabled: false}}}\n',
    endpoints(),
    'sync.toHost.endpoints.enabled is false',
  ],
  ['a slice has no service', slicesOn, slice('{}'), 'the label kubernetes.io/service-name is missing'],
  [
    'a slice has an empty service',
    slicesOn,
    slice('{kubernetes.io/service-name: ""}'),
    'the label kubernetes.io/service-name is missing',
  ],
  [
    'a controller manages the slice',
    slicesOn,
    slice('{kubernetes.io/service-name: web, endpointslice.kubernetes.io/managed-by: endpointslice-controller.k8s.io}'),
    'a controller manages it, and the host has the same controller',
  ],
  ['the object is of the API server', '', endpoints('kubernetes'), 'it belongs to the API server'],
] as const)
  test(`prints nothing and exits with 1 if ${what}`, async () => {
    const { code, out, err } = await patch(config, object)
    assert.deepEqual({ code, out, err }, { code: 1, out: '', err: `platform: not synced: ${why}\n` })
  })

test('--reverse does not show an object of a kind that is not synced', async () => {
  const there = await patch(slicesOn, ofService)
  assert.equal(there.code, 0)
  assert.equal((await patch(slicesOn, there.out, ' --reverse')).code, 0)
  const { code, out, err } = await patch('', there.out, ' --reverse')
  assert.deepEqual(
    { code, out, err },
    { code: 1, out: '', err: 'platform: not synced: sync.toHost.endpointSlices.enabled is false\n' },
  )
})

test('labels that the syncer sets itself cause no note', async () => {
  const { code, out, err } = await patch(
    slicesOn,
    slice('{kubernetes.io/service-name: web, endpointslice.kubernetes.io/managed-by: me, kubernetes.io/other: x}'),
  )
  assert.equal(code, 0)
  assert.match(out, /kubernetes\.io\/service-name: web-x-default-x-vc\n/)
  assert.deepEqual(err.match(/note: metadata\.labels\["[^"]*"\]/g), ['note: metadata.labels["kubernetes.io/other"]'])
})
