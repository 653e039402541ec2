// Steps that only read: objects, lists, older lists, and earlier versions of secrets, in every format.

import { type Actor, isInPool, isScoped, namespacesOf, stepOf, tagged } from './actor.ts'
import type { Stage } from './generator-context.ts'
import { kinds } from './objects.ts'
import type { Step } from './step.ts'

const table = 'application/json;as=Table;v=v1;g=meta.k8s.io'
const forms = [
  'application/yaml',
  table,
  'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io',
  'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io',
  // The server falls back to whole objects for a list.
  'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json',
]
const included = ['Object', 'Object', 'Metadata', 'None']

export function read(stage: Stage, actor: Actor): Step {
  const { chance, prover, enabled } = stage
  const kind = chance.weighted([
    [2, kinds.SharedSecret],
    [2, kinds.ProjectSecret],
    [1, kinds.OwnedAccessKey],
    [1, kinds.Team],
    [1, kinds.User],
  ] as const)
  const namespace = chance.pick(namespacesOf(kind))
  const there = prover.model.of(kind).filter(one => one.namespace === namespace && isInPool(one))
  const name = chance.is(0.4) ? '' : (chance.any(there)?.name ?? '')
  const isOld = name === '' && enabled.has('old-versions') && chance.is(0.6)
  const revision = prover.server.storage.store.revision
  const old = [`resourceVersion=${revision - chance.below(Math.min(revision - 1, 120))}`, 'resourceVersionMatch=Exact']
  const hasHistory = name !== '' && (kind === kinds.SharedSecret || kind === kinds.ProjectSecret)
  const sub = hasHistory && chance.is(0.3) ? chance.pick(['history', 'history/1', 'history/2']) : ''
  // The platform-cli role of a scope allows reading metadata only.
  const form = chance.is(isScoped(actor) ? 0.7 : 0.2)
    ? { headers: { accept: chance.is(0.4) ? table : chance.pick(forms) } }
    : {}
  const query = [...(isOld ? old : []), ...(form.headers ? [`includeObject=${chance.pick(included)}`] : [])]
  const danger = isOld ? 'old-versions' : isScoped(actor) && form.headers ? 'scoped-sharing' : undefined
  return stepOf(stage, actor, {
    kind,
    namespace,
    name,
    sub,
    method: 'get',
    query,
    what: 'reading',
    ...form,
    ...tagged(actor, danger),
  })
}
