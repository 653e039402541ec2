// Runs the syncer and restarts it when its configuration file changes.

import { statSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import { readConfig } from '../config/read.ts'
import { isSyncEnabled } from '../config/schema.ts'
import type { Opened, OptionsFor } from './flags.ts'
import { openSync, type Syncer } from './sync.ts'

type ReloadOptions = {
  readonly opened: Opened
  readonly options: OptionsFor
  readonly signal: AbortSignal
  readonly log: Logger
  readonly running: (sync: Syncer | undefined) => void
}

/** Syncs until the signal aborts. Keeps the previous configuration while the file is invalid. */
export async function syncWithReload({ opened, options, signal, log, running }: ReloadOptions): Promise<void> {
  let { config } = opened
  while (!signal.aborted) {
    const sync = isSyncEnabled(config) ? await openSync(options(config, signal)).catch(aborted) : undefined
    running(sync)
    void sync?.ready.then(() => {
      if (!signal.aborted) log.info('initial sync: both clusters listed')
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

const pollEvery = 2000

/** Returns undefined after the signal aborts. */
async function nextConfig({ flags, io }: Opened, signal: AbortSignal, log: Logger): Promise<Config | undefined> {
  const stamp = () => {
    try {
      return (({ mtimeMs, size, ino }) => `${mtimeMs}/${size}/${ino}`)(statSync(flags.file))
    } catch {
      return ''
    }
  }
  let seen = stamp()
  while (!signal.aborted) {
    await setTimeout(pollEvery, undefined, { signal }).catch(() => {})
    const now = stamp()
    if (signal.aborted || now === seen || now === '') continue
    seen = now
    try {
      const config = await readConfig(flags, io)
      log.info({ file: flags.file }, 'config reloaded, syncing all objects again')
      return config
    } catch (error) {
      log.error({ file: flags.file, err: (error as Error).message }, 'config reload failed, keeping previous')
    }
  }
  return undefined
}
