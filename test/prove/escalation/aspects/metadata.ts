// Labels, annotations, owner references and finalizers, which every kind has.

import type { Stage } from '../generator-context.ts'
import { clusterPins, type KindInfo, kinds, pullPins, teamPins, type Words } from '../objects.ts'
import { type Aspect, withAnnotation, withLabel, withMeta } from './aspect.ts'

/** Uids that reserved labels could refer to. */
function someUid({ prover, chance }: Stage): string {
  const all = [kinds.Team, kinds.SharedSecret, kinds.ProjectSecret].flatMap(kind => prover.model.of(kind))
  return chance.any(all)?.uid ?? 'none'
}

const pinsOf = ({ prover }: Stage, kind: KindInfo): string =>
  JSON.stringify(Object.fromEntries(prover.model.of(kind).map(({ name, uid }) => [name, uid])))

const pulledPins = ({ prover }: Stage): string => {
  const secrets = [...prover.model.of(kinds.SharedSecret), ...prover.model.of(kinds.ProjectSecret)]
  return JSON.stringify(Object.fromEntries(secrets.map(({ slot, uid }) => [slot, uid])))
}

export const metadata: readonly Aspect[] = [
  {
    weight: 3,
    what: 'a label',
    make:
      ({ chance }) =>
      object =>
        withLabel(object, 'tier', chance.pick(['a', 'b', undefined])),
  },
  {
    weight: 6,
    what: 'a reserved label',
    danger: 'reserved-labels',
    make: stage => object =>
      stage.chance.is(0.8)
        ? withLabel(object, 'platform.sh/mirrors', someUid(stage))
        : withLabel(object, stage.chance.pick(['platform.sh/built-in', 'platform.sh/secret']), 'true'),
  },
  {
    weight: 3,
    what: 'a reserved annotation',
    danger: 'reserved-labels',
    make: stage => object =>
      stage.chance.is(0.7)
        ? stage.chance.pick([
            () => withAnnotation(object, teamPins, pinsOf(stage, kinds.Team)),
            () => withAnnotation(object, clusterPins, pinsOf(stage, kinds.Cluster)),
            () => withAnnotation(object, pullPins, pulledPins(stage)),
          ])()
        : withAnnotation(object, 'platform.sh/description', 'mine'),
  },
  {
    weight: 2,
    what: 'removed labels',
    danger: 'reserved-labels',
    make: () => object => withMeta(object, { labels: {} as Words }),
  },
  {
    weight: 2,
    what: 'owner references',
    make: ({ prover, chance }) => {
      const owner = chance.any([...prover.model.of(kinds.Team), ...prover.model.of(kinds.SharedSecret)])
      const reference = owner && {
        apiVersion: `${owner.kind.group}/v1`,
        kind: owner.kind.kind,
        name: owner.name,
        uid: chance.is(0.8) ? owner.uid : 'gone',
        ...(chance.is(0.2) ? { blockOwnerDeletion: true } : {}),
      }
      return object => withMeta(object, { ownerReferences: reference && chance.is(0.8) ? [reference] : [] })
    },
  },
  {
    weight: 1,
    what: 'finalizers',
    make:
      ({ chance }) =>
      object =>
        withMeta(object, { finalizers: chance.is(0.5) ? ['prover.test/hold'] : [] }),
  },
]
