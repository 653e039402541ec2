// Reloads the configuration of a gateway when its files change. An invalid configuration changes nothing and is reported.

import { isDeepStrictEqual } from 'node:util'
import { UsageError } from '../../host/command.ts'
import { missing, stampOf } from '../../host/follow-files.ts'
import type { Setup } from '../gateway.ts'
import type { LoadedSetup, SetupLoader } from './load.ts'
import type { Change, Renewal } from './reload-transaction.ts'
import type { GatewayConfig } from './schema.ts'

export type Following = {
  readonly info: (text: string) => void
  readonly error: (text: string) => void
  /** Rejects with UsageError with all problems of the files. */
  readonly check?: () => Promise<void>
  /** Prepares the other parts of the configuration. Rejects with UsageError, after it has released all of them. */
  readonly prepare?: (config: GatewayConfig) => Promise<Change>
  /** Called if the file is invalid. Prepares changed parts of the active configuration, such as renewed certificates, if they are usable. */
  readonly renew?: (config: GatewayConfig) => Promise<Renewal>
}

export type FollowedSetup = {
  /** The active configuration. */
  readonly config: GatewayConfig
  readonly current: () => Setup
  /** The access to the clusters of the active configuration. */
  readonly accesses: () => LoadedSetup['accesses']
  readonly reloads: Reloads
  /** Starts to apply changes. */
  follow(following: Following): void
  stop(): void
}

export type Reloads = {
  readonly used: number
  readonly failed: number
  /** Time in milliseconds since which a reload fails; undefined: the files are in use. */
  readonly failingSince: number | undefined
  /** Whether a file has changed since it was applied. */
  readonly isBehind: boolean
}

const pollEvery = 1000
/** A failed reload is retried: an issuer may have been unreachable, or an unwatched file such as a key may exist by now. */
const retryAfter = 10_000

/** Throws UsageError if the files are invalid. */
export function openSetup(loader: SetupLoader, now: () => number): FollowedSetup {
  let loaded = loader.load()
  loaded.use()
  /** Includes the files that an invalid configuration names, because one of them may be missing. */
  const named = () => [...new Set([...loader.files(), ...loaded.files])]
  let files = named()
  let seen = stampsOf(files)
  let settled = seen
  /** The stamps of the active configuration. */
  let used = seen
  let retryAt = Number.POSITIVE_INFINITY
  let lastError = ''
  /** The last error of `renew`. */
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

  /** A renewed certificate must be used even if another part is invalid, before the old one expires. */
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

  /** Logs problems that differ from the last reported ones. */
  const reportRenewErrors = (following: Following, problems: readonly string[]) => {
    const newErrors = problems.filter(one => !lastError.includes(one)).join('; ')
    if (newErrors && newErrors !== lastRenewError && !stopped)
      following.error(`cannot reload the certificate and CA files of the previous configuration: ${newErrors}`)
    lastRenewError = newErrors
  }

  /** An active configuration stays active even if the cleanup fails. */
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
    // Read before the files: a later write is another change.
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
    accesses: () => loaded.accesses,
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
