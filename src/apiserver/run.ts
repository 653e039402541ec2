// Runs the API server: opens the store, builds the server over it, listens, and closes everything in order at shutdown.

import { randomUUID } from 'node:crypto'
import { join, resolve } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import type { Logger } from 'pino'
import type { Resources } from '../api/resources.ts'
import type { Providers } from '../auth/oidc/provider.ts'
import { openConsole } from '../http/console.ts'
import { openRoutes } from '../http/non-resource-routes.ts'
import { observeRequests } from '../http/request-metrics.ts'
import type { ServerOptions } from '../http/server.ts'
import { kinds } from '../kinds/index.ts'
import { countByKey } from '../registry/reencrypt.ts'
import { openAuditFeed } from '../serving/audit-feed.ts'
import { withAudit } from '../serving/audit-internal.ts'
import { auditFileOf, openAuditLog } from '../serving/audit-log.ts'
import { openAuditReader } from '../serving/audit-search.ts'
import { openFairness } from '../serving/event-loop-fairness.ts'
import { openInflightLimits } from '../serving/inflight-limits.ts'
import { openMetrics } from '../serving/metrics.ts'
import { openUnknownKeyLimiter } from '../serving/unknown-key-limiter.ts'
import { isEmpty, openStorage, type Storage } from '../storage/index.ts'
import { openAdminSocket } from './admin-socket.ts'
import { startBackgroundLoops } from './background-loops.ts'
import { createAdminKey, isAdminKeyUnread } from './bootstrap-admin.ts'
import { buildApiServer } from './build.ts'
import { openCertificate } from './certificate.ts'
import { checkPermission, keyRingIn, openDirectory, reachable, requireCompleteCa } from './data-directory.ts'
import { openEmergencyKeys } from './emergency-key.ts'
import { alarmOf, checkKeyRing, startReencryption } from './encryption.ts'
import { printFirstRun } from './first-run.ts'
import { listen } from './listeners.ts'
import { type Machines, openMachines } from './machines.ts'
import { gaugeApiServer } from './metrics.ts'
import { openPatchPreviews } from './patch-previews.ts'
import { cookieNameOf, openPages, openPeople, type People } from './people.ts'
import { record } from './request-log.ts'
import type { Settings } from './settings.ts'

const drainWithin = 7000
const noProviders: Providers = { list: () => [], get: () => undefined, use: () => {}, stop: () => {} }

export type RunOptions = {
  readonly settings: Settings
  readonly env: { readonly [name: string]: string | undefined }
  readonly version: string
  readonly log: Logger
  /** Prints the addresses of the server. */
  readonly print: (line: string) => void
  /** Called once the server listens. It shuts down when the promise resolves. */
  readonly waitForShutdown: () => Promise<void>
}

/** Resolves after the server has shut down. */
export async function runApiServer(run: RunOptions): Promise<void> {
  const { settings, env, version, log, print, waitForShutdown } = run
  const directory = resolve(settings.data)
  const failed = (what: string, error: unknown) => log.warn({ err: error }, `${what} failed, retrying`)
  const now = Date.now
  openDirectory(directory)
  checkPermission(directory)
  // An aborted first start may leave a CA that is not in use yet.
  if (settings.https !== 'off' && !settings.tlsCert && !isAdminKeyUnread(directory)) requireCompleteCa(directory)
  const grow = keepNurserySmall()
  const reportFailure = (failure: string | undefined) =>
    failure === undefined
      ? log.warn('storage recovered, accepting writes')
      : log.error(`storage failed: ${failure}; reads continue, writes get 503 until it recovers`)
  const storage = await openStorage({ engine: settings.storage as 'sqlite', directory, now, reportFailure })
  const isFirstStart = isEmpty(storage)
  const needed = () => countByKey(storage.store, kinds).keys()
  const readRing = (mayMake: boolean) => keyRingIn({ directory, setting: settings.masterKey, env, mayMake, needed })
  const ring = readRing(isFirstStart)
  checkKeyRing(storage.store, ring)
  const metrics = openMetrics()
  const guard = openUnknownKeyLimiter({
    now,
    limit: settings['limits.unknownKeys'],
    trustedProxies: settings.trustedProxy,
  })
  const feed = openAuditFeed(now)
  const audit = await openAuditLog({ settings, directory, metrics, sourcesOf: guard.sourcesOf, now, feed, failed })
  const auditLog = openAuditReader({
    target: settings['audit.log'],
    file: auditFileOf(settings, directory),
    feed,
    settled: audit.settled,
  })
  const previews = openPatchPreviews(settings['limits.previews'], now)
  const first = async (internalClient: Resources) => {
    if (isFirstStart) await createAdminKey(internalClient, directory)
  }
  // Loaded only if configured, because it has many modules.
  const signIn = settings['auth.config']
    ? (await import('./sign-in.ts')).openSignIn({ file: settings['auth.config'], metrics, log, env, now })
    : undefined
  const providers = signIn?.providers ?? noProviders
  let people: People | undefined
  let machines: Machines | undefined
  /** The HTTPS URL, once the server listens. */
  let listening = ''
  const apiServer = buildApiServer({
    storage,
    keys: ring.keys,
    now,
    failed,
    first,
    auditLog,
    previewPatches: previews.run,
    guard,
    sealBroken: alarmOf(metrics, log),
    recorded: internalClient => withAudit(audit, internalClient),
    record: write => audit.own(write),
    maxKeyTTL: settings['auth.maxKeyTTL'],
    maxTokenTTL: settings['token.maxTTL'],
    requireUsers: settings['auth.requireUsers'],
    adminGroups: settings['auth.adminGroups'],
    issuerOf: provider => providers.get(provider)?.config.url,
    baseUrl: () => settings.baseUrl || listening,
    signIn: parts => {
      people = openPeople({ providers, metrics, log, now }, parts)
      machines = openMachines({ signIn, states: people.states, log, now, maxKeyTTL: settings['auth.maxKeyTTL'] }, parts)
      const { tokens: machineTokens } = machines
      return {
        machineTokens,
        sessions: people.checks,
        ready: people.states.ready,
        stop: () => {
          machines?.stop()
          people?.states.stop()
        },
      }
    },
  })
  await apiServer.ready
  await machines?.follow(apiServer.write)
  const controllers = startBackgroundLoops({ apiServer, storage, settings, now, failed })
  await controllers.ready
  const sealing = startReencryption({
    apiServer,
    store: storage.store,
    ring,
    read: () => readRing(false),
    metrics,
    log,
    failed,
  })
  grow()

  const shuttingDown = new AbortController() // not ready, but still serving
  const ending = new AbortController()
  const limits = openInflightLimits({
    max: { read: settings['limits.reads'], write: settings['limits.writes'], watch: settings['limits.watches'] },
    share: settings['limits.share'] / 100,
    rate: settings['limits.rate'],
    burst: settings['limits.burst'],
    now,
  })
  gaugeApiServer(metrics, { store: storage.store, limits, guard, renewals: apiServer.renewals, now })
  const count = observeRequests(metrics)
  const certificates = settings.https === 'off' ? undefined : openCertificate({ settings, directory, now, failed })
  const cookieName = cookieNameOf(apiServer)
  const checks = checksOf(storage, shuttingDown.signal)
  const options: Omit<ServerOptions, 'loopbackOnly'> = {
    kinds,
    access: { ...apiServer, guard, audit, cookie: { name: cookieName, publicUrl: settings.baseUrl } },
    signIn:
      people &&
      openPages(
        {
          people,
          exchangeToken: machines?.exchange,
          apiServer,
          sealer: apiServer.sealer,
          providers,
          guard,
          settings,
          metrics,
          certificate: () => certificates?.current.certificate,
          log,
          now,
        },
        cookieName,
      ),
    console: openConsole(join(import.meta.dirname, '../../dist/console')),
    resourcesFor: apiServer.registry.as,
    reachVersion: apiServer.registry.reachVersion,
    indexed: apiServer.registry.indexed,
    noteRead: apiServer.noteRead,
    lastActivity: apiServer.lastActivity,
    ...openRoutes({ kinds, checks, metrics, now, version, issuer: apiServer.issuer }),
    limits,
    fairness: openFairness(() => performance.now()),
    refuseUnaudited: settings['audit.refuseWrites'],
    now,
    uuid: randomUUID,
    ending: ending.signal,
    observe: observation => {
      count(observation)
      record(log, observation)
    },
  }
  // Loaded only if configured, because it has many modules.
  const embedded = settings['gateway.config'] && (await import('./embedded-gateway.ts'))
  const gateway = embedded
    ? await embedded.openEmbeddedGateway({
        file: settings['gateway.config'],
        apiServer,
        issuer: () => settings.baseUrl || listening,
        limits,
        guard,
        audit,
        metrics,
        log,
        env,
        now,
        used: uid => void apiServer.touchKeys([{ uid, time: now() }]),
      })
    : undefined
  const listeners = await listen({ settings, options, certificates, gateway })
  listening = reachable(listeners[0]?.url ?? '')
  const issue = openEmergencyKeys({
    apiServer,
    audit,
    refuseUnaudited: settings['audit.refuseWrites'],
    maxKeyTTL: settings['auth.maxKeyTTL'],
    metrics,
    log,
    now,
  })
  const closeAdminSocket = await openAdminSocket({ directory, issue, log })
  const stopped = waitForShutdown() // before the ready line, because a supervisor may send a signal right after it
  printFirstRun({
    directory,
    listeners,
    certificates,
    tlsCert: settings.tlsCert,
    ring,
    authenticate: apiServer.authenticate,
    print,
  })
  print(`platform is ready: ${listeners.map(listener => listener.url).join(' ')}`)
  apiServer.registry.startIndex()

  await stopped
  log.info('shutting down, draining requests')
  shuttingDown.abort()
  await setTimeout(settings.shutdownDelay * 1000)
  ending.abort()
  gateway?.endStreams()
  await Promise.all([closeAdminSocket(), ...listeners.map(listener => listener.close(drainWithin))])
  gateway?.stop()
  signIn?.stop()
  await Promise.all([controllers.stop(), sealing.stop(), previews.close()])
  apiServer.stop()
  await audit.close()
  await storage.close()
  log.flush()
}

/**
 * Objects that are loaded at startup stay in memory, so V8 would grow the young generation and keep it: over 100 MB
 * without use. The returned function ends the limit.
 */
function keepNurserySmall(): () => void {
  setFlagsFromString('--semi-space-growth-factor=1')
  return () => setFlagsFromString('--semi-space-growth-factor=2')
}

function checksOf({ store }: Storage, shuttingDown: AbortSignal) {
  const ping = { name: 'ping', failure: () => undefined }
  const storage = { name: 'storage', failure: () => store.failure }
  const shutdown = { name: 'shutdown', failure: () => (shuttingDown.aborted ? 'shutting down' : undefined) }
  return { livez: [ping], readyz: [ping, storage, shutdown] }
}
