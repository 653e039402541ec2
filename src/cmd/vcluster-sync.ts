// `platform vcluster sync`: opens both clusters and runs the syncer.

import pino from 'pino'
import { defineCommand, UsageError } from '../host/command.ts'
import { openTracing } from '../serving/tracing/open.ts'
import { openCluster } from '../transport/open-cluster.ts'
import { readConfig } from '../vcluster/config/read.ts'
import { syncReferencesProblem } from '../vcluster/config/reference-kinds.ts'
import { importAllowProblem } from '../vcluster/patch/import-policy.ts'
import { flags, type Opened, timeoutProblem } from '../vcluster/sync/flags.ts'
import { runSync } from '../vcluster/sync/run.ts'
import { version } from './version.ts'

export const vclusterSync = defineCommand({
  words: ['vcluster', 'sync'],
  what: 'Sync the Endpoints of a virtual cluster to its host.',
  examples: [
    {
      what: 'With kubeconfigs for both clusters',
      command:
        'platform vcluster sync -f vcluster.yaml --name my-vcluster -n team --virtual-kubeconfig v.yaml --host-kubeconfig h.yaml',
    },
    {
      what: 'Preview the writes',
      command:
        'platform vcluster sync -f vcluster.yaml --name my-vcluster -n team --virtual-kubeconfig v.yaml --host-kubeconfig h.yaml --dry-run',
    },
    {
      what: 'In pods on the host, with several replicas',
      command:
        'platform vcluster sync -f vcluster.yaml --name my-vcluster -n team --virtual-kubeconfig v.yaml --leader-elect --listen 0.0.0.0:8081',
    },
  ],
  flags,
  run: async ({ flags }, io) => {
    const problems = [
      timeoutProblem(flags.timeout),
      flags.output !== undefined && (!flags.once || flags['dry-run']) ? '-o requires --once without --dry-run' : '',
      flags.listen === 'off' || /^(\[[0-9a-fA-F:]+\]|[^:]+):\d{1,5}$/.test(flags.listen)
        ? ''
        : '--listen must be HOST:PORT or off',
      ...flags['sync-references'].map(kind => syncReferencesProblem(kind) ?? ''),
      ...flags['import-allow'].map(entry => importAllowProblem(entry, flags['sync-references']) ?? ''),
    ].filter(Boolean)
    const config = await readConfig(flags, io).catch(gather(problems))
    const log = pino({ level: flags['log-level'], base: null }, pino.destination({ fd: 2, sync: false }))
    const tracing = await openTracing({
      endpoint: flags['otlp-endpoint'] ?? '',
      env: io.env,
      service: 'platform-vcluster-sync',
      version,
      log,
      now: io.now,
    }).catch(gather(problems))
    const wrap = tracing?.sending
    const virtual = await openCluster({ ...virtualSide(flags), wrap }, io).catch(gather(problems))
    const hostSide = { file: flags['host-kubeconfig'], context: flags['host-context'], wrap }
    const host = await openCluster(hostSide, io).catch(gather(problems))
    if (virtual && !virtual.isVerified && flags['import-allow'].length)
      problems.push(
        `--import-allow would send Secrets of the host to ${virtual.server}, whose certificate is not verified: use https and remove insecure-skip-tls-verify`,
      )
    if (!config || !virtual || !host || problems.length) throw new UsageError(problems)
    try {
      return await runSync({ flags, config, virtual, host, io, log, tracing })
    } finally {
      await tracing?.close()
      virtual.close()
      host.close()
    }
  },
})

/** The tenant provides this kubeconfig, so it must not access the machine of the syncer. */
const virtualSide = (flags: Opened['flags']) => ({
  file: flags['virtual-kubeconfig'],
  context: flags['virtual-context'],
  tenant: {
    side: 'virtual',
    allowExec: flags['allow-exec'].includes('virtual'),
    allowFiles: flags['allow-files'].includes('virtual'),
  },
})

/** Collects the problems of all three files. */
const gather = (problems: string[]) => (error: unknown) => {
  if (!(error instanceof UsageError)) throw error
  problems.push(...error.problems)
  return undefined
}
