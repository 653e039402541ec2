// `platform serve`: opens the store, wires the rooms, listens, and closes everything again in order.

import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { resolve } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import pino from 'pino'
import type { Resources } from '../api/resources.ts'
import { openPages } from '../http/pages.ts'
import { observeRequests } from '../http/request-metrics.ts'
import type { ServerOptions } from '../http/server.ts'
import { kinds } from '../kinds/index.ts'
import { foreignSeal, wrongKeys } from '../registry/foreign-seal.ts'
import type { Registry } from '../registry/registry.ts'
import { recordedBy } from '../serving/audit-own.ts'
import { fingerprint } from '../serving/certificate.ts'
import { openFairLimits } from '../serving/fair-limits.ts'
import { openGuard } from '../serving/guard.ts'
import type { Listener } from '../serving/listener.ts'
import { type Metrics, openMetrics } from '../serving/metrics.ts'
import { type CertificateSource, fileCertificate, ownCertificate } from '../serving/tls.ts'
import { isEmpty, openStorage, type Storage } from '../storage/index.ts'
import { printId } from '../storage/sealed.ts'
import type { Store } from '../storage/store.ts'
import { makeFirstKey, untoldKey } from './admin-key.ts'
import { openAuditLog } from './audit-log.ts'
import { startControllers } from './controllers.ts'
import {
  authorityIn,
  followAddress,
  type KeyRing,
  keyRingIn,
  kubeconfig,
  openDirectory,
  reachable,
  writeSecret,
} from './data-directory.ts'
import { openInside } from './gateway-inside.ts'
import { type HouseOptions, openHouse } from './house.ts'
import { gaugeHouse } from './house-metrics.ts'
import { record } from './request-log.ts'
import { listen } from './serve-listen.ts'
import { readSettings, type Settings } from './settings.ts'
import { toldToStop } from './told-to-stop.ts'
import { version } from './version.ts'

const drainWithin = 7000

export async function serve(args: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  const settings = readSettings(args, env)
  const directory = resolve(settings.data)
  const log = pino({ level: settings.logLevel, base: null }, pino.destination({ fd: 2, sync: false }))
  const failed = (what: string, error: unknown) => log.warn({ err: error }, `${what} failed; trying again`)
  const now = Date.now
  openDirectory(directory)
  const grow = keepNurserySmall()
  const storage = await openStorage({ engine: settings.storage as 'sqlite', directory, now })
  const isFirstStart = isEmpty(storage)
  const ring = keyRingIn({ directory, setting: settings.masterKey, env, mayMake: isFirstStart })
  const metrics = openMetrics()
  const guard = openGuard({ now, limit: settings['limits.unknownKeys'], trustedProxies: settings.trustedProxy })
  const audit = await openAuditLog({ settings, directory, metrics, sourcesOf: guard.sourcesOf, now, failed })
  let key: string | undefined
  const first = async (inside: Resources) => {
    if (isFirstStart) key = await makeFirstKey(inside, directory)
  }
  /** Where HTTPS is served, once it is. */
  let listening = ''
  const house = openHouse({
    storage,
    keys: ring.keys,
    now,
    failed,
    first,
    guard,
    sealBroken: alarmOf(metrics, log),
    recorded: inside => recordedBy(audit, inside),
    maxKeyTTL: settings['auth.maxKeyTTL'],
    maxTokenTTL: settings['token.maxTTL'],
    baseUrl: () => settings.baseUrl || listening,
  })
  await house.ready
  checkKeyRing(house.registry, storage.store, ring)
  const controllers = startControllers({ house, storage, settings, now, failed })
  await controllers.ready
  grow()

  const leaving = new AbortController() // not ready any more, still serving
  const ending = new AbortController()
  const limits = openFairLimits({
    most: { read: settings['limits.reads'], write: settings['limits.writes'], watch: settings['limits.watches'] },
    share: settings['limits.share'] / 100,
    rate: settings['limits.rate'],
    burst: settings['limits.burst'],
    now,
  })
  gaugeHouse(metrics, storage.store, limits, guard)
  const count = observeRequests(metrics)
  const checks = checksOf(storage, leaving.signal)
  const options: Omit<ServerOptions, 'loopbackOnly'> = {
    kinds,
    access: { ...house, guard, audit },
    resourcesFor: house.registry.as,
    noteRead: house.noteRead,
    ...openPages({ kinds, checks, metrics, now, version, issuer: house.issuer }),
    limits,
    refuseUnaudited: settings['audit.refuseWrites'],
    now,
    uuid: randomUUID,
    ending: ending.signal,
    observe: observation => {
      count(observation)
      record(log, observation)
    },
  }
  const gateway = settings['gateway.config']
    ? await openInside({
        file: settings['gateway.config'],
        house,
        issuer: () => settings.baseUrl || listening,
        limits,
        guard,
        audit,
        metrics,
        log,
        env,
        now,
        used: uid => storage.activity.touch(uid, now()),
      })
    : undefined
  const certificates = settings.https === 'off' ? undefined : certificatesOf(settings, directory, now, failed)
  const listeners = await listen({ settings, options, certificates, gateway })
  listening = reachable(listeners[0]?.url ?? '')
  const told = toldToStop() // from before it is said to be ready: whoever reads that may end it at once
  if (certificates) key ??= untoldKey(directory, house.authenticate)
  if (key !== undefined) introduce(directory, key, listeners, certificates, ring)
  else followAddress(directory, listeners)
  console.log(`platform is ready: ${listeners.map(listener => listener.url).join(' ')}`)

  await told
  log.info('shutting down: finishing what is under way')
  leaving.abort()
  await setTimeout(settings.shutdownDelay * 1000)
  ending.abort()
  gateway?.endStreams()
  await Promise.all(listeners.map(listener => listener.close(drainWithin)))
  gateway?.stop()
  await controllers.stop()
  house.stop()
  await audit.close()
  await storage.close()
  log.flush()
}

/**
 * Whatever is read in at the start stays, and seeing that, the engine would make much room for new objects and keep it:
 * over 100 MB that nobody needs. The answer ends the restraint.
 */
function keepNurserySmall(): () => void {
  setFlagsFromString('--semi-space-growth-factor=1')
  return () => setFlagsFromString('--semi-space-growth-factor=2')
}

function certificatesOf(
  settings: Settings,
  directory: string,
  now: () => number,
  failed: (what: string, error: unknown) => void,
): CertificateSource & { readonly ca: string } {
  if (settings.tlsCert) {
    const source = fileCertificate({
      certificate: settings.tlsCert,
      key: settings.tlsKey,
      failed: error => failed('reading the new certificate', error),
    })
    return withCa(source, source.current.certificate)
  }
  const authority = authorityIn(directory, now())
  const names = new Set(['localhost', '127.0.0.1', '::1', hostname(), ...settings.tlsSan])
  return withCa(ownCertificate(authority, [...names], now), authority.certificate)
}

const withCa = (source: CertificateSource, ca: string) => ({
  get current() {
    return source.current
  },
  follow: source.follow,
  stop: source.stop,
  ca,
})

/** What a person needs after the first start, in three lines. */
function introduce(
  directory: string,
  key: string,
  listeners: readonly Listener[],
  certificates: (CertificateSource & { readonly ca: string }) | undefined,
  ring: { readonly made: boolean; readonly from: string },
): void {
  const secure = listeners.find(listener => listener.url.startsWith('https:'))
  if (secure && certificates)
    writeSecret(
      `${directory}/admin.kubeconfig`,
      kubeconfig({ server: reachable(secure.url), ca: certificates.ca, key }),
    )
  const lines = [
    'First start: an administrator was made.',
    ...(secure && certificates
      ? [
          `  CA fingerprint   ${fingerprint(certificates.ca)}`,
          `  kubectl          kubectl --kubeconfig ${directory}/admin.kubeconfig get teams`,
        ]
      : []),
    `  access key       ${directory}/admin.key`,
    ...(ring.made ? [`  secrets sealed   with ${ring.from}; whoever copies this directory copies the secrets`] : []),
  ]
  console.log(lines.join('\n'))
}

/** A key ring that does not open what is stored is found out before anything is served. */
function checkKeyRing({ open }: Registry, store: Store, { keys, from }: KeyRing): void {
  const refuse = (why: string) => {
    throw new Error(`the key ring of ${from} does not fit this data directory: ${why}`)
  }
  const ids = keys.map(({ id }) => id)
  const foreign = foreignSeal(store, kinds, ids)
  if (foreign !== undefined)
    refuse(`${foreign}, which it does not have (it has ${ids.join(', ')}); put the line with that key back`)
  // The right ids may still stand before the wrong keys.
  const [wrong] = wrongKeys(store, kinds, open)
  if (wrong !== undefined)
    refuse(`nothing that is sealed with the key ${printId(wrong)} opens with the key it has under that id`)
}

/** Counts every failure, and says the first of each object. */
function alarmOf(metrics: Metrics, log: pino.Logger): NonNullable<HouseOptions['sealBroken']> {
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

function checksOf({ store }: Storage, leaving: AbortSignal) {
  const ping = { name: 'ping', failure: () => undefined }
  const storage = { name: 'storage', failure: () => store.failure }
  const shutdown = { name: 'shutdown', failure: () => (leaving.aborted ? 'shutting down' : undefined) }
  return { livez: [ping], readyz: [ping, storage, shutdown] }
}
