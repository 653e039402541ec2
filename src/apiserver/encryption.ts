// Sealing while a server runs (D28): whether the key ring fits, an alarm where a value does not open, and a ring that is followed when it changes. serve calls it.

import { randomBytes } from 'node:crypto'
import { statSync } from 'node:fs'
import type { Logger } from 'pino'
import { kinds } from '../kinds/index.ts'
import { foreignSeal, wrongKeys } from '../registry/key-ring-check.ts'
import { startReseal } from '../registry/reencrypt.ts'
import type { Metrics } from '../serving/metrics.ts'
import { openSealer, printId } from '../storage/encryption.ts'
import type { Store } from '../storage/store.ts'
import type { ApiServer, BuildOptions } from './build.ts'
import type { KeyRing } from './data-directory.ts'

/**
 * A key ring that does not open what is stored is found out before anything of it is read. With a sealer that tells
 * nobody: what a wrong key does not open is whole, and an alarm would say to delete it.
 */
export function checkKeyRing(store: Store, ring: KeyRing): void {
  checkKeys(store, ring)
  // The right ids may still stand before the wrong keys.
  const [wrong] = wrongKeys(store, kinds, openSealer({ keys: ring.keys, random: size => randomBytes(size) }))
  if (wrong !== undefined)
    throw misfit(ring, `nothing that is sealed with the key ${printId(wrong)} opens with the key it has under that id`)
}

function checkKeys(store: Store, ring: KeyRing): void {
  const ids = ring.keys.map(({ id }) => id)
  const foreign = foreignSeal(store, kinds, ids)
  if (foreign !== undefined)
    throw misfit(ring, `${foreign}, which it does not have (it has ${ids.join(', ')}); put the line with that key back`)
}

const misfit = ({ from }: KeyRing, why: string) =>
  new Error(`the key ring of ${from} does not fit this data directory: ${why}`)

/** Counts every failure, and says the first of each object. */
export function alarmOf(metrics: Metrics, log: Logger): NonNullable<BuildOptions['sealBroken']> {
  const count = metrics.counter(
    'platform_seal_failures_total',
    'Sealed values that did not open when read, by resource.',
  )
  const told = new Set<string>()
  return ({ kind, namespace, name, path }, { message }) => {
    count({ resource: kind })(1)
    const place = [kind, namespace, name, path].join(' ')
    if (told.has(place) || told.size >= 1000) return
    told.add(place)
    log.error({ kind, namespace, name, path }, `ALARM: ${message}; restore it from a backup, or delete it`)
  }
}

export type SealingOptions = {
  readonly apiServer: ApiServer
  readonly store: Store
  readonly ring: KeyRing
  /** Reads the ring again. */
  readonly read: () => KeyRing
  readonly metrics: Metrics
  readonly log: Logger
  readonly failed: (what: string, error: unknown) => void
}

const lookEvery = 500

/** Re-encrypts objects that the first key of the ring did not encrypt, also after each change of the key ring file. */
export function startReencryption({ apiServer, store, ring, read, metrics, log, failed }: SealingOptions): {
  stop(): Promise<void>
} {
  const reseal = startReseal({ store, sealer: apiServer.sealer, kinds, failed })
  metrics.readCounter(
    'platform_resealed_objects_total',
    'Objects that were re-encrypted with the first key of the ring.',
    () => [[{}, reseal.done]],
  )
  metrics.gauge('platform_reseal_left', 'Objects that cannot be re-encrypted because they do not decrypt.', () => [
    [{}, reseal.broken],
  ])
  let seen = stampOf(ring.from)
  const look = () => {
    const now = stampOf(ring.from)
    if (now === seen) return
    seen = now
    try {
      const next = read()
      checkKeys(store, next)
      apiServer.sealer.use(next.keys)
      log.info({ key: next.keys[0]?.id, keys: next.keys.length }, 'key ring changed, re-encrypting')
      reseal.begin()
    } catch (error) {
      failed('using the changed key ring', error) // the one before stays in use
    }
  }
  const timer = ring.from.startsWith('env:') ? undefined : setInterval(look, lookEvery).unref()
  reseal.begin()
  return {
    async stop() {
      clearInterval(timer)
      await reseal.stop()
    },
  }
}

/** Empty where there is no such file: a ring that is being swapped is looked at again. */
function stampOf(file: string): string {
  const found = statSync(file, { throwIfNoEntry: false })
  return found ? `${found.mtimeMs}/${found.size}/${found.ino}` : ''
}
