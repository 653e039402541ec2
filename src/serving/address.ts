// Addresses to listen on, such as 127.0.0.1:8443 or [::1]:0.

import { isIPv4 } from 'node:net'

/** Compares addresses, not prefixes: 127.example.org can belong to anybody. */
export function isLoopback(text: string): boolean {
  const { host } = addressOf(text)
  return host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'))
}

export function addressOf(text: string): { readonly host: string; readonly port: number } {
  const [, host = '', port = ''] = /^(.*):(\d+)$/.exec(text) ?? []
  return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) }
}
