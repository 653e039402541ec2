// Steps with the permissions of an agent: reading what is sent to a cluster, and reports that change more than the status.

import { type Actor, isInPool, stepOf, tagged } from './actor.ts'
import { clusterSpec, labelsOf } from './cluster-drafts.ts'
import type { Stage } from './generator-context.ts'
import { kinds } from './objects.ts'
import type { Step } from './step.ts'

export function reportAsAgent(stage: Stage, actor: Actor): Step | undefined {
  const { chance, prover } = stage
  const cluster = chance.any(prover.model.of(kinds.Cluster).filter(isInPool))
  if (!cluster) return undefined
  const at = { kind: kinds.Cluster, name: cluster.name, ...tagged(actor, 'clusters') }
  if (chance.is(0.5)) return stepOf(stage, actor, { ...at, sub: 'desired', method: 'get', what: 'reading' })
  const body = { metadata: { labels: labelsOf(stage) }, spec: clusterSpec(stage), status: { agentVersion: '1' } }
  return stepOf(stage, actor, { ...at, sub: 'status', method: 'merge', body, what: 'a report' })
}
