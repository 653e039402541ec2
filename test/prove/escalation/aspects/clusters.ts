// Connected clusters: their labels, projects and gateways, the roles of teams in them, and deliveries of secrets.

import { delivery, gatewayOf, projectsOf, remoteRole } from '../cluster-drafts.ts'
import { type Aspect, toggled, withLabel, without, withSpec } from './aspect.ts'

const danger = 'clusters'

export const clusters: readonly Aspect[] = [
  {
    weight: 10,
    what: 'labels of a cluster',
    danger,
    make:
      ({ chance }) =>
      object =>
        withLabel(object, 'tier', chance.pick(['a', 'b', undefined])),
  },
  {
    weight: 12,
    what: 'projects of a cluster',
    danger,
    make: stage => object => withSpec(object, { projects: projectsOf(stage) }),
  },
  {
    weight: 5,
    what: 'the disabled flag',
    danger,
    make: () => object => withSpec(object, { disabled: !object.spec?.disabled }),
  },
  {
    weight: 4,
    what: 'the gateway',
    danger,
    make: stage => object =>
      stage.chance.is(0.3) ? without(object, 'gateway') : withSpec(object, { gateway: gatewayOf(stage) }),
  },
  { weight: 1, what: 'the display name', make: () => object => withSpec(object, { displayName: 'mine' }) },
]

export const remoteRoles: readonly Aspect[] = [
  {
    weight: 8,
    what: 'cluster roles',
    danger,
    make: stage => object => {
      const role = remoteRole(stage)
      const others = (object.spec?.clusterRoles ?? []).filter(({ name }) => name !== role.name)
      return withSpec(object, { clusterRoles: stage.chance.is(0.2) ? [role] : [...others.slice(0, 2), role] })
    },
  },
  {
    weight: 12,
    what: 'members',
    danger,
    make:
      ({ chance, attackers }) =>
      object =>
        withSpec(object, { users: toggled(object.spec?.users, chance.pick(attackers)) }),
  },
]

export const deliveries: readonly Aspect[] = [
  {
    weight: 12,
    what: 'deliveries',
    danger,
    make: stage => object =>
      withSpec(object, {
        deliver: stage.chance.is(0.2) ? [] : [...(object.spec?.deliver ?? []).slice(0, 1), delivery(stage)],
      }),
  },
]
