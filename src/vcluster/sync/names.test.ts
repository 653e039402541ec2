// Host names and label keys: examples and properties.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { dnsSubdomain, qualifiedName } from '../../api/names.ts'
import { hostLabelKey, hostName, METADATA_PREFIX, shortName } from './names.ts'

test('a host name joins name, namespace and virtual cluster with -x-', () => {
  assert.equal(hostName('nginx', 'default', 'vcluster'), 'nginx-x-default-x-vcluster')
  assert.equal(hostName('my-endpoints', 'default', 'my-vcluster'), 'my-endpoints-x-default-x-my-vcluster')
  assert.equal(hostName('test', 'test', 'suffix'), 'test-x-test-x-suffix')
})

test('a host name over 63 bytes ends in ten digits of its hash; one of exactly 63 does not change', () => {
  const cases: [string, string, string, string][] = [
    ['a'.repeat(40), 'production-namespace', 'my-vcluster', `${'a'.repeat(40)}-x-productio-f1d8deb047`],
    ['n'.repeat(48), 'default', 'vc', `${'n'.repeat(48)}-x-default-x-vc`],
    ['n'.repeat(49), 'default', 'vc', `${'n'.repeat(49)}-x--097604cc5c`],
    [`${'b'.repeat(51)}.${'c'.repeat(10)}`, 'default', 'vc', `${'b'.repeat(51)}-2704a1d9ec`],
  ]
  for (const [name, namespace, vcluster, expected] of cases)
    assert.equal(hostName(name, namespace, vcluster), expected, name)
  assert.equal(hostName('n'.repeat(48), 'default', 'vc').length, 63)
  assert.equal(hostName(`${'b'.repeat(51)}.${'c'.repeat(10)}`, 'default', 'vc').length, 62)
})

test('a short name is v and 13 characters of the hash in base 36', () => {
  assert.equal(shortName('my-endpoints', 'default', 'my-vcluster'), 'v34p8zv3lpmung')
  assert.equal(shortName('test', 'test', 'suffix'), 'v2po30bbi7atc1')
})

const label = fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/)
const subdomain = fc.array(label, { minLength: 1, maxLength: 4 }).map(parts => parts.join('.').slice(0, 250))

test('every host name and short name is valid and has at most 63 bytes', () => {
  fc.assert(
    fc.property(subdomain, label, label, (name, namespace, vcluster) => {
      fc.pre(!dnsSubdomain(name).length)
      const names = [hostName(name, namespace, vcluster), shortName(name, namespace, vcluster)]
      for (const one of names) assert.ok(one.length <= 63 && !dnsSubdomain(one).length, one)
      assert.equal(names[1]?.length, 14)
    }),
    { numRuns: 1000 },
  )
})

test('a label key does not change, except for reserved keys, which are hashed', () => {
  assert.equal(hostLabelKey('app.kubernetes.io/name', 'vc'), 'app.kubernetes.io/name')
  assert.match(
    hostLabelKey('vcluster.platform.sh/managed-by', 'vc'),
    /^vcluster\.platform\.sh\/label-vc-x-[0-9a-f]{10}$/,
  )
  assert.notEqual(hostLabelKey(`${METADATA_PREFIX}a`, 'vc'), hostLabelKey(`${METADATA_PREFIX}b`, 'vc'))
  assert.deepEqual(qualifiedName(hostLabelKey(`${METADATA_PREFIX}a`, 'v'.repeat(63))), [])
})
