// Runs the syncer between two clusters, with or without leader election, until a signal stops it.

import { randomUUID } from 'node:crypto'
import { lookup } from 'node:dns/promises'
import { hostname } from 'node:os'
import { setTimeout } from 'node:timers/promises'
import { ApiError } from '../../api/errors.ts'
import { holdLease } from '../../reconcile/leader-election.ts'
import { gaugeProcess } from '../../serving/process-metrics.ts'
import { shutdownSignal } from '../../serving/shutdown-signal.ts'
import { servePages } from '../../serving/status-listener.ts'
import { parseKind } from '../config/reference-kinds.ts'
import { isSyncEnabled } from '../config/schema.ts'
import { describeError } from './failure.ts'
import type { Opened, OptionsFor } from './flags.ts'
import { openHostDiscovery } from './host-discovery.ts'
import { observeSync } from './metrics.ts'
import { syncOnce } from './once.ts'
import { syncWithReload } from './reload.ts'
import type { Syncer } from './sync.ts'

/** Resolves with the exit code. */
export async function runSync(opened: Opened): Promise<number> {
  const { flags, config, io, log, tracing } = opened
  const ending = new AbortController()
  void shutdownSignal().then(() => ending.abort())
  if (!isSyncEnabled(config)) log.warn('endpoint sync is disabled, nothing to do')
  let current: Syncer | undefined
  const { metrics, observer, failed, syncFailure } = observeSync(() => current)
  const discoverHost = openHostDiscovery({
    hostServer: opened.host.server,
    lookup: async name => {
      const found = await lookup(name, { all: true }).catch(error => {
        if (opened.host.isProxied) return []
        throw error
      })
      return found.map(({ address }) => address)
    },
    name: flags.name,
    namespace: flags.namespace,
  })
  const options: OptionsFor = (next, signal) => ({
    config: next,
    name: flags.name,
    namespace: flags.namespace,
    virtual: opened.virtual.until(signal),
    host: opened.host.until(signal),
    discoverHost,
    importAllow: flags['import-allow'],
    syncReferences: flags['sync-references'].flatMap(text => parseKind(text) ?? []),
    discover: { virtual: opened.virtual.discoverUntil(signal), host: opened.host.discoverUntil(signal) },
    reportToTenant: !flags['dry-run'],
    instance: hostname(),
    now: io.now,
    random: Math.random,
    ticks: () => performance.now(),
    wait: milliseconds => setTimeout(milliseconds, undefined, { signal }),
    trace: tracing?.root,
    observer: {
      ...observer,
      failed: (what, error) => {
        if (signal.aborted) return // shutting down, no retry follows
        failed(error)
        // An API error needs no stack trace.
        if (error instanceof ApiError) log.warn({ what, err: describeError(opened, error) }, 'failed, retrying')
        else log.warn({ err: error, what }, 'failed, retrying')
      },
      orphaned: found => {
        observer.orphaned(found)
        for (const one of found) log.warn(one, 'orphaned objects on the host: their namespace mapping changed')
      },
      syncFailure: ({ namespace, name }, { reason, message, logged = message }) => {
        syncFailure(reason)
        log.warn({ namespace, name, reason }, logged)
      },
    },
  })
  if (flags.once || flags['dry-run']) return syncOnce(opened, options, ending.signal, log)

  let listed: Syncer | undefined
  // A replica that waits for the lease is ready.
  const isReady = () => (current ? current === listed : flags['leader-elect'])
  const checks = checksOf(isReady, ending.signal)
  gaugeProcess(metrics)
  const pages = flags.listen === 'off' ? undefined : await servePages(flags.listen, checks, metrics)
  io.out(
    `platform: syncing endpoints of ${flags.name} to ${flags.namespace}${pages ? `, status at ${pages.url}` : ''}\n`,
  )
  const lead = (signal: AbortSignal) =>
    syncWithReload({
      opened,
      options,
      signal,
      log,
      running: sync => {
        current = sync
        void sync?.ready.then(() => {
          listed = sync
        })
      },
    })
  if (flags['leader-elect'])
    await holdLease(
      {
        resources: opened.host.resources,
        at: { namespace: flags.namespace, name: `vcluster-sync-${flags.name}`.slice(0, 253) },
        // Replicas may share a host name, and each has process id 1 in its container.
        identity: `${hostname()}_${randomUUID()}`,
        now: io.now,
        ticks: () => performance.now(),
        wait: (milliseconds, signal) => setTimeout(milliseconds, undefined, { signal }).catch(() => {}),
        lead,
        failed: error => log.warn({ err: error }, 'lease request failed, retrying'),
      },
      ending.signal,
    )
  else await lead(ending.signal)
  log.info('stopped')
  await pages?.close(1000)
  log.flush()
  return 0
}

function checksOf(isReady: () => boolean, shutdown: AbortSignal) {
  const ping = { name: 'ping', failure: () => undefined }
  return {
    livez: [ping],
    readyz: [
      ping,
      { name: 'sync', failure: () => (isReady() ? undefined : 'initial list of both clusters not complete') },
      { name: 'shutdown', failure: () => (shutdown.aborted ? 'shutting down' : undefined) },
    ],
  }
}
