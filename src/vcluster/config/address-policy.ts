// Decides which addresses an endpoint may point to.

import { type Bytes, embeddedIPv4, parseAddress } from './ip-address.ts'
import { specialAddresses } from './special-addresses.ts'

type Network = { readonly bytes: Bytes; readonly prefix: number }

/** Returns undefined if the text is a valid network. */
export function networkProblem(text: string): string | undefined {
  return parseNetwork(text)
    ? undefined
    : `must be an address or a network such as 10.0.0.0/8, not "${text.slice(0, 64)}"`
}

function parseNetwork(text: string): Network | undefined {
  const [address = '', length, ...more] = text.split('/')
  const bytes = parseAddress(address)
  if (!bytes || more.length || (length !== undefined && !/^(0|[1-9]\d{0,2})$/.test(length))) return undefined
  const bits = bytes.length * 8
  const prefix = length === undefined ? bits : Number(length)
  if (prefix > bits) return undefined
  return isMapped(bytes) && prefix >= 96 ? { bytes: bytes.slice(12), prefix: prefix - 96 } : { bytes, prefix }
}

/** ::ffff:a.b.c.d is another notation of a.b.c.d. */
const isMapped = (bytes: Bytes) =>
  bytes.length === 16 && bytes.slice(0, 10).every(byte => byte === 0) && bytes[10] === 255 && bytes[11] === 255

function contains({ bytes, prefix }: Network, address: Bytes): boolean {
  if (bytes.length !== address.length) return false
  const whole = prefix >> 3
  for (let at = 0; at < whole; at++) if (bytes[at] !== address[at]) return false
  const mask = 0xff00 >> (prefix & 7)
  return whole === bytes.length || (((bytes[whole] as number) ^ (address[whole] as number)) & mask & 255) === 0
}

/** Ignores invalid networks, which rules.ts reports. */
const networksOf = (texts: readonly string[]): readonly Network[] => texts.flatMap(text => parseNetwork(text) ?? [])

const table: readonly (Network & { readonly what: string })[] = specialAddresses.flatMap(({ network, what }) =>
  networksOf([network]).map(parsed => ({ ...parsed, what })),
)

export type GuardOptions = {
  readonly allowed: readonly string[]
  readonly denied: readonly string[]
  /** Addresses of the host's API server. */
  readonly apiServer: readonly string[]
}

/**
 * Returns why an address is denied, or undefined if it is allowed. deniedCIDRs wins over allowedCIDRs. An allowed network must be at
 * least as narrow as the entry of the table, so a pod network that contains a metadata address does not allow it.
 */
export function addressGuard({ allowed, denied, apiServer }: GuardOptions): (address: string) => string | undefined {
  const [allowedNetworks, deniedNetworks] = [networksOf(allowed), networksOf(denied)]
  const special = [
    ...networksOf(apiServer).map(network => ({ ...network, what: 'the address of the host API server' })),
    ...table,
  ]
  return text => {
    const address = parseAddress(text)
    if (!address) return 'not an IP address'
    const all = [address, ...embeddedIPv4(address)]
    if (deniedNetworks.some(network => all.some(one => contains(network, one)))) return 'in deniedCIDRs'
    // An embedded address is allowed by its IPv4 address, or by the exact IPv6 address that contains it.
    const isAllowed = (one: Bytes, { prefix }: Network) =>
      allowedNetworks.some(
        network =>
          (network.prefix >= prefix && contains(network, one)) ||
          (network.prefix === 128 && contains(network, address)),
      )
    for (const one of all) {
      const found = special.find(network => contains(network, one) && !isAllowed(one, network))
      if (found) return found.what
    }
    return undefined
  }
}
