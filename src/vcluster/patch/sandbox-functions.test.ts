// atob, btoa and virtualToHostDNS: the examples of SPEC §2.10, and comparison with Node and the syncer.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { hostName } from '../sync/names.ts'
import { makeFunctions } from './sandbox-functions.ts'

const { atob, btoa, makeDns } = makeFunctions()
const dns = makeDns({ vcluster: 'vc', namespace: 'vc-ns', clusterDomain: 'cluster.local' })

test('btoa and atob are base64 of UTF-8, and reverse each other (1000 cases)', () => {
  assert.equal(btoa('my-value'), 'bXktdmFsdWU=')
  assert.equal(atob('bXktdmFsdWU='), 'my-value')
  assert.equal(btoa(42), 'NDI=')
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), text => {
      assert.equal(btoa(text), Buffer.from(text).toString('base64'))
      assert.equal(atob(btoa(text)), text)
      assert.equal(atob(btoa(text).replaceAll('=', '')), text, 'padding may be missing')
    }),
    { numRuns: 1000 },
  )
})

test('invalid input is rejected with the expected format', () => {
  const cases: [() => unknown, RegExp][] = [
    [() => btoa(undefined), /btoa: expected a string, got undefined/],
    [() => btoa(null), /got null/],
    [() => btoa({}), /got object/],
    [() => btoa('\ud800'), /lone surrogate/],
    [() => atob('a'), /not base64/],
    [() => atob('a_b-'), /not base64/],
    [() => atob('YQ==='), /not base64/],
    [() => atob('/w=='), /not valid UTF-8/],
    [() => atob(undefined), /atob: expected a string, got undefined/],
  ]
  for (const [call, message] of cases) assert.throws(call, message)
})

test('virtualToHostDNS returns the host name, with or without the domain', () => {
  assert.equal(dns('nginx.default.svc.cluster.local'), 'nginx-x-default-x-vc.vc-ns.svc.cluster.local')
  assert.equal(dns('nginx.default.svc'), 'nginx-x-default-x-vc.vc-ns.svc.cluster.local')
  assert.equal(dns(`${'n'.repeat(49)}.default.svc`), `${'n'.repeat(49)}-x--097604cc5c.vc-ns.svc.cluster.local`)
})

test('virtualToHostDNS throws for other names, with the expected format', () => {
  const wrong = [
    'nginx',
    'nginx.default',
    'nginx.default.pod',
    'nginx.default.svc.other.domain',
    '.default.svc',
    'a..svc',
  ]
  for (const name of [
    ...wrong,
    'Nginx.default.svc',
    '-a.b.svc',
    'a.b.svc.',
    `${'a'.repeat(64)}.b.svc`,
    'x'.repeat(300),
  ])
    assert.throws(
      () => dns(name),
      /virtualToHostDNS: expected <name>\.<namespace>\.svc or .*\.svc\.cluster\.local, got "/,
    )
  assert.throws(() => dns(7), /got number/)
  assert.throws(() => makeDns(undefined)('a.b.svc'), /multi-namespace mode/)
})

test('virtualToHostDNS and the syncer agree on every name (1000 cases)', () => {
  const label = fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/)
  fc.assert(
    fc.property(label, label, label, (name, namespace, vcluster) => {
      const translate = makeDns({ vcluster, namespace: 'ns', clusterDomain: 'cluster.local' })
      assert.equal(translate(`${name}.${namespace}.svc`), `${hostName(name, namespace, vcluster)}.ns.svc.cluster.local`)
    }),
    { numRuns: 1000 },
  )
})
