// Names are valid or invalid as in Kubernetes, with its messages (kubernetes-wire §1.9, §1.10).

import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { cpuMilliseconds } from '../../test/support/cpu-time.ts'
import { dnsLabel, dnsSubdomain, dnsSubdomainPrefix, labelValue, qualifiedName } from './names.ts'

const SUBDOMAIN_PROBLEM =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
const LABEL_PROBLEM =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
const NAME_PROBLEM =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
const VALUE_PROBLEM =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"

test('a name is a DNS subdomain of at most 253 bytes', () => {
  for (const name of ['a', 'a.b', 'a-b.c-1', 'x'.repeat(253)]) assert.deepEqual(dnsSubdomain(name), [], name)
  for (const name of ['', 'A', 'a_b', '.a', 'a.', 'a..b', 'a.-b', 'a-.b', '-', '.', '..', 'a/b', 'a%2fb', 'a\n', 'ä']) {
    assert.deepEqual(dnsSubdomain(name), [SUBDOMAIN_PROBLEM], JSON.stringify(name))
  }
  assert.deepEqual(dnsSubdomain('x'.repeat(254)), ['must be no more than 253 bytes'])
  assert.deepEqual(dnsSubdomain('ä'.repeat(127)), ['must be no more than 253 bytes', SUBDOMAIN_PROBLEM])
})

test('a generateName may end in a dash', () => {
  for (const prefix of ['a', 'a-', 'a--', 'team.x-']) assert.deepEqual(dnsSubdomainPrefix(prefix), [], prefix)
  for (const prefix of ['', '-', '-a-', 'a.-', 'A-']) assert.deepEqual(dnsSubdomainPrefix(prefix), [SUBDOMAIN_PROBLEM])
})

test('a namespace is a DNS label, and the message mentions dots', () => {
  assert.deepEqual(dnsLabel('a-1'), [])
  assert.deepEqual(dnsLabel('a.b'), ['must not contain dots'])
  assert.deepEqual(dnsLabel('A'), [LABEL_PROBLEM])
  assert.deepEqual(dnsLabel('x'.repeat(64)), ['must be no more than 63 bytes'])
})

test('a label key is a name with an optional domain before it', () => {
  for (const key of ['a', 'A_b.c-1', 'example.com/A', `${'x'.repeat(253)}/y`]) assert.deepEqual(qualifiedName(key), [])
  assert.deepEqual(qualifiedName('-a'), [NAME_PROBLEM])
  assert.deepEqual(qualifiedName(''), ['name part must be non-empty', NAME_PROBLEM])
  assert.deepEqual(qualifiedName('/a'), ['prefix part must be non-empty'])
  assert.deepEqual(qualifiedName('A/a'), [`prefix part ${SUBDOMAIN_PROBLEM}`])
  assert.deepEqual(qualifiedName('x'.repeat(64)), ['name part must be no more than 63 bytes'])
  assert.match(
    qualifiedName('a/b/c').join(),
    /^a valid label key must consist .* with an optional DNS subdomain prefix/,
  )
})

test('a label value may be empty and has at most 63 bytes', () => {
  for (const value of ['', 'a', 'A.b_c-d']) assert.deepEqual(labelValue(value), [])
  assert.deepEqual(labelValue('a b'), [VALUE_PROBLEM])
  assert.deepEqual(labelValue('x'.repeat(64)), ['must be no more than 63 bytes'])
})

test('validation agrees with the patterns in the messages', () => {
  const label = '[a-z0-9]([-a-z0-9]*[a-z0-9])?'
  const subdomain = new RegExp(`^${label}(\\.${label})*$`)
  const qualified = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '0', '-', '.', '_', 'A', '\n', ' '), maxLength: 8 })
  fc.assert(
    fc.property(text, value => {
      assert.equal(dnsSubdomain(value).length === 0, subdomain.test(value))
      assert.equal(dnsLabel(value).length === 0, new RegExp(`^${label}$`).test(value))
      assert.equal(qualifiedName(value).length === 0, qualified.test(value))
      assert.equal(labelValue(value).length === 0, value === '' || qualified.test(value))
    }),
    { numRuns: 5000 },
  )
})

test('validates three megabytes quickly', () => {
  const used = cpuMilliseconds(() => {
    for (const piece of ['a', 'a.', 'a-', '-'])
      for (const validate of [dnsSubdomain, dnsLabel, qualifiedName, labelValue]) {
        assert.notEqual(validate(piece.repeat(3 * 1024 * 1024)).length, 0)
      }
  })
  assert.ok(used < 2_000, `${used} ms`)
})
