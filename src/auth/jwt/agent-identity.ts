// The agent of a connected cluster that signs in with a service-account token of its cluster (D68).

import type { Finding } from '../../api/config-shape.ts'
import { nameOf } from '../../api/config-shape.ts'
import { dnsLabel, dnsSubdomain } from '../../api/names.ts'
import type { JsonObject } from '../../api/object.ts'
import type { At } from '../../api/yaml-source.ts'
import { agentSubject, isAgentSubject } from '../../kinds/cluster-desired.ts'
import type { JwtEntry } from './auth-config-schema.ts'

export type AgentEntry = NonNullable<JwtEntry['agent']>

/**
 * The subject of the agent, if the token is its own. The administrator names cluster, uid and service account, so no claim can choose
 * another name (D65).
 */
export function agentIn(agent: AgentEntry | undefined, { sub }: JsonObject): string | undefined {
  if (!agent) return undefined
  const { cluster = '', uid = '', namespace = '', serviceAccount = '' } = agent
  return sub === `system:serviceaccount:${namespace}:${serviceAccount}`
    ? agentSubject({ name: cluster, uid })
    : undefined
}

export function checkAgent(agent: AgentEntry | undefined, at: At): Finding[] {
  if (!agent) return []
  const { cluster = '', uid = '', namespace = '', serviceAccount = '' } = agent
  const problems: readonly (readonly [string, boolean, string])[] = [
    ['cluster', dnsLabel(cluster).length === 0, 'must be the name of a Cluster'],
    [
      'uid',
      isAgentSubject(agentSubject({ name: 'any', uid })),
      'must be the uid of the Cluster: kubectl get cluster NAME -o jsonpath={.metadata.uid}',
    ],
    ['namespace', dnsLabel(namespace).length === 0, 'must be the namespace of the service account'],
    ['serviceAccount', dnsSubdomain(serviceAccount).length === 0, 'must be the name of the service account'],
  ]
  return problems
    .filter(([, isValid]) => !isValid)
    .map(([field, , message]) => ({ at: [...at, field], message: `${nameOf([...at, field])} ${message}` }))
}
