// The address of a client: the peer's address, or behind trusted proxies the one they report.

import { BlockList, isIP } from 'node:net'
import type { Request } from './exchange.ts'

export interface Addresses {
  /** The trusted hops, from the client to the peer. Never empty. */
  sourcesOf(request: Pick<Request, 'headers' | 'socket'>): readonly string[]
  /** The key that failures are counted under: the address, or the /64 of an IPv6 address. '' for loopback and for trusted proxies themselves. */
  counted(request: Pick<Request, 'headers' | 'socket'>): string
}

/** The problem of an entry in a list of networks; undefined: none. */
export function networkProblem(text: string): string | undefined {
  const [address = '', bits, more] = text.split('/')
  const family = isIP(address)
  const maxPrefix = family === 6 ? 128 : 32
  const isFine =
    family && more === undefined && (bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= maxPrefix))
  return isFine ? undefined : `${JSON.stringify(text)} is not an address or a network such as 10.0.0.0/8`
}

const unknown = 'unknown'

/** `trusted`: addresses and networks (CIDR) of proxies whose X-Forwarded-For is trusted. */
export function openAddresses(trusted: readonly string[]): Addresses {
  const proxies = blockList(trusted)
  const isTrusted = (address: string) => proxies.check(address, address.includes(':') ? 'ipv6' : 'ipv4')
  const sourcesOf: Addresses['sourcesOf'] = ({ headers, socket }) => {
    const hops = [plainAddress(socket.remoteAddress ?? '') ?? unknown]
    if (trusted.length === 0 || hops[0] === unknown || !isTrusted(hops[0] as string)) return hops
    // From right to left: each trusted proxy added the address on its left. The first untrusted hop may have invented all others.
    for (const text of forwarded(headers).reverse()) {
      const hop = plainAddress(text) ?? unknown
      hops.unshift(hop)
      if (hop === unknown || !isTrusted(hop)) break
    }
    return hops
  }
  return {
    sourcesOf,
    counted(request) {
      const [client = '', ...others] = sourcesOf(request)
      const isPeer = others.length === 0
      if (isPeer && (client === unknown || isLoopback(client))) return ''
      if (client === unknown) return unknown
      if (trusted.length > 0 && isTrusted(client)) return ''
      return client.includes(':') ? `${groupsOf(client).slice(0, 4).map(hex).join(':')}::/64` : client
    },
  }
}

function blockList(networks: readonly string[]): BlockList {
  const list = new BlockList()
  for (const text of networks) {
    const problem = networkProblem(text)
    if (problem) throw new Error(problem)
    const [address = '', bits] = text.split('/')
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    if (bits === undefined) list.addAddress(address, family)
    else list.addSubnet(address, Number(bits), family)
  }
  return list
}

function forwarded(headers: Request['headers']): string[] {
  const value = headers['x-forwarded-for']
  const text = Array.isArray(value) ? value.join(',') : (value ?? '')
  return text === '' ? [] : text.split(',').map(one => one.trim())
}

/** Without brackets, port and zone, and with IPv4-mapped IPv6 as IPv4. undefined: not an address. */
function plainAddress(text: string): string | undefined {
  const [, bracketed] = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(text) ?? []
  const [, ported] = /^(\d+\.\d+\.\d+\.\d+):\d{1,5}$/.exec(text) ?? []
  const address = (bracketed ?? ported ?? text).replace(/%.*$/, '').toLowerCase()
  const family = isIP(address)
  if (family !== 6) return family === 4 ? address : undefined
  const groups = groupsOf(address)
  const isMapped = groups.slice(0, 5).every(group => group === 0) && groups[5] === 0xffff
  if (!isMapped) return address
  return groups
    .slice(6)
    .flatMap(group => [group >> 8, group & 255])
    .join('.')
}

const hex = (group: number) => group.toString(16)
const isLoopback = (address: string) =>
  address.includes(':') ? groupsOf(address).join() === '0,0,0,0,0,0,0,1' : address.startsWith('127.')

/** The eight numbers of a valid IPv6 address. */
function groupsOf(address: string): number[] {
  const plain = address.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, a, b, c, d) =>
    [a, c].map((high, index) => hex(Number(high) * 256 + Number(index ? d : b))).join(':'),
  )
  const [front = '', back] = plain.split('::')
  const numbers = (part: string) => (part === '' ? [] : part.split(':').map(group => Number.parseInt(group, 16)))
  if (back === undefined) return numbers(front)
  const [head, tail] = [numbers(front), numbers(back)]
  return [...head, ...new Array<number>(8 - head.length - tail.length).fill(0), ...tail]
}
