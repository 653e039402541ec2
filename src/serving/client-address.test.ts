// The address of a client: only trusted proxies can report it, hop by hop.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { networkProblem, openAddresses } from './client-address.ts'

const from = (remoteAddress: string | undefined, forwarded?: string) =>
  ({ socket: { remoteAddress }, headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded } }) as never

test('X-Forwarded-For is trusted only from trusted proxies', () => {
  const direct = openAddresses([])
  assert.equal(direct.counted(from('203.0.113.5', '198.51.100.1')), '203.0.113.5')
  const behind = openAddresses(['10.0.0.0/8'])
  assert.equal(behind.counted(from('203.0.113.5', '198.51.100.1')), '203.0.113.5')
})

test('behind trusted proxies the client is the rightmost untrusted hop', () => {
  const { counted, sourcesOf } = openAddresses(['10.0.0.0/8', 'fd00::/8', '192.0.2.7'])
  assert.equal(counted(from('10.0.0.1', '1.1.1.1, 198.51.100.1')), '198.51.100.1')
  assert.equal(counted(from('10.0.0.1', '1.1.1.1, 198.51.100.1, 10.2.3.4, 192.0.2.7')), '198.51.100.1')
  assert.equal(counted(from('fd00::1', '198.51.100.1:4711')), '198.51.100.1')
  assert.equal(counted(from('::ffff:10.0.0.1', '[2001:db8:1:2:3::4]:80')), '2001:db8:1:2::/64')
  assert.deepEqual(sourcesOf(from('10.0.0.1', '1.1.1.1, 198.51.100.1, 10.2.3.4')), [
    '198.51.100.1',
    '10.2.3.4',
    '10.0.0.1',
  ])
})

test('loopback is exempt as a peer, not by a header', () => {
  const { counted } = openAddresses(['10.0.0.1'])
  for (const peer of ['127.0.0.1', '127.8.8.8', '::1', '::ffff:127.0.0.1'])
    assert.equal(counted(from(peer, '8.8.8.8')), '')
  assert.equal(counted(from('10.0.0.1', '127.0.0.1')), '127.0.0.1')
})

test('a trusted loopback proxy forwards the addresses of its clients', () => {
  const { counted } = openAddresses(['127.0.0.1'])
  assert.equal(counted(from('127.0.0.1', '8.8.8.8')), '8.8.8.8')
  assert.equal(counted(from('127.0.0.1')), '')
})

test('requests of trusted proxies themselves are exempt; a hop that is not an address counts as unknown', () => {
  const { counted } = openAddresses(['10.0.0.0/8'])
  assert.equal(counted(from('10.0.0.1')), '')
  assert.equal(counted(from('10.0.0.1', '10.9.9.9')), '')
  assert.equal(counted(from('10.0.0.1', '8.8.8.8, unknown')), 'unknown')
  assert.equal(counted(from('10.0.0.1', '8.8.8.8,')), 'unknown')
})

test('IPv6 is counted per /64, however it is written; IPv4 in IPv6 as IPv4', () => {
  const { counted } = openAddresses([])
  const spellings = [
    '2001:db8:0:1::1',
    '2001:0DB8:0:1:ffff:ffff:ffff:ffff',
    '2001:db8::1:0:0:0:9',
    '2001:db8:0:1::1.2.3.4',
  ]
  assert.deepEqual([...new Set(spellings.map(one => counted(from(one))))], ['2001:db8:0:1::/64'])
  assert.equal(counted(from('::ffff:1.2.3.4')), '1.2.3.4')
  assert.equal(counted(from('::ffff:102:304')), '1.2.3.4')
  assert.equal(counted(from('fe80::1%eth0')), 'fe80:0:0:0::/64')
  assert.equal(counted(from(undefined)), '')
})

test('an invalid network is named', () => {
  for (const fine of ['10.0.0.0/8', '::/0', '1.2.3.4', '2001:db8::1']) assert.equal(networkProblem(fine), undefined)
  for (const wrong of ['', 'proxy', '10.0.0.0/33', '10.0.0.0/8/8', '10.0.0.0/', '::/129', '10.0.0/8'])
    assert.match(networkProblem(wrong) ?? '', /not an address or a network/)
  assert.throws(() => openAddresses(['proxy']), /proxy/)
})
