// `platform vcluster sync`: reads the configuration, opens both clusters, leads or waits, and syncs until it is told to stop.

import { randomUUID } from 'node:crypto'
import { lookup } from 'node:dns/promises'
import { hostname } from 'node:os'
import { setTimeout } from 'node:timers/promises'
import pino from 'pino'
import { ApiError } from '../api/errors.ts'
import { defineCommand, UsageError } from '../host/command.ts'
import { toldToStop } from '../serving/shutdown-signal.ts'
import { reachCluster } from '../transport/open-cluster.ts'
import { readConfig } from '../vcluster/config/read.ts'
import type { EndpointSync } from '../vcluster/sync/endpoints-controller.ts'
import { toldOf } from '../vcluster/sync/failure.ts'
import { flags, type Opened, type OptionsFor, timeoutProblem } from '../vcluster/sync/flags.ts'
import { openLearner } from '../vcluster/sync/host-discovery.ts'
import { holdLease } from '../vcluster/sync/leader-election.ts'
import { observeSync, servePages } from '../vcluster/sync/metrics.ts'
import { syncOnce } from '../vcluster/sync/once.ts'
import { keepSyncing } from '../vcluster/sync/reload.ts'
import { boundYoungGeneration } from '../vcluster/sync/young-generation.ts'

export const vclusterSync = defineCommand({
  words: ['vcluster', 'sync'],
  what: 'Keep the endpoint objects of a virtual cluster right on its host.',
  examples: [
    {
      what: 'Beside a virtual cluster, with kubeconfigs for both sides',
      command:
        'platform vcluster sync -f vcluster.yaml --name my-vcluster -n team --virtual-kubeconfig v.yaml --host-kubeconfig h.yaml',
    },
    {
      what: 'See what it would write',
      command:
        'platform vcluster sync -f vcluster.yaml --name my-vcluster -n team --virtual-kubeconfig v.yaml --host-kubeconfig h.yaml --dry-run',
    },
    {
      what: 'In a pod of the host, in several replicas',
      command:
        'platform vcluster sync -f vcluster.yaml --name my-vcluster -n team --virtual-kubeconfig v.yaml --leader-elect --listen 0.0.0.0:8081',
    },
  ],
  flags,
  run: async ({ flags: asked }, io) => {
    const problems = [
      timeoutProblem(asked.timeout),
      asked.listen === 'off' || /^(\[[0-9a-fA-F:]+\]|[^:]+):\d{1,5}$/.test(asked.listen)
        ? ''
        : '--listen must be HOST:PORT or off',
    ].filter(Boolean)
    const config = await readConfig(asked, io).catch(gather(problems))
    const virtual = await reachCluster(virtualSide(asked), io).catch(gather(problems))
    const host = await reachCluster({ file: asked['host-kubeconfig'], context: asked['host-context'] }, io).catch(
      gather(problems),
    )
    if (virtual && !virtual.isVerified && asked['import-allow'].length)
      problems.push(
        `--import-allow would send Secrets of the host to ${virtual.server}, whose certificate is not verified: use https and remove insecure-skip-tls-verify`,
      )
    if (!config || !virtual || !host || problems.length) throw new UsageError(problems)
    try {
      return await run({ asked, config, virtual, host, io })
    } finally {
      virtual.close()
      host.close()
    }
  },
})

/** The owner of the virtual cluster supplies its kubeconfig, so the file is not trusted with the host. */
const virtualSide = (asked: Opened['asked']) => ({
  file: asked['virtual-kubeconfig'],
  context: asked['virtual-context'],
  tenant: {
    side: 'virtual',
    allowExec: asked['allow-exec'].includes('virtual'),
    allowFiles: asked['allow-files'].includes('virtual'),
  },
})

/** Everything that is wrong with three files is told at once. */
const gather = (problems: string[]) => (error: unknown) => {
  if (!(error instanceof UsageError)) throw error
  problems.push(...error.problems)
  return undefined
}

async function run(opened: Opened): Promise<number> {
  const { asked, config, io } = opened
  boundYoungGeneration()
  const log = pino({ level: asked['log-level'], base: null }, pino.destination({ fd: 2, sync: false }))
  const ending = new AbortController()
  void toldToStop().then(() => ending.abort())
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
