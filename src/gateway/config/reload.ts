// Reloads the configuration of a gateway when its files change. An invalid configuration changes nothing and is reported.

import { statSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import { UsageError } from '../../host/command.ts'
import type { Setup } from '../gateway.ts'
import type { SetupLoader } from './load.ts'
import type { Change, Renewal } from './reload-transaction.ts'
import type { GatewayConfig } from './schema.ts'

export type Following = {
  readonly info: (text: string) => void
  readonly error: (text: string) => void
  /** Rejects with UsageError: everything that is wrong with the files. */
  readonly check?: () => Promise<void>
  /** Makes ready whatever else the file is about. Rejects with UsageError, and has let go of all of it then. */
  readonly prepare?: (config: GatewayConfig) => Promise<Change>
  /** The file cannot be used. Makes ready what else has changed of what is used now, as far as that can be. */
  readonly renew?: (config: GatewayConfig) => Promise<Renewal>
}

export type FollowedSetup = {
  /** The active configuration. */
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
  /** Whether a file has changed since it was used. */
  readonly isBehind: boolean
}

const pollEvery = 1000
/** A failed reload is retried: an issuer may have been unreachable, or an unwatched file such as a key may exist by now. */
const retryAfter = 10_000

/** Throws UsageError where the files cannot be used now. */
export function openSetup(loader: SetupLoader, now: () => number): FollowedSetup {
  let loaded = loader.load()
  loaded.use()
  /** Those too that a file names which cannot be used: one of them may be what is missing. */
  const named = () => [...new Set([...loader.files(), ...loaded.files])]
  let files = named()
  let seen = stampsOf(files)
  let settled = seen
  /** Of what is used now. */
  let used = seen
  let retryAt = Number.POSITIVE_INFINITY
  let lastError = ''
  /** The same, of the files that were named before. */
  let lastRenewError = ''
  let timer: NodeJS.Timeout | undefined
  let isBusy = false
  let stopped = false
  const reloads = {
    used: 0,
    failed: 0,
    failingSince: undefined as number | undefined,
    get isBehind() {
      return changedSince(used).length > 0
    },
  }

  async function reload(following: Following): Promise<void> {
    const [file = ''] = files
    const changed = changedSince(used)
    const which = changed.length ? changed.join(', ') : file
    try {
      await following.check?.()
      const next = loader.load()
      const change = await following.prepare?.(next.config)
      if (stopped) return change?.drop()
      change?.use()
      loaded = next
      reloads.used++
      reloads.failingSince = undefined
      lastError = lastRenewError = ''
      used = seen = settledStamps(seen, loaded.files)
      following.info(`configuration reloaded (changed: ${which})`)
      cleanUp(following, () => next.use())
      cleanUp(following, () => change?.done())
    } catch (error) {
      if (stopped) return
      reloads.failed++
      reloads.failingSince ??= now()
      retryAt = performance.now() + retryAfter
      const why = error instanceof UsageError ? error.problems.join('; ') : (error as Error).message
      if (why !== lastError)
        following.error(`configuration reload failed (changed: ${which}), keeping the previous configuration: ${why}`)
      lastError = why
      await renew(following)
    }
  }

  /** A certificate that is renewed in time must not run out because something else is wrong. */
  async function renew(following: Following): Promise<void> {
    try {
      const { change, problems = [] } = (await following.renew?.(loaded.config)) ?? {}
      reportRenewErrors(following, problems)
      if (!change) return
      if (stopped) return change.drop()
      change.use()
      following.info('reloaded the certificate and CA files of the previous configuration')
      cleanUp(following, change.done)
    } catch (error) {
      reportRenewErrors(following, [(error as Error).message])
    }
  }

  /** The last reported problem is the same. */
  const reportRenewErrors = (following: Following, problems: readonly string[]) => {
    const newErrors = problems.filter(one => !lastError.includes(one)).join('; ')
    if (newErrors && newErrors !== lastRenewError && !stopped)
      following.error(`cannot reload the certificate and CA files of the previous configuration: ${newErrors}`)
    lastRenewError = newErrors
  }

  /** An activated configuration stays active, whatever follows. */
  const cleanUp = (following: Following, work: () => void) => {
    try {
      work()
    } catch (error) {
      following.error(`cannot release the previous configuration: ${(error as Error).message}`)
    }
  }

  const poll = async (following: Following) => {
    if (isBusy) return
    const stamps = stampsOf(files)
    if (isDeepStrictEqual(stamps, seen) && performance.now() < retryAt) return
    // A file that is still being written is read after it stops changing.
    if (!isDeepStrictEqual(stamps, settled)) {
      settled = stamps
      return
    }
    retryAt = Number.POSITIVE_INFINITY
    isBusy = true
    // Before any of them is read: what is written from now on is another change.
    files = named()
    seen = stampsOf(files)
    await reload(following)
    files = named()
    settled = stampsOf(files)
    isBusy = false
  }
  return {
    get config() {
      return loaded.config
    },
    current: () => loaded.setup,
    reloads,
    follow(following) {
      used = seen = settled = settledStamps(seen, files)
      timer = setInterval(() => void poll(following), pollEvery).unref()
    },
    stop() {
      stopped = true
      clearInterval(timer)
    },
  }
}

type Stamps = ReadonlyMap<string, string>
const missing = 'is missing'

const stampsOf = (files: readonly string[]): Stamps => new Map(files.map(file => [file, stampOf(file)]))

const changedSince = (stamps: Stamps): string[] =>
  [...stamps].filter(([file, stamp]) => stampOf(file) !== stamp).map(([file]) => file)

/** The state of the used files. An optional file that was created meanwhile, such as the gateway's own CA, is not a change. */
const settledStamps = (stamps: Stamps, files: readonly string[]): Stamps =>
  new Map(
    files
      .map(file => [file, stamps.get(file)])
      .map(([file = '', stamp = missing]) => [file, stamp === missing ? stampOf(file) : stamp]),
  )

/** By time, size and place, which also sees the swapped links of mounted secrets. */
function stampOf(file: string): string {
  try {
    const { mtimeMs, size, ino } = statSync(file)
    return `${mtimeMs}/${size}/${ino}`
  } catch {
    return missing
  }
}
