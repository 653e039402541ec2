// Roles and bindings: rules, aggregation and subjects.

import { aggregationLabel, selector, smallRule, subject, userSubject } from '../drafts.ts'
import type { Stage } from '../generator-context.ts'
import type { PolicyRule } from '../objects.ts'
import { builtIn } from '../universe.ts'
import { type Aspect, withLabel } from './aspect.ts'

export const roles: readonly Aspect[] = [
  {
    weight: 20,
    what: 'an aggregation label',
    danger: 'aggregation',
    make:
      ({ chance }) =>
      object =>
        withLabel(object, aggregationLabel, chance.pick(['x', 'x', 'y', undefined])),
  },
  {
    weight: 2,
    what: 'an aggregation rule',
    danger: 'aggregation',
    make: stage => object => {
      const { aggregationRule, ...rest } = object
      return aggregationRule && stage.chance.is(0.5)
        ? rest
        : { ...object, aggregationRule: { clusterRoleSelectors: [selector(stage)] } }
    },
  },
  {
    weight: 6,
    what: 'rules',
    make: stage => object => ({ ...object, rules: changedRules(stage, object.rules ?? []) }),
  },
]

function changedRules(stage: Stage, rules: readonly PolicyRule[]): PolicyRule[] {
  return stage.chance.weighted<() => PolicyRule[]>([
    [5, () => [...rules, smallRule(stage)]],
    [2, () => rules.slice(1)],
    [1, () => []],
    [1, () => [...rules, { verbs: ['*'], apiGroups: ['*'], resources: ['*'] }]],
    [1, () => [...rules, { verbs: ['get'], nonResourceURLs: ['/metrics'] }]],
  ])()
}

export const bindings: readonly Aspect[] = [
  {
    weight: 8,
    what: 'subjects',
    danger: 'bindings',
    make: stage => object => ({
      ...object,
      subjects: stage.chance.is(0.2)
        ? []
        : [
            ...(object.subjects ?? []).slice(0, 3),
            stage.chance.is(0.5) ? userSubject(stage.chance.pick(stage.attackers)) : subject(stage),
          ],
    }),
  },
  {
    weight: 1,
    what: 'the role reference',
    danger: 'bindings',
    make: () => object =>
      object.roleRef ? { ...object, roleRef: { ...object.roleRef, kind: 'ClusterRole', name: builtIn } } : object,
  },
]
