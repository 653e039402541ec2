// The network checks of the agent: whether the cluster allows what it needs, and whether the management API knows its cluster.

import type { ApiError } from '../../api/errors.ts'
import { connect } from '../../client/connect.ts'
import { Cluster } from '../../kinds/cluster.ts'
import { SelfSubjectAccessReview } from '../../kinds/self-reviews.ts'
import { openTransport } from '../../transport/transport.ts'
import { agentNamespaceOf } from '../agent/agent-part.ts'
import type { Service } from '../auth/control-plane.ts'
import { describeTarget } from '../proxy/routes.ts'
import type { LoadedSetup } from './load.ts'
import { isUnreachable, isUntrusted, type PreflightReport, type ProbeOptions } from './preflight-probes.ts'

type Attributes = {
  readonly verb: string
  readonly group: string
  readonly resource: string
  readonly namespace?: string
}

/** The permissions that every agent needs. Those on secrets and roles depend on what the management API wants. */
function permissionsIn(namespace: string): Attributes[] {
  const each = (verbs: string, others: Omit<Attributes, 'verb'>) => verbs.split(' ').map(verb => ({ verb, ...others }))
  return [
    ...each('get list watch create update delete', {
      group: 'rbac.authorization.k8s.io',
      resource: 'clusterrolebindings',
    }),
    ...each('get create update', { group: 'coordination.k8s.io', resource: 'leases', namespace }),
    ...each('get create update', { group: '', resource: 'configmaps', namespace }),
  ]
}

export async function probeAgent(
  { config, accesses }: LoadedSetup,
  service: Service,
  { file, io }: ProbeOptions,
  report: PreflightReport,
): Promise<void> {
  const name = config.agent?.cluster
  const access = name === undefined ? undefined : accesses.get(describeTarget({ target: 'Cluster', cluster: name }))
  if (name === undefined || !access) return
  const record = (error: ApiError, text: string) => {
    const isAway = isUnreachable(error)
    const list = isAway && !isUntrusted(error) ? report.unreachable : report.problems
    list.push(`${file}: agent.cluster: ${isAway ? error.message : text}`)
  }
  const probeService = async () => {
    try {
      await service.resources.get(Cluster, { namespace: '', name }, { subresource: 'status' })
    } catch (error) {
      const { message } = error as ApiError
      record(
        error as ApiError,
        `the management API rejects the agent of cluster ${name}: ${message}; create the cluster, and use an access key of its agent`,
      )
    }
  }
  const probeCluster = async () => {
    const transport = openTransport(access, { env: io.env, now: io.now, answerWithin: 10_000 })
    const { create } = connect({ url: access.server, below: '', fetch: transport.fetch })
    const permissions = permissionsIn(agentNamespaceOf(config))
    try {
      const missing: string[] = []
      for (const resourceAttributes of permissions) {
        const { object } = await create(SelfSubjectAccessReview, '', { spec: { resourceAttributes } })
        const { verb, resource, namespace } = resourceAttributes
        if ((object.status as { readonly allowed?: boolean } | undefined)?.allowed !== true)
          missing.push(`${verb} ${resource}${namespace === undefined ? '' : ` in namespace ${namespace}`}`)
      }
      if (missing.length)
        report.problems.push(
          `${file}: agent: the agent has no permission to ${missing.join(', ')} in cluster ${name}: grant it, see docs/GATEWAY.md`,
        )
    } catch (error) {
      const { message } = error as ApiError
      record(error as ApiError, `cannot check the permissions of the agent in cluster ${name}: ${message}`)
    }
    transport.close()
  }
  await Promise.all([probeService(), probeCluster()])
}
