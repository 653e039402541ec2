// The proxies of the environment, read as people write them. Whatever talks to a server goes by it.

import { UsageError } from '../host/command.ts'
import { bypassesProxy } from '../transport/proxy.ts'

type Env = { readonly [name: string]: string | undefined }

/**
 * HOST:PORT alone is meant for http://. Throws UsageError where the way to this server would be passed by without a word; a proxy's
 * password is not repeated.
 */
export function proxyEnv(env: Env, server: string): Env {
  const given = Object.entries(env).filter(([name, value]) => value && /^https?_proxy$/i.test(name))
  const read = given.map(([name, value = '']) => [name, value.includes('://') ? value : `http://${value}`] as const)
  const wrong = read.filter(([name, value]) => isFor(env, server, name) && !isProxy(value))
  if (wrong.length)
    throw new UsageError(
      wrong.map(
        ([name]) => `${name} must be a URL such as http://proxy.example:3128, with USER:PASSWORD@ where it asks`,
      ),
    )
  return { ...env, ...Object.fromEntries(read) }
}

/** Behind what says that a server cannot be reached: the variable that sends one by a proxy, which may be none. */
export function proxyNote(env: Env, server: string): string {
  const [name] = Object.entries(env).find(([one, value]) => value && isFor(env, server, one)) ?? []
  return name === undefined ? '' : `; the way leads through the proxy of ${name}`
}

function isFor(env: Env, server: string, name: string): boolean {
  const { protocol, hostname } = new URL(server)
  return name.toLowerCase() === `${protocol.slice(0, -1)}_proxy` && !bypassesProxy(env, hostname)
}

function isProxy(text: string): boolean {
  const { protocol = '', hostname = '' } = URL.canParse(text) ? new URL(text) : {}
  // A name alone is a mistake rather than a proxy at port 80. Which port is usual is not looked at: a URL forgets it.
  return /^https?:$/.test(protocol) && hostname !== '' && /:\d+\/*$|[.:]|^localhost$/.test(`${hostname}${portIn(text)}`)
}

const portIn = (text: string) => /:\d+(?=\/*$)/.exec(text)?.[0] ?? ''
