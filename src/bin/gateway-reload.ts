// Keeps a gateway as its files say: files that cannot be used change nothing, and that is said and shown. gateway.ts and gateway-inside.ts start it.

import { statSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import { UsageError } from '../cli/command.ts'
import type { GatewayConfig } from '../gateway/config-schema.ts'
import type { Setup } from '../gateway/gateway.ts'
import type { SetupLoader } from './gateway-setup.ts'

/** Something that stands ready beside what it takes the place of. */
export type Change = {
  readonly use: () => void
  /** Something else of the same file cannot be used: it is let go. */
  readonly drop: () => void
}

export type Following = {
  readonly info: (text: string) => void
  readonly error: (text: string) => void
  /** Rejects with UsageError: everything that is wrong with the files. */
  readonly check?: () => Promise<void>
  /** Makes ready whatever else the file is about. Rejects with UsageError, and has let go of all of it then. */
  readonly prepare?: (config: GatewayConfig) => Promise<Change>
}

export type FollowedSetup = {
  /** What is used now. */
  readonly config: GatewayConfig
  readonly current: () => Setup
  readonly reloads: Reloads
  /** From now on what changes is used. */
  follow(following: Following): void
  stop(): void
}

export type Reloads = {
  readonly used: number
  readonly failed: number
  /** Since when files that cannot be used wait, in milliseconds; undefined: those that are there are used. */
  readonly failingSince: number | undefined
}

const lookEvery = 1000
/** What failed is tried again by itself: an issuer may have been away, or a file be there by now that nobody looks at, such as a key's. */
const again = 10_000
/** What is read at the start alone. */
const fixed = ['audit'] as const

/** Throws UsageError where the files cannot be used now. */
export function openSetup(loader: SetupLoader, now: () => number): FollowedSetup {
  let loaded = loader.load()
  loaded.use()
  const first = loaded.config
  let files = loader.files()
  let seen = stampOf(files)
  let resting = seen
  let tryAgain = Number.POSITIVE_INFINITY
  let told = ''
  let timer: NodeJS.Timeout | undefined
  let isBusy = false
  let stopped = false
  const reloads = { used: 0, failed: 0, failingSince: undefined as number | undefined }

  async function reload(following: Following): Promise<void> {
    const [file] = files
    try {
      await following.check?.()
      const next = loader.load()
      const change = await following.prepare?.(next.config)
      if (stopped) return change?.drop()
      next.use()
      loaded = next
      change?.use()
      reloads.used++
      reloads.failingSince = undefined
      told = ''
      const restart = fixed.filter(key => !isDeepStrictEqual(next.config[key], first[key]))
      following.info(
        `${file} has changed and is used from now on${restart.length ? `; ${restart.join(', ')} after a restart` : ''}`,
      )
    } catch (error) {
      if (stopped) return
      reloads.failed++
      reloads.failingSince ??= now()
      tryAgain = performance.now() + again
      const why = error instanceof UsageError ? error.problems.join('; ') : (error as Error).message
      if (why !== told) following.error(`${file} has changed and cannot be used; what was there before goes on: ${why}`)
      told = why
    }
    // Those too that a file names which cannot be used: one of them may be what is missing.
    files = [...new Set([...loader.files(), ...loaded.files])]
    resting = stampOf(files)
  }

  const look = async (following: Following) => {
    if (isBusy) return
    const stamp = stampOf(files)
    if (stamp === seen && performance.now() < tryAgain) return
    // What is still being written is left alone until it rests.
    if (stamp !== resting) {
      resting = stamp
      return
    }
    seen = stamp
    tryAgain = Number.POSITIVE_INFINITY
    isBusy = true
    await reload(following)
    isBusy = false
  }
  return {
    get config() {
      return loaded.config
    },
    current: () => loaded.setup,
    reloads,
    follow(following) {
      // What was missing and did not matter was made meanwhile, such as a CA of its own: that is no change.
      if (seen.includes(missing)) seen = resting = stampOf(files)
      timer = setInterval(() => void look(following), lookEvery).unref()
    },
    stop() {
      stopped = true
      clearInterval(timer)
    },
  }
}

type Part = { prepare(config: GatewayConfig): Change | undefined | Promise<Change | undefined> }

/** All of them or none. Rejects with UsageError that says what is wrong with any of them. */
export async function together(parts: readonly Part[], config: GatewayConfig): Promise<Change> {
  const tried = await Promise.allSettled(parts.map(async part => part.prepare(config)))
  const ready = tried.flatMap(one => (one.status === 'fulfilled' && one.value ? [one.value] : []))
  const failures = tried.flatMap(one => (one.status === 'rejected' ? [one.reason as unknown] : []))
  const drop = () => {
    for (const one of ready) one.drop()
  }
  if (failures.length) {
    drop()
    throw new UsageError(failures.flatMap(one => (one instanceof UsageError ? one.problems : [(one as Error).message])))
  }
  return {
    drop,
    use() {
      for (const one of ready) one.use()
    },
  }
}

const missing = 'is missing'

/** By time, size and place, which also sees the swapped links of mounted secrets. */
function stampOf(files: readonly string[]): string {
  return files
    .map(file => {
      try {
        return `${file} ${(({ mtimeMs, size, ino }) => `${mtimeMs}/${size}/${ino}`)(statSync(file))}`
      } catch {
        return `${file} ${missing}`
      }
    })
    .join()
}
