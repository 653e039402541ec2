// Steps that only read: objects, lists, older lists, and earlier versions of secrets, in every format.

import { type Actor, isInPool, namespacesOf, stepOf } from './actor.ts'
import type { Stage } from './generator-context.ts'
import { kinds } from './objects.ts'
import type { Step } from './step.ts'

const forms = [
  'application/yaml',
  'application/json;as=Table;v=v1;g=meta.k8s.io',
  'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io',
  'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io',
  // The server falls back to whole objects for a list.
  'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json',
]
const included = ['Object', 'Metadata', 'None']

export function read(stage: Stage, actor: Actor): Step {
  const { chance, prover, enabled } = stage
  const kind = chance.pick([
    kinds.SharedSecret,
    kinds.SharedSecret,
    kinds.ProjectSecret,
    kinds.OwnedAccessKey,
    kinds.Team,
    kinds.User,
  ])
  const namespace = chance.pick(namespacesOf(kind))
  const there = prover.model.of(kind).filter(one => one.namespace === namespace && isInPool(one))
  const name = chance.is(0.4) ? '' : (chance.any(there)?.name ?? '')
  const isOld = name === '' && enabled.has('old-versions') && chance.is(0.6)
  const revision = prover.server.storage.store.revision
  const old = [`resourceVersion=${revision - chance.below(Math.min(revision - 1, 120))}`, 'resourceVersionMatch=Exact']
  const hasHistory = name !== '' && (kind === kinds.SharedSecret || kind === kinds.ProjectSecret)
  const sub = hasHistory && chance.is(0.3) ? chance.pick(['history', 'history/1', 'history/2']) : ''
  const form = chance.is(0.2) ? { headers: { accept: chance.pick(forms) } } : {}
  const query = [...(isOld ? old : []), ...(form.headers ? [`includeObject=${chance.pick(included)}`] : [])]
  const danger = isOld ? ({ danger: 'old-versions' } as const) : {}
  return stepOf(stage, actor, { kind, namespace, name, sub, method: 'get', query, what: 'reading', ...form, ...danger })
}
