// Runs the API server: opens the store, builds the server over it, listens, and closes everything in order at shutdown.

import { randomUUID } from 'node:crypto'
import { join, resolve } from 'node:path'
import { setTimeout } from 'node:timers/promises'
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
import type { Tracing } from '../serving/tracing/tracing.ts'
import { openUnknownKeyLimiter } from '../serving/unknown-key-limiter.ts'
import { openStorage } from '../storage/index.ts'
import { openAdminSocket } from './admin-socket.ts'
import { type BackgroundLoops, startBackgroundLoops } from './background-loops.ts'
import { createAdminKey, isAdminKeyUnread } from './bootstrap-admin.ts'
import { buildApiServer } from './build.ts'
import { openCentralGateway } from './central-gateway.ts'
import { openCertificate } from './certificate.ts'
import { checkPermission, keyRingIn, openDirectory, reachable, requireCompleteCa } from './data-directory.ts'
import { openEmergencyKeys } from './emergency-key.ts'
import { alarmOf, checkKeyRing, startReencryption } from './encryption.ts'
import { etcdOf } from './etcd-settings.ts'
import { printFirstRun } from './first-run.ts'
import { checksOf } from './health.ts'
import { listen } from './listeners.ts'
import { type Machines, openMachines } from './machines.ts'
import { followReplicas, joinReplicas, replicaIdIn } from './membership.ts'
import { gaugeApiServer } from './metrics.ts'
import { openPatchPreviews } from './patch-previews.ts'
import type { Peers } from './peers.ts'
import { cookieNameOf, openPages, openPeople, type People } from './people.ts'
import { shareWithReplicas } from './replicas.ts'
import { record } from './request-log.ts'
import type { Settings } from './settings.ts'
import { tracedStorage } from './traced-storage.ts'
import { keepNurserySmall } from './young-generation.ts'

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
  /** Absent: tracing is off. */
  readonly tracing?: Tracing | undefined
}

/** Resolves after the server has shut down. */
export async function runApiServer(run: RunOptions): Promise<void> {
  const { settings, env, version, log, print, waitForShutdown, tracing } = run
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
  const etcd = etcdOf(settings)
  const { promise: lost, resolve: lose } = Promise.withResolvers<string>()
  const engine = { engine: settings.storage, directory, now, reportFailure, lost: lose, etcd }
  const storage = tracedStorage(await openStorage(engine), tracing)
  const isFirstStart = storage.isEmpty
  const needed = () => countByKey(storage.store, kinds).keys()
  const readRing = (mayMake: boolean) => keyRingIn({ directory, setting: settings.masterKey, env, mayMake, needed })
  const ring = readRing(isFirstStart)
  checkKeyRing(storage.store, ring)
  if (storage.records) await shareWithReplicas(storage.records, { settings, directory, ring, now })
  const metrics = openMetrics()
  const guard = openUnknownKeyLimiter({
    now,
    limit: settings['limits.unknownKeys'],
    trustedProxies: settings.trustedProxy,
  })
  const feed = openAuditFeed(now)
  const audit = await openAuditLog({ settings, directory, metrics, sourcesOf: guard.sourcesOf, now, feed, failed })
  const { replicas } = storage
  const replicaId = replicas && replicaIdIn(directory)
  let peers: Peers | undefined
  const auditLog = openAuditReader({
    target: settings['audit.log'],
    file: auditFileOf(settings, directory),
    feed,
    settled: audit.settled,
    id: replicaId,
    others: () => peers?.sources() ?? [],
  })
  const previews = openPatchPreviews(settings['limits.previews'], now)
  const first = async (internalClient: Resources) => {
    if (isFirstStart) await createAdminKey(internalClient, directory, storage.records !== undefined)
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
        mayGetGroup: signIn?.mayGetGroup,
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
  const sealing = startReencryption({
    apiServer,
    storage,
    ring,
    read: () => readRing(false),
    metrics,
    log,
    failed,
  })
  let loops: BackgroundLoops | undefined
  const controllers = storage.lead(() => {
    loops = startBackgroundLoops({ apiServer, storage, settings, now, failed })
    sealing.begin()
    return loops
  })
  await loops?.ready
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
  gaugeApiServer(metrics, { ...storage, ...apiServer, limits, guard, now })
  const count = observeRequests(metrics)
  const certificates = settings.https === 'off' ? undefined : openCertificate({ settings, directory, now, failed })
  if (replicas && replicaId) {
    const [{ openPeers }, { sealer }] = [await import('./peers.ts'), apiServer]
    peers = openPeers({ replicas, id: replicaId, sealer, ca: certificates?.ca, scan: auditLog.scan, guard, now })
  }
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
    peers: peers?.endpoint,
    console: openConsole(join(import.meta.dirname, '../../dist/console')),
    resourcesFor: apiServer.registry.as,
    confirm: apiServer.registry.confirm,
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
    tracing,
    observe: observation => {
      count(observation)
      record(log, observation)
    },
  }
  const gateway = await openCentralGateway({
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
    outdated: () => storage.store.outdated,
    tracing,
  })
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
  if (replicas && replicaId) await joinReplicas({ replicas, id: replicaId, settings, listeners, version, now })
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
  if (replicas) followReplicas(replicas, directory, failed)
  print(`platform is ready: ${listeners.map(listener => listener.url).join(' ')}`)
  apiServer.registry.startIndex()

  const reason = await Promise.race([stopped.then(() => undefined), lost])
  log.info('shutting down, draining requests')
  shuttingDown.abort()
  await setTimeout(settings.shutdownDelay * 1000)
  ending.abort()
  gateway.endStreams()
  await Promise.all([closeAdminSocket(), ...listeners.map(listener => listener.close(drainWithin))])
  gateway.stop()
  signIn?.stop()
  peers?.close()
  await Promise.all([controllers.stop(), sealing.stop(), previews.close()])
  apiServer.stop()
  await audit.close()
  await storage.close()
  log.flush()
  if (reason !== undefined) throw new Error(reason)
}
