// `platform vcluster sync`: reads the flags and the configuration, opens both clusters, and runs the syncer.

import { defineCommand, UsageError } from '../host/command.ts'
import { reachCluster } from '../transport/open-cluster.ts'
import { readConfig } from '../vcluster/config/read.ts'
import { flags, type Opened, timeoutProblem } from '../vcluster/sync/flags.ts'
import { runSync } from '../vcluster/sync/run.ts'

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
      return await runSync({ asked, config, virtual, host, io })
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

/** Collects the problems of the three files. */
const gather = (problems: string[]) => (error: unknown) => {
  if (!(error instanceof UsageError)) throw error
  problems.push(...error.problems)
  return undefined
}
