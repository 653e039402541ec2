// Teams, secrets and Users: owners, access entries, members, data and its source, and whether a User is disabled.

import { accessEntry, owner, pullSecret } from '../drafts.ts'
import type { Stage } from '../generator-context.ts'
import { builtIn, names } from '../universe.ts'
import { type Aspect, toggled, without, withSpec } from './aspect.ts'

export const sharing: readonly Aspect[] = [
  {
    weight: 5,
    what: 'access',
    make: stage => object =>
      stage.chance.is(0.2)
        ? withSpec(object, { access: [] })
        : withSpec(object, { access: [...(object.spec?.access ?? []).slice(0, 2), ownAccess(stage)] }),
  },
  {
    weight: 4,
    what: 'the owner',
    danger: 'ownership',
    make: stage => object =>
      withSpec(object, {
        owner: stage.chance.is(0.5) ? { user: stage.chance.pick(stage.attackers) } : owner(stage),
      }),
  },
]

const ownAccess = (stage: Stage) =>
  stage.chance.is(0.5) ? { ...accessEntry(stage), users: [stage.chance.pick(stage.attackers)] } : accessEntry(stage)

export const teams: readonly Aspect[] = [
  {
    weight: 7,
    what: 'members',
    make: stage => object =>
      withSpec(object, {
        users: toggled(object.spec?.users, stage.chance.pick([...stage.attackers, ...names.users])),
      }),
  },
  {
    weight: 3,
    what: 'member groups',
    make:
      ({ chance }) =>
      object =>
        withSpec(object, {
          groups: toggled(object.spec?.groups, chance.pick([...names.groups, 'system:authenticated'])),
        }),
  },
  {
    weight: 3,
    what: 'cluster roles',
    make:
      ({ chance }) =>
      object =>
        withSpec(object, {
          clusterRoles: chance.is(0.3) ? [] : [{ name: chance.pick([...names.clusterRoles, builtIn]) }],
        }),
  },
  {
    weight: 3,
    what: 'image pull secrets',
    danger: 'secret-names',
    make: stage => object =>
      withSpec(object, {
        imagePullSecrets: stage.chance.is(0.2)
          ? []
          : [...(object.spec?.imagePullSecrets ?? []).slice(0, 2), pullSecret(stage)],
      }),
  },
]

export const users: readonly Aspect[] = [
  {
    weight: 10,
    what: 'the disabled flag',
    danger: 'users',
    make: () => object => withSpec(object, { disabled: !object.spec?.disabled }),
  },
  { weight: 1, what: 'the display name', make: () => object => withSpec(object, { displayName: 'mine' }) },
  {
    weight: 1,
    what: 'the username',
    danger: 'users',
    make:
      ({ chance }) =>
      object =>
        withSpec(object, { username: chance.pick(names.users) }),
  },
]

export const secrets: readonly Aspect[] = [
  { weight: 4, what: 'data', make: stage => object => withSpec(object, { data: stage.prover.canaries.make() }) },
]

export const copies: readonly Aspect[] = [
  {
    weight: 5,
    what: 'the source',
    danger: 'secret-names',
    make:
      ({ chance }) =>
      object =>
        chance.is(0.2)
          ? without(object, 'sharedSecretRef')
          : withSpec(without(object, 'data'), {
              sharedSecretRef: { name: chance.pick(names.secrets), namespace: chance.pick(names.namespaces) },
            }),
  },
]
