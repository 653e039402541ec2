// The proxies of the environment, read as people write them. Whatever talks to a server goes by it.

import { UsageError } from './command.ts'

type Env = { readonly [name: string]: string | undefined }

/** HOST:PORT alone is meant for http://. Throws UsageError for what would be passed by on the way to this server without a word; a proxy's password is not repeated. */
export function proxyEnv(env: Env, server: string): Env {
  const counts = server.startsWith('https:') ? /^https_proxy$/i : /^http_proxy$/i
  const given = Object.entries(env).filter(([name, value]) => value && counts.test(name))
  const read = given.map(([name, value = '']) => [name, value.includes('://') ? value : `http://${value}`] as const)
  const wrong = read.filter(([, value]) => !isProxy(value))
  if (wrong.length)
    throw new UsageError(
      wrong.map(
        ([name]) => `${name} must be a URL such as http://proxy.example:3128, with USER:PASSWORD@ where it asks`,
      ),
    )
  return { ...env, ...Object.fromEntries(read) }
}

function isProxy(text: string): boolean {
  const { protocol = '', hostname = '', port = '' } = URL.canParse(text) ? new URL(text) : {}
  // A name alone is a mistake rather than a proxy at port 80.
  return /^https?:$/.test(protocol) && hostname !== '' && (port !== '' || /[.:]|^localhost$/.test(hostname))
}
