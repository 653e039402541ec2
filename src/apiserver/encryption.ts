// Checks the key ring at startup, raises an alarm for undecryptable values, and reloads a changed ring (D28).

import { randomBytes } from 'node:crypto'
import type { Logger } from 'pino'
import type { TokenSealing } from '../admission/audit-continue.ts'
import { stampOf } from '../host/follow-files.ts'
import { kinds } from '../kinds/index.ts'
import { valueOfUnknownKey, wrongKeys } from '../registry/key-ring-check.ts'
import { openReencryption } from '../registry/reencrypt.ts'
import type { Metrics } from '../serving/metrics.ts'
import { openSealer, printId, SealError, type Sealer } from '../storage/encryption.ts'
import type { Storage } from '../storage/storage.ts'
import type { Store } from '../storage/store.ts'
import type { ApiServer, BuildOptions } from './api-server.ts'
import type { KeyRing } from './data-directory.ts'
import { renewRecords } from './replicas.ts'

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

/** The kinds of values that are sealed for clients or other replicas instead of the store. */
const outside = { cookie: 'Cookie', token: 'Token', peer: 'PeerMessage' } as const

export type Seals = {
  seal(purpose: string, text: string): string
  /** Undefined: not sealed by this installation for this purpose. */
  unseal(purpose: string, sealed: string): string | undefined
}

export function sealsFor(sealer: Sealer, use: keyof typeof outside): Seals {
  const contextOf = (purpose: string) => ({ kind: outside[use], namespace: '', name: purpose, uid: '', path: 'value' })
  return {
    seal: (purpose, text) => sealer.seal(contextOf(purpose), text),
    unseal(purpose, sealed) {
      try {
        return sealer.open(contextOf(purpose), sealed).toString('utf8')
      } catch (error) {
        if (!(error instanceof SealError)) throw error
        return undefined
      }
    },
  }
}

/** For the continue tokens of searches. */
export function tokenSealing(sealer: Sealer): TokenSealing {
  const { seal, unseal } = sealsFor(sealer, 'token')
  return { sealToken: seal, openToken: unseal }
}

/** Counts every failure, and logs the first of each object. */
export function alarmOf(metrics: Metrics, log: Logger): NonNullable<BuildOptions['sealBroken']> {
  const count = metrics.counter('platform_seal_failures_total', 'Values that could not be decrypted, by resource.')
  const reported = new Set<string>()
  return ({ kind, namespace, name, path }, { message }) => {
    if (Object.values<string>(outside).includes(kind)) return // anybody can send one
    count({ resource: kind })(1)
    const field = [kind, namespace, name, path].join(' ')
    if (reported.has(field) || reported.size >= 1000) return
    reported.add(field)
    log.error({ kind, namespace, name, path }, `ALARM: ${message}; restore it from a backup, or delete it`)
  }
}

export type ReencryptionOptions = {
  readonly apiServer: ApiServer
  readonly storage: Storage
  readonly ring: KeyRing
  /** Reads the ring again. */
  readonly read: () => KeyRing
  readonly metrics: Metrics
  readonly log: Logger
  readonly failed: (what: string, error: unknown) => void
}

const checkEvery = 500

/** Re-encrypts objects that the first key of the ring did not encrypt, also after each change of the key ring file. */
export function startReencryption({ apiServer, storage, ring, read, metrics, log, failed }: ReencryptionOptions): {
  /** Called when this replica becomes the leader: only the leader re-encrypts. */
  begin(): void
  stop(): Promise<void>
} {
  const { store, controllerStore, records, isLeader } = storage
  const reseal = openReencryption({
    store: controllerStore,
    sealer: apiServer.sealer,
    kinds,
    failed,
    isActive: isLeader,
    // Each value is an ordinary write on etcd, so the rate is limited there (D28).
    pauseMs: records ? 250 : 0,
  })
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
      if (records) void renewRecords(records, next).catch(error => failed('sealing the shared records', error))
      if (isLeader()) reseal.begin()
    } catch (error) {
      failed('reloading the key ring', error) // keep the previous ring
    }
  }
  const timer = ring.from.startsWith('env:') ? undefined : setInterval(check, checkEvery).unref()
  return {
    begin: reseal.begin,
    async stop() {
      clearInterval(timer)
      await reseal.stop()
    },
  }
}
