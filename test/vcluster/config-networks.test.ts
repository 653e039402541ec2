// The address guard: addresses that an endpoint may not have, in every notation and embedding.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { addressGuard } from '../../src/vcluster/config/address-policy.ts'

const guard = addressGuard({ allowed: [], denied: [], apiServer: ['203.0.113.5', '2001:db8::5'] })

test('addresses of the host itself are rejected with a description', () => {
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
    ['64:ff9b::169.254.169.254', 'a cloud metadata address'],
    ['0.0.0.0', 'an unspecified address'],
    ['::', 'an unspecified address'],
    ['169.254.1.1', 'a link-local address'],
    ['169.254.169.254', 'a cloud metadata address'],
    ['fe80::1', 'a link-local address'],
    ['224.0.0.1', 'a multicast or broadcast address'],
    ['ff02::1', 'a multicast or broadcast address'],
    ['255.255.255.255', 'a multicast or broadcast address'],
    ['203.0.113.5', 'the address of the host API server'],
    ['2001:db8::5', 'the address of the host API server'],
    ['::ffff:203.0.113.5', 'the address of the host API server'],
    ['2002:cb00:7105::', 'the address of the host API server'],
  ]
  for (const [address, expected] of cases) assert.equal(guard(address), expected, address)
})

test('cloud metadata addresses are rejected', () => {
  const metadata = [
    ...['169.254.169.254', '169.254.170.2', '169.254.42.42', '100.100.100.200', '168.63.129.16', '192.0.0.192'],
    ...['fd00:ec2::254', 'fd00:ec2::23', 'fd20:ce::254', 'fd00:c1::a9fe:a9fe', 'fd00:42::42', 'fd00:a9fe:a9fe::1'],
    ...['fd00:100::100:200', 'fd00:0ec2:0000:0000:0000:0000:0000:0254', 'FD00:EC2::254', 'fd00:ec2:0::2:54'],
    ...['fd20:00ce:0:0:0::254', 'FD20:CE::0.0.2.84'],
  ]
  for (const address of metadata) assert.equal(guard(address), 'a cloud metadata address', address)
  for (const address of ['100.100.100.201', '168.63.129.17', '192.0.0.191', 'fd20:ce::255', 'fd00:42::43', 'fd01::254'])
    assert.equal(guard(address), undefined, address)
})

test('IPv4 is found in every embedding', () => {
  const embedded = [
    ...['::ffff:169.254.169.254', '::FFFF:a9fe:a9fe', '0:0:0:0:0:ffff:a9fe:a9fe', '::169.254.169.254', '::a9fe:a9fe'],
    ...['::ffff:0:169.254.169.254', '::ffff:0:a9fe:a9fe', '0::ffff:0:a9fe:a9fe'],
    ...['64:ff9b::a9fe:a9fe', '64:FF9B::169.254.169.254', '0064:ff9b:0:0:0:0:a9fe:a9fe'],
    // Local-use NAT64 with its prefixes of 48, 56, 64 and 96 bits (RFC 6052).
    ...['64:ff9b:1:a9fe:a9:fe00::', '64:ff9b:1:a9:fe:a9fe::', '64:ff9b:1:0:a9:fea9:fe00::', '64:ff9b:1::a9fe:a9fe'],
    ...['64:ff9b:1::1:169.254.169.254', '64:ff9b:1:2:3:4:a9fe:a9fe'],
    ...['2002:a9fe:a9fe::', '2002:a9fe:a9fe::1', '2002:A9FE:A9FE:1:2:3:4:5', '2002:a9fe:a9fe::8.8.8.8'],
    // Teredo: the server, and the client with all bits inverted.
    ...['2001:0:a9fe:a9fe::', '2001:0:808:808:0:0:5601:5601', '2001:0:0808:0808:8000:f227:5601:5601'],
    ...[
      '2001:db8::5efe:169.254.169.254',
      '2001:db8::200:5efe:a9fe:a9fe',
      'fd12::0:5efe:a9fe:a9fe',
      '2001:db8::100:5efe:a9fe:a9fe',
    ],
  ]
  for (const address of embedded) assert.equal(guard(address), 'a cloud metadata address', address)
  const harmless = [
    ...['::ffff:10.1.2.3', '::ffff:0:10.1.2.3', '64:ff9b::10.1.2.3', '64:ff9b:1::10.1.2.3', '2002:a01:203::1'],
    ...[
      '2001:0:a01:203:0:0:f5fe:fdfc',
      '2001:db8::5efe:10.1.2.3',
      '2001:db8::5eff:169.254.169.254',
      '2003:a9fe:a9fe::1',
    ],
    ...['2001:1:a9fe:a9fe::', '65:ff9b::a9fe:a9fe', '64:ff9b:2::a9fe:a9fe'],
  ]
  for (const address of harmless) assert.equal(guard(address), undefined, address)
})

test('text that is not an address in plain notation is rejected', () => {
  const texts = [
    ...[
      '127.1',
      '0x7f000001',
      '0x7f.0.0.1',
      '2130706433',
      '0177.0.0.1',
      '127.0.0.01',
      '127.0.0.1.',
      '127.0.1',
      '1.2.3.4.5',
    ],
    ...[
      'fe80::1%eth0',
      '::1%0',
      '::ffff:127.0.0.1%lo',
      '10.0.0.1%eth0',
      '[::1]',
      '::ffff:0177.0.0.1',
      '::ffff:0x7f.0.0.1',
    ],
    ...[
      '::ffff:127.1',
      ':::1',
      '1::2::3',
      '10.0.0.1/32',
      '10.0.0.1:80',
      ' 10.0.0.1',
      '10.0.0.1 ',
      '10.0.0.1\n',
      '١٠.٠.٠.١',
    ],
    ...['１２７.0.0.1', 'example.org', 'localhost', ''],
  ]
  for (const address of texts) assert.equal(guard(address), 'not an IP address', JSON.stringify(address))
})

test('allowedCIDRs overrides entries of the same or lower precision; deniedCIDRs always wins', () => {
  const own = addressGuard({ allowed: ['127.0.0.0/8', '10.0.0.0/8'], denied: ['10.9.0.0/16'], apiServer: ['10.0.0.1'] })
  assert.equal(own('127.0.0.1'), undefined)
  assert.equal(own('::ffff:127.0.0.1'), undefined)
  assert.equal(own('2002:7f00:1::'), undefined)
  assert.equal(own('::1'), 'a loopback address')
  assert.equal(own('10.1.1.1'), undefined)
  assert.equal(own('10.9.1.1'), 'in deniedCIDRs')
  for (const embedded of ['::ffff:10.9.1.1', '64:ff9b:1::10.9.1.1', '2002:a09:101::', '2001::f5f6:fefe'])
    assert.equal(own(embedded), 'in deniedCIDRs', embedded)
  assert.equal(own('10.0.0.1'), 'the address of the host API server', 'a wide network does not open one address')

  const wide = addressGuard({ allowed: ['100.64.0.0/10', 'fd00::/8', '0.0.0.0/0', '::/0'], denied: [], apiServer: [] })
  for (const address of ['100.100.100.200', 'fd00:ec2::254', '127.0.0.1', '::1', 'ff02::1'])
    assert.notEqual(wide(address), undefined, `${address} must be named to be opened`)
  const named = ['100.100.100.200', 'fd00:ec2::254/128', '169.254.20.10/32']
  const exact = addressGuard({ allowed: named, denied: [], apiServer: [] })
  for (const address of ['100.100.100.200', 'fd00:ec2::254', '169.254.20.10', '::ffff:100.100.100.200'])
    assert.equal(exact(address), undefined, address)
  assert.equal(exact('fd00:ec2::23'), 'a cloud metadata address')
})

test('networks written as embedded IPv4 mean that IPv4 network', () => {
  const own = addressGuard({
    allowed: [],
    denied: ['::ffff:10.9.0.0/112', '2002::/16'],
    apiServer: ['::ffff:203.0.113.5'],
  })
  assert.equal(own('10.9.1.1'), 'in deniedCIDRs')
  assert.equal(own('10.8.1.1'), undefined)
  assert.equal(own('2002:a01:203::1'), 'in deniedCIDRs')
  assert.equal(own('203.0.113.5'), 'the address of the host API server')
})

const byte = fc.integer({ min: 0, max: 255 })
const hex = (...bytes: number[]) => bytes.map(one => one.toString(16).padStart(2, '0')).join('')
/** Sixteen bytes in one of the notations of IPv6. */
const notation = (bytes: readonly number[], how: number): string => {
  const groups = Array.from({ length: 8 }, (_, at) => hex(bytes[at * 2] as number, bytes[at * 2 + 1] as number))
  const short = groups.map(group => group.replace(/^0{1,3}/, ''))
  const compressed = short
    .join(':')
    .replace(/\b0(:0)+\b/, ':')
    .replace(/:{3,}/, '::')
  const dotted = `${short.slice(0, 6).join(':')}:${bytes.slice(12).join('.')}`
  return [groups.join(':'), groups.join(':').toUpperCase(), short.join(':'), compressed, dotted][how % 5] as string
}

test('a denied IPv4 address is denied in every embedding and notation (2000 addresses)', () => {
  const refused = fc.oneof(
    fc.tuple(fc.constant(127), byte, byte, byte),
    fc.tuple(fc.constant(169), fc.constant(254), byte, byte),
    fc.tuple(fc.integer({ min: 224, max: 239 }), byte, byte, byte),
    fc.constantFrom([168, 63, 129, 16], [100, 100, 100, 200], [192, 0, 0, 192], [203, 0, 113, 5]),
  )
  const zeros = (count: number): number[] => new Array(count).fill(0)
  fc.assert(
    fc.property(refused, fc.array(byte, { minLength: 16, maxLength: 16 }), fc.nat(4), (v4, noise, how) => {
      const [a, b, c, d] = v4 as [number, number, number, number]
      const plain = [a, b, c, d]
      const local = [0, 0x64, 0xff, 0x9b, 0, 1]
      const inverted = plain.map(one => one ^ 255)
      const embeddings = [
        [...zeros(10), 255, 255, ...plain],
        [...zeros(12), ...plain],
        [...zeros(8), 255, 255, 0, 0, ...plain],
        [0, 0x64, 0xff, 0x9b, ...zeros(8), ...plain],
        [...local, ...noise.slice(0, 6), ...plain],
        [...local, a, b, 0, c, d, ...noise.slice(0, 5)],
        [...local, noise[0] as number, a, 0, b, c, d, ...noise.slice(0, 4)],
        [...local, ...noise.slice(0, 2), 0, a, b, c, d, ...noise.slice(0, 3)],
        [0x20, 0x02, ...plain, ...noise.slice(0, 10)],
        [0x20, 0x01, 0, 0, ...plain, ...noise.slice(0, 8)],
        [0x20, 0x01, 0, 0, ...noise.slice(0, 8), ...inverted],
        [...noise.slice(0, 8), (noise[8] as number) & 3, 0, 0x5e, 0xfe, ...plain],
      ]
      for (const bytes of embeddings)
        assert.notEqual(guard(notation(bytes, how)), undefined, `${plain.join('.')} as ${notation(bytes, how)}`)
    }),
    { numRuns: 2000 },
  )
})
