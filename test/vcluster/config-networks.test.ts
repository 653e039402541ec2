// The address guard: which addresses an endpoint may not have, in all the clothes they wear.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addressGuard } from '../../src/vcluster/networks.ts'

const guard = addressGuard({ allowed: [], denied: [], apiServer: ['203.0.113.5', '2001:db8::5'] })

test('addresses that lead into the host itself are refused with what they are', () => {
  const cases: [string, string | undefined][] = [
    ['10.1.2.3', undefined],
    ['2001:db8::1', undefined],
    ['127.0.0.1', 'a loopback address'],
    ['127.255.1.1', 'a loopback address'],
    ['::1', 'a loopback address'],
    ['::ffff:127.0.0.1', 'a loopback address'],
    ['::ffff:7f00:1', 'a loopback address'],
    ['::127.0.0.1', 'a loopback address'],
    ['64:ff9b::7f00:1', 'a loopback address'],
    ['64:ff9b::169.254.169.254', 'a link-local address'],
    ['0.0.0.0', 'an unspecified address'],
    ['::', 'an unspecified address'],
    ['169.254.169.254', 'a link-local address'],
    ['fe80::1', 'a link-local address'],
    ['224.0.0.1', 'a multicast or broadcast address'],
    ['ff02::1', 'a multicast or broadcast address'],
    ['255.255.255.255', 'a multicast or broadcast address'],
    ['203.0.113.5', 'the address of the host API server'],
    ['2001:db8::5', 'the address of the host API server'],
    ['::ffff:203.0.113.5', 'the address of the host API server'],
    ['127.1', 'no IP address'],
    ['0x7f000001', 'no IP address'],
    ['fe80::1%eth0', 'no IP address'],
    ['example.org', 'no IP address'],
    ['', 'no IP address'],
  ]
  for (const [address, expected] of cases) assert.equal(guard(address), expected, address)
})

test('what is allowed by setting passes, what is denied does not though it is allowed', () => {
  const own = addressGuard({ allowed: ['127.0.0.0/8', '10.0.0.0/8'], denied: ['10.9.0.0/16'], apiServer: [] })
  assert.equal(own('127.0.0.1'), undefined)
  assert.equal(own('::1'), 'a loopback address')
  assert.equal(own('10.1.1.1'), undefined)
  assert.equal(own('10.9.1.1'), 'an address of deniedCIDRs')
  assert.equal(own('::ffff:10.9.1.1'), 'an address of deniedCIDRs')
})
