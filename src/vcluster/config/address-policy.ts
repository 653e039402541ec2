// The address guard: which addresses an endpoint may point to. plan.ts asks it for every address; config-rules.ts checks
// the networks of the configuration.

import { type Bytes, embeddedIPv4, parseAddress } from './ip-address.ts'
import { specialAddresses } from './special-addresses.ts'

type Network = { readonly bytes: Bytes; readonly prefix: number }

/** What is wrong with a text that should be a network; undefined: nothing. */
export function networkProblem(text: string): string | undefined {
  return parseNetwork(text)
    ? undefined
    : `must be an address or a network such as 10.0.0.0/8, not "${text.slice(0, 64)}"`
}

function parseNetwork(text: string): Network | undefined {
  const [address = '', length, ...more] = text.split('/')
  const bytes = parseAddress(address)
  if (!bytes || more.length || (length !== undefined && !/^(0|[1-9]\d{0,2})$/.test(length))) return undefined
  const most = bytes.length * 8
  const prefix = length === undefined ? most : Number(length)
  if (prefix > most) return undefined
  return isMapped(bytes) && prefix >= 96 ? { bytes: bytes.slice(12), prefix: prefix - 96 } : { bytes, prefix }
}

/** ::ffff:a.b.c.d is only another notation of a.b.c.d. */
const isMapped = (bytes: Bytes) =>
  bytes.length === 16 && bytes.slice(0, 10).every(byte => byte === 0) && bytes[10] === 255 && bytes[11] === 255

function contains({ bytes, prefix }: Network, address: Bytes): boolean {
  if (bytes.length !== address.length) return false
  const whole = prefix >> 3
  for (let at = 0; at < whole; at++) if (bytes[at] !== address[at]) return false
  const mask = 0xff00 >> (prefix & 7)
  return whole === bytes.length || (((bytes[whole] as number) ^ (address[whole] as number)) & mask & 255) === 0
}

/** Invalid networks are left out: config-rules.ts reports them. */
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
 * Answers why an address is refused; undefined: it is not. deniedCIDRs wins over allowedCIDRs. An allowed network opens an
 * entry of the table only if it is at least as narrow: a pod network that happens to contain a metadata address does not.
 */
export function addressGuard({ allowed, denied, apiServer }: GuardOptions): (address: string) => string | undefined {
  const [allowedNetworks, deniedNetworks] = [networksOf(allowed), networksOf(denied)]
  const refused = [
    ...networksOf(apiServer).map(network => ({ ...network, what: 'the address of the host API server' })),
    ...table,
  ]
  return text => {
    const address = parseAddress(text)
    if (!address) return 'not an IP address'
    const all = [address, ...embeddedIPv4(address)]
    if (deniedNetworks.some(network => all.some(one => contains(network, one)))) return 'an address of deniedCIDRs'
    // An embedded address is opened by its IPv4 address, or by the one IPv6 address that holds it.
    const isOpened = (one: Bytes, { prefix }: Network) =>
      allowedNetworks.some(
        network =>
          (network.prefix >= prefix && contains(network, one)) ||
          (network.prefix === 128 && contains(network, address)),
      )
    for (const one of all) {
      const found = refused.find(network => contains(network, one) && !isOpened(one, network))
      if (found) return found.what
    }
    return undefined
  }
}
