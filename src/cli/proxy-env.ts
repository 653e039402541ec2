// Reads the proxy variables of the environment, with or without a scheme.

import { UsageError } from '../host/command.ts'
import { bypassesProxy } from '../transport/proxy.ts'

type Env = { readonly [name: string]: string | undefined }

/**
 * Reads HOST:PORT as http://HOST:PORT. Throws UsageError if a malformed variable applies to this server, because Node would silently
 * connect without the proxy. The message never contains the proxy's password.
 */
export function proxyEnv(env: Env, server: string): Env {
  const given = Object.entries(env).filter(([name, value]) => value && /^https?_proxy$/i.test(name))
  const read = given.map(([name, value = '']) => [name, value.includes('://') ? value : `http://${value}`] as const)
  const wrong = read.filter(([name, value]) => applies(env, server, name) && !isProxy(value))
  if (wrong.length)
    throw new UsageError(
      wrong.map(
        ([name]) =>
          `${name} must be a URL such as http://proxy.example:3128, with USER:PASSWORD@ if the proxy requires it`,
      ),
    )
  return { ...env, ...Object.fromEntries(read) }
}

/** Appended to connection errors: names the proxy variable in effect, or nothing. */
export function proxyNote(env: Env, server: string): string {
  const [name] = Object.entries(env).find(([one, value]) => value && applies(env, server, one)) ?? []
  return name === undefined ? '' : `; using the proxy from ${name}`
}

function applies(env: Env, server: string, name: string): boolean {
  const { protocol, hostname } = new URL(server)
  return name.toLowerCase() === `${protocol.slice(0, -1)}_proxy` && !bypassesProxy(env, hostname)
}

function isProxy(text: string): boolean {
  const { protocol = '', hostname = '' } = URL.canParse(text) ? new URL(text) : {}
  // A bare host name is more likely a mistake than a proxy on port 80. Reads the port from the text: URL drops default ports.
  return /^https?:$/.test(protocol) && hostname !== '' && /:\d+\/*$|[.:]|^localhost$/.test(`${hostname}${portIn(text)}`)
}

const portIn = (text: string) => /:\d+(?=\/*$)/.exec(text)?.[0] ?? ''
