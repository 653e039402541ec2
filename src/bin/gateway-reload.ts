// Keeps a gateway's setup as its files say: a file that cannot be used changes nothing, and that is said. gateway.ts and serve.ts start it.

import { statSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import type { GatewayConfig } from '../gateway/config-schema.ts'
import type { Setup } from '../gateway/gateway.ts'
import type { LoadedSetup, SetupLoader } from './gateway-setup.ts'

export type FollowedSetup = {
  readonly config: GatewayConfig
  readonly current: () => Setup
  stop(): void
}

type Tell = { readonly info: (text: string) => void; readonly error: (text: string) => void }

const lookEvery = 1000
/** What is read at the start alone. */
const fixed = ['listen', 'tls', 'issuer', 'service', 'revocations', 'limits', 'status', 'audit', 'logLevel'] as const

/** Throws UsageError where the files cannot be used now. */
export function followSetup(loader: SetupLoader, tell: Tell): FollowedSetup {
  let loaded: LoadedSetup = loader.load()
  const { config } = loaded
  let seen = stampOf(loaded.files)
  const timer = setInterval(() => {
    const stamp = stampOf(loaded.files)
    if (stamp === seen) return
    seen = stamp
    const [file] = loaded.files
    try {
      loaded = loader.load()
      seen = stampOf(loaded.files)
      const restart = fixed.filter(key => !isDeepStrictEqual(loaded.config[key], config[key]))
      tell.info(
        `${file} has changed and is used from now on${restart.length ? `; ${restart.join(', ')} after a restart` : ''}`,
      )
    } catch (error) {
      tell.error(`${file} has changed and cannot be used; what was there before goes on: ${(error as Error).message}`)
    }
  }, lookEvery).unref()
  return { config, current: () => loaded.setup, stop: () => clearInterval(timer) }
}

function stampOf(files: readonly string[]): string {
  return files
    .map(file => {
      try {
        return (({ mtimeMs, size, ino }) => `${mtimeMs}/${size}/${ino}`)(statSync(file))
      } catch {
        return 'missing'
      }
    })
    .join()
}
