// Syncs for as long as it may, with the configuration as it is in the file now. sync.ts calls it.

import { statSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import { readConfig } from '../config/read.ts'
import type { EndpointSync } from './endpoints-controller.ts'
import type { Opened, OptionsFor } from './flags.ts'
import { openSync } from './sync.ts'

type Keep = {
  readonly opened: Opened
  readonly options: OptionsFor
  readonly signal: AbortSignal
  readonly log: Logger
  readonly running: (sync: EndpointSync | undefined) => void
}

/** Syncs until it is told to stop; a file that changes, and can be used, is used from then on. */
export async function keepSyncing({ opened, options, signal, log, running }: Keep): Promise<void> {
  let { config } = opened
  while (!signal.aborted) {
    const sync = config.sync.toHost.endpoints.enabled
      ? await openSync(options(config, signal)).catch(aborted)
      : undefined
    running(sync)
    void sync?.ready.then(() => {
      if (!signal.aborted) log.info('both sides are followed')
    })
    config = (await nextConfig(opened, signal, log)) ?? config
    running(undefined)
    await sync?.stop()
  }
}

export const aborted = (error: unknown) => {
  if ((error as Error).name === 'AbortError') return undefined
  throw error
}

const lookEvery = 2000

/** undefined: told to stop. */
async function nextConfig({ asked, io }: Opened, signal: AbortSignal, log: Logger): Promise<Config | undefined> {
  const stamp = () => {
    try {
      return (({ mtimeMs, size, ino }) => `${mtimeMs}/${size}/${ino}`)(statSync(asked.file))
    } catch {
      return ''
    }
  }
  let seen = stamp()
  while (!signal.aborted) {
    await setTimeout(lookEvery, undefined, { signal }).catch(() => {})
    const now = stamp()
    if (signal.aborted || now === seen || now === '') continue
    seen = now
    try {
      const config = await readConfig(asked, io)
      log.info(`${asked.file} has changed: every object is looked at again`)
      return config
    } catch (error) {
      log.error(
        `${asked.file} has changed and cannot be used; what was there before goes on: ${(error as Error).message}`,
      )
    }
  }
  return undefined
}
