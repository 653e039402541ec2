// Access keys: lifetime, scope, groups, the disabled flag, the fields of a sign-in, and misspelled fields.

import { scope } from '../drafts.ts'
import type { Stage } from '../generator-context.ts'
import { kinds, type Obj } from '../objects.ts'
import { names } from '../universe.ts'
import { type Aspect, toggled, withAnnotation, without, withSpec } from './aspect.ts'

/** Misspelled field names. */
export const typos: readonly ((object: Obj) => Obj)[] = [
  object => withSpec(object, { scope: { project: [{ project: 'shop' }] } }),
  object => withSpec(object, { scope: { projects: [{ projct: 'shop' }] } }),
  object => withSpec(object, { scope: { rules: [{ verb: ['get'] }] } }),
  object => withSpec(without(object, 'scope'), { scopes: { projects: [{ project: 'shop' }] } }),
  object => withSpec(without(object, 'scope'), { Scope: { projects: [{ project: 'shop' }] } }),
  object => withSpec(without(object, 'ttl'), { tll: 600 }),
  object => withSpec(without(object, 'ttl'), { TTL: 600 }),
]

/** Makes a key look like a session, or like one that depends on a sign-in. */
export function keyOfSignIn({ chance, prover }: Stage): (object: Obj) => Obj {
  const { model, signIns } = prover
  const sessions = model.of(kinds.OwnedAccessKey).filter(one => signIns.isSession(one))
  const session = chance.any(sessions)
  /** A parent must be a key of the same user. */
  const ownSession = ({ spec }: Obj) => chance.any(sessions.filter(one => one.object.spec?.user === spec?.user))
  const groups = ['corp:dev', 'corp:ops']
  const identity = { userId: 'pia', username: 'corp:pia', connector: 'corp', groups }
  const record = JSON.stringify({ idle: 43_200, issuer: prover.server.provider.urls.corp })
  return chance.pick<(object: Obj) => Obj>([
    object => withSpec(object, { type: 'Login' }),
    object => withSpec(object, { type: 'Login', identity }),
    object => withSpec(object, { identity, identityRefresh: new Date(prover.server.now()).toISOString() }),
    object => withSpec(object, { parent: (ownSession(object) ?? session)?.name ?? 'k0' }),
    object => withSpec(object, { oidcLogin: { groups }, oidcProvider: { connector: 'corp' } }),
    object => withAnnotation(object, 'platform.sh/login', session?.uid ?? 'none'),
    object => withAnnotation(withSpec(object, { type: 'Login', identity }), 'platform.sh/session', record),
  ])
}

export const keys: readonly Aspect[] = [
  {
    weight: 5,
    what: 'a lifetime',
    danger: 'lifetime',
    make:
      ({ chance }) =>
      object =>
        chance.is(0.5) ? without(object, 'ttl') : withSpec(object, { ttl: chance.pick([60, 3600, 86_400, 864_000]) }),
  },
  {
    weight: 1,
    what: 'a sliding lifetime',
    danger: 'lifetime',
    make: () => object => withSpec(object, { ttlAfterLastActivity: !object.spec?.ttlAfterLastActivity }),
  },
  {
    weight: 4,
    what: 'the scope',
    danger: 'key-groups',
    make: stage => object =>
      stage.chance.is(0.5) ? without(object, 'scope') : withSpec(object, { scope: scope(stage) }),
  },
  {
    weight: 4,
    what: 'a typo',
    danger: 'typos',
    make:
      ({ chance }) =>
      object =>
        chance.pick(typos)(object),
  },
  {
    weight: 3,
    what: 'extra groups',
    danger: 'key-groups',
    make:
      ({ chance }) =>
      object =>
        withSpec(object, { groups: toggled(object.spec?.groups, chance.pick(names.groups)) }),
  },
  {
    weight: 4,
    what: 'the disabled flag',
    danger: 'key-groups',
    make: () => object => withSpec(object, { disabled: !object.spec?.disabled }),
  },
  { weight: 4, what: 'a sign-in', danger: 'sessions', make: stage => keyOfSignIn(stage) },
  { weight: 1, what: 'the description', make: () => object => withSpec(object, { description: 'mine' }) },
  {
    weight: 1,
    what: 'the user',
    make:
      ({ chance }) =>
      object =>
        withSpec(object, { user: chance.pick(names.users) }),
  },
]
