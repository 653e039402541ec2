// Which addresses an endpoint may point to: none that lead a neighbour into the host itself. endpoints.ts and the configuration ask.

import { BlockList, isIP, isIPv6 } from 'node:net'

/** What is wrong with a text that should be a network; undefined: nothing. */
export function networkProblem(text: string): string | undefined {
  return parse(text) ? undefined : `must be an address or a network such as 10.0.0.0/8, not "${text.slice(0, 64)}"`
}

function parse(text: string): { readonly address: string; readonly prefix: number } | undefined {
  const [address = '', length, ...more] = text.split('/')
  const most = isIPv6(address) ? 128 : 32
  if (more.length || isIP(address) === 0 || address.includes('%')) return undefined
  if (length !== undefined && !/^(0|[1-9]\d{0,2})$/.test(length)) return undefined
  const prefix = length === undefined ? most : Number(length)
  return prefix <= most ? { address, prefix } : undefined
}

const familyOf = (address: string) => (isIPv6(address) ? 'ipv6' : 'ipv4')

/** Texts that are no networks are left out: whoever cares has asked `networkProblem`. */
function openNetworks(networks: Iterable<string>): (address: string) => boolean {
  const list = new BlockList()
  for (const text of networks) {
    const network = parse(text)
    if (network) list.addSubnet(network.address, network.prefix, familyOf(network.address))
  }
  return address => list.check(address, familyOf(address))
}

/** Each leads to the machine, the link or the group of whoever connects, and not to where the tenant has something. */
const refused: readonly (readonly [what: string, networks: readonly string[]])[] = [
  ['an unspecified address', ['0.0.0.0/8', '::/128']],
  ['a loopback address', ['127.0.0.0/8', '::1/128']],
  ['a link-local address', ['169.254.0.0/16', 'fe80::/10']],
  ['a multicast or broadcast address', ['224.0.0.0/4', 'ff00::/8', '255.255.255.255/32']],
]

export type GuardOptions = {
  readonly allowed: readonly string[]
  readonly denied: readonly string[]
  /** Addresses of the host's API server. */
  readonly apiServer: readonly string[]
}

/** Answers why an address is refused; undefined: it is not. What is denied by setting is refused though it is allowed, too. */
export function addressGuard({ allowed, denied, apiServer }: GuardOptions): (address: string) => string | undefined {
  const [isAllowed, isDenied] = [openNetworks(allowed), openNetworks(denied)]
  const groups = [...refused, ['the address of the host API server', apiServer] as const].map(
    ([what, networks]) => [what, openNetworks(networks)] as const,
  )
  return address => {
    if (isIP(address) === 0 || address.includes('%')) return 'no IP address'
    // An IPv4 address in IPv6 clothes reaches the same place; Node's list sees through ::ffff: and not through these.
    const inner = embedded(address)
    for (const one of inner === undefined ? [address] : [address, inner]) {
      if (isDenied(one)) return 'an address of deniedCIDRs'
      const found = groups.find(([, has]) => has(one))
      if (found && !isAllowed(address) && !isAllowed(one)) return found[0]
    }
    return undefined
  }
}

/** The IPv4 address inside of an IPv4-compatible or NAT64 one. */
function embedded(address: string): string | undefined {
  if (!isIPv6(address)) return undefined
  const groups = expand(address)
  const isCompatible = groups.slice(0, 6).every(group => group === 0) && (groups[6] as number) > 0
  const isMapped = groups.slice(0, 5).every(group => group === 0) && groups[5] === 0xffff
  const isNat64 = groups[0] === 0x64 && groups[1] === 0xff9b && groups.slice(2, 6).every(group => group === 0)
  if (!isCompatible && !isMapped && !isNat64) return undefined
  const [high, low] = [groups[6] as number, groups[7] as number]
  return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`
}

function expand(address: string): number[] {
  const plain = address.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, a, b, c, d) => {
    const hex = (high: string, low: string) => ((Number(high) << 8) | Number(low)).toString(16)
    return `${hex(a, b)}:${hex(c, d)}`
  })
  const [head = '', tail] = plain.split('::')
  const numbers = (text: string) => (text ? text.split(':').map(group => Number.parseInt(group, 16)) : [])
  const [left, right] = [numbers(head), numbers(tail ?? '')]
  return tail === undefined ? left : [...left, ...new Array(8 - left.length - right.length).fill(0), ...right]
}
