// Checks the key ring at startup, raises an alarm for undecryptable values, and reloads a changed ring (D28).

import { randomBytes } from 'node:crypto'
import type { Logger } from 'pino'
import { stampOf } from '../host/follow-files.ts'
import { kinds } from '../kinds/index.ts'
import { valueOfUnknownKey, wrongKeys } from '../registry/key-ring-check.ts'
import { openReencryption } from '../registry/reencrypt.ts'
import type { Metrics } from '../serving/metrics.ts'
import { openSealer, printId } from '../storage/encryption.ts'
import type { Store } from '../storage/store.ts'
import type { ApiServer, BuildOptions } from './api-server.ts'
import type { KeyRing } from './data-directory.ts'

/**
 * Checks the key ring before anything is decrypted. The sealer has no alarm: with the wrong key the data is intact, and
 * the alarm would suggest to delete it.
 */
export function checkKeyRing(store: Store, ring: KeyRing): void {
  checkKeys(store, ring)
  // The ring may have the right ids with wrong keys.
  const [wrong] = wrongKeys(store, kinds, openSealer({ keys: ring.keys, random: size => randomBytes(size) }))
  if (wrong !== undefined)
    throw wrongKeyRing(
      ring,
      `its key ${printId(wrong)} does not decrypt any value that was encrypted with the key of that id`,
    )
}

function checkKeys(store: Store, ring: KeyRing): void {
  const ids = ring.keys.map(({ id }) => id)
  const foreign = valueOfUnknownKey(store, kinds, ids)
  if (foreign !== undefined)
    throw wrongKeyRing(
      ring,
      `${foreign}, which it does not have (it has ${ids.join(', ')}); restore the line with that key`,
    )
}

const wrongKeyRing = ({ from }: KeyRing, why: string) =>
  new Error(`the key ring of ${from} does not match this data directory: ${why}`)

/** The kind of values that are sealed for a browser instead of the store. */
export const cookieKind = 'Cookie'

/** Counts every failure, and logs the first of each object. */
export function alarmOf(metrics: Metrics, log: Logger): NonNullable<BuildOptions['sealBroken']> {
  const count = metrics.counter('platform_seal_failures_total', 'Values that could not be decrypted, by resource.')
  const reported = new Set<string>()
  return ({ kind, namespace, name, path }, { message }) => {
    if (kind === cookieKind) return // anybody can send a cookie
    count({ resource: kind })(1)
    const field = [kind, namespace, name, path].join(' ')
    if (reported.has(field) || reported.size >= 1000) return
    reported.add(field)
    log.error({ kind, namespace, name, path }, `ALARM: ${message}; restore it from a backup, or delete it`)
  }
}

export type ReencryptionOptions = {
  readonly apiServer: ApiServer
  readonly store: Store
  readonly ring: KeyRing
  /** Reads the ring again. */
  readonly read: () => KeyRing
  readonly metrics: Metrics
  readonly log: Logger
  readonly failed: (what: string, error: unknown) => void
}

const checkEvery = 500

/** Re-encrypts objects that the first key of the ring did not encrypt, also after each change of the key ring file. */
export function startReencryption({ apiServer, store, ring, read, metrics, log, failed }: ReencryptionOptions): {
  stop(): Promise<void>
} {
  const reseal = openReencryption({ store, sealer: apiServer.sealer, kinds, failed })
  metrics.readCounter(
    'platform_resealed_objects_total',
    'Objects that were re-encrypted with the first key of the ring.',
    () => [[{}, reseal.done]],
  )
  metrics.gauge('platform_reseal_left', 'Objects that cannot be re-encrypted because they do not decrypt.', () => [
    [{}, reseal.broken],
  ])
  let seen = stampOf(ring.from)
  const check = () => {
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
      failed('reloading the key ring', error) // keep the previous ring
    }
  }
  const timer = ring.from.startsWith('env:') ? undefined : setInterval(check, checkEvery).unref()
  reseal.begin()
  return {
    async stop() {
      clearInterval(timer)
      await reseal.stop()
    },
  }
}
