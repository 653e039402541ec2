// Runs the syncer between two open clusters: with or without a lease, until a signal stops it.

import { randomUUID } from 'node:crypto'
import { lookup } from 'node:dns/promises'
import { hostname } from 'node:os'
import { setTimeout } from 'node:timers/promises'
import pino from 'pino'
import { ApiError } from '../../api/errors.ts'
import { shutdownSignal } from '../../serving/shutdown-signal.ts'
import { servePages } from '../../serving/status-listener.ts'
import type { EndpointSync } from './endpoints-controller.ts'
import { toldOf } from './failure.ts'
import type { Opened, OptionsFor } from './flags.ts'
import { openLearner } from './host-discovery.ts'
import { holdLease } from './leader-election.ts'
import { observeSync } from './metrics.ts'
import { syncOnce } from './once.ts'
import { keepSyncing } from './reload.ts'

/** Resolves with the exit code. */
export async function runSync(opened: Opened): Promise<number> {
  const { asked, config, io } = opened
  const log = pino({ level: asked['log-level'], base: null }, pino.destination({ fd: 2, sync: false }))
  const ending = new AbortController()
  void shutdownSignal().then(() => ending.abort())
  if (!config.sync.toHost.endpoints.enabled) log.warn('endpoint sync is off: there is nothing to do')
  let current: EndpointSync | undefined
  const { metrics, observer, failed, trouble } = observeSync(() => current)
  const learn = openLearner({
    hostServer: opened.host.server,
    lookup: async name => {
      const found = await lookup(name, { all: true }).catch(error => {
        if (opened.host.isProxied) return []
        throw error
      })
      return found.map(({ address }) => address)
    },
    name: asked.name,
    namespace: asked.namespace,
  })
  const options: OptionsFor = (next, signal) => ({
    config: next,
    name: asked.name,
    namespace: asked.namespace,
    virtual: opened.virtual.until(signal),
    host: opened.host.until(signal),
    learn,
    importAllow: asked['import-allow'],
    tell: !asked['dry-run'],
    instance: hostname(),
    now: io.now,
    random: Math.random,
    ticks: () => performance.now(),
    wait: milliseconds => setTimeout(milliseconds, undefined, { signal }),
    observer: {
      ...observer,
      failed: (what, error) => {
        if (signal.aborted) return // it was broken off, and nobody tries again
        failed(error)
        // What the other side says is a sentence; where it was read in our own sources helps nobody.
        if (error instanceof ApiError) log.warn({ what }, `failed; trying again: ${toldOf(opened, error)}`)
        else log.warn({ err: error, what }, 'failed; trying again')
      },
      leftBehind: found => {
        observer.leftBehind(found)
        for (const one of found)
          log.warn(one, 'objects on the host are left behind: their namespace goes elsewhere now')
      },
      trouble: ({ namespace, name }, { reason, message, logged = message }) => {
        trouble(reason)
        log.warn({ namespace, name, reason }, logged)
      },
    },
  })
  if (asked.once || asked['dry-run']) return syncOnce(opened, options, ending.signal, log)

  let listed: EndpointSync | undefined
  // One that waits for its turn is ready for it.
  const isFollowed = () => (current ? current === listed : asked['leader-elect'])
  const checks = checksOf(isFollowed, ending.signal)
  const pages = asked.listen === 'off' ? undefined : await servePages(asked.listen, checks, metrics)
  io.out(`platform syncs endpoints of ${asked.name} to ${asked.namespace}${pages ? `: ${pages.url}` : ''}\n`)
  const lead = (signal: AbortSignal) =>
    keepSyncing({
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
  if (asked['leader-elect'])
    await holdLease(
      {
        resources: opened.host.resources,
        at: { namespace: asked.namespace, name: `vcluster-sync-${asked.name}`.slice(0, 253) },
        // Replicas may share the name of a machine, and each is the first process of its container.
        identity: `${hostname()}_${randomUUID()}`,
        now: io.now,
        ticks: () => performance.now(),
        wait: (milliseconds, signal) => setTimeout(milliseconds, undefined, { signal }).catch(() => {}),
        lead,
        failed: error => log.warn({ err: error }, 'the lease could not be had; trying again'),
      },
      ending.signal,
    )
  else await lead(ending.signal)
  log.info('stopped')
  await pages?.close(1000)
  log.flush()
  return 0
}

function checksOf(isFollowed: () => boolean, leaving: AbortSignal) {
  const ping = { name: 'ping', failure: () => undefined }
  return {
    livez: [ping],
    readyz: [
      ping,
      { name: 'sync', failure: () => (isFollowed() ? undefined : 'both sides are not listed yet') },
      { name: 'shutdown', failure: () => (leaving.aborted ? 'shutting down' : undefined) },
    ],
  }
}
