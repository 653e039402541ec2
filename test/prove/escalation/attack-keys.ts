// Steps that create credentials: new access keys, rotations and tokens.

import { type Actor, isBounded, isInPool, stepOf, tagged } from './actor.ts'
import { withSpec } from './aspects/aspect.ts'
import { keyOfSignIn, typos } from './aspects/keys.ts'
import { agentKey } from './cluster-drafts.ts'
import { keySpec, scope } from './drafts.ts'
import { bodyOf, visibleOf } from './encode.ts'
import type { Stage } from './generator-context.ts'
import type { Known } from './model.ts'
import { kinds, tokens } from './objects.ts'
import type { Family, Method, Step } from './step.ts'
import { type Atom, chosenSecrets, names } from './universe.ts'

const rotationOf = (name: string): Atom => ({
  verb: 'create',
  group: kinds.OwnedAccessKey.group,
  resource: 'ownedaccesskeys',
  sub: 'rotate',
  namespace: '',
  name,
  path: '',
})

export function rotate(stage: Stage, actor: Actor): Step | undefined {
  const { chance, prover, enabled } = stage
  const all = prover.model.of(kinds.OwnedAccessKey).filter(isInPool)
  const own = all.filter(one => actor.principal && prover.rights.may(actor.principal, rotationOf(one.name)))
  // Keys with groups of others are more useful.
  const strong = own.filter(one => one.object.spec?.groups?.length)
  // So are keys that tokens were minted with.
  const minted = own.filter(one => prover.credentials.tokens.some(({ keyUid }) => keyUid === one.uid))
  const useful = chance.any([strong, minted].filter(some => some.length > 0))
  // And keys of a sign-in, for somebody without one.
  const signedIn = own.filter(one => isOfOtherSignIn(stage, actor, one))
  const key =
    signedIn.length && chance.is(0.5)
      ? chance.pick(signedIn)
      : useful && chance.is(0.5)
        ? chance.pick(useful)
        : chance.any(chance.is(0.9) ? own : all)
  if (!key) return undefined
  const danger = isOfOtherSignIn(stage, actor, key) ? 'sessions' : dangerOfRotation(actor, key)
  if (!enabled.has(danger)) return undefined
  const overlapSeconds = chance.pick(enabled.has('token-overlap') ? [0, 30, 600, 3600] : [0, 0, 600])
  const body = { kind: 'KeyRotation', spec: { overlapSeconds, ...(chance.is(0.3) ? { force: true } : {}) } }
  const at = { kind: kinds.OwnedAccessKey, name: key.name, sub: 'rotate' }
  return stepOf(stage, actor, { ...at, method: 'create', body, danger, what: 'rotation' })
}

const isOfOtherSignIn = ({ prover }: Stage, { as, credential }: Actor, key: Known): boolean =>
  !as && prover.signIns.loginOf(key) !== undefined && prover.signIns.loginOf(key) !== credential?.login

function dangerOfRotation(actor: Actor, { object: { spec = {} } }: Known): Family {
  if (actor.as) return 'impersonation'
  if (spec.groups?.length) return 'key-groups'
  return isBounded(actor) ? 'lifetime' : 'token-overlap'
}

/** Maximum number of the attackers' secrets that work, because each is checked after every change. */
const mostSecrets = 14

export function makeKey(stage: Stage, actor: Actor): Step | undefined {
  const { chance, prover, enabled } = stage
  const name = names.keys.find(one => !prover.model.get(kinds.OwnedAccessKey, '', one))
  const live = [...prover.coalition].filter(one => prover.credentials.endOf(one) !== undefined)
  if (name === undefined || live.length >= mostSecrets) return undefined
  if (isBounded(actor) && !actor.credential?.isMachine && !enabled.has('lifetime')) return undefined
  const isTypo = enabled.has('typos') && chance.is(0.3)
  // Otherwise the short life of its own credential would be the reason of a refusal.
  const life = actor.credential?.isMachine ? { ttl: 60 } : {}
  const cluster = chance.is(0.2) ? chance.any(prover.model.of(kinds.Cluster)) : undefined
  const whose = cluster ? agentKey(cluster) : chance.is(0.5) ? keySpec(stage) : {}
  const plain = { metadata: { name }, spec: { ...whose, ...life } }
  const isClaim = !isTypo && enabled.has('sessions') && chance.is(0.15)
  const body = isTypo ? chance.pick(typos)(plain) : isClaim ? keyOfSignIn(stage)(plain) : plain
  const danger = actor.as
    ? 'impersonation'
    : cluster && !isTypo && !isClaim
      ? 'clusters'
      : dangerOfKey(actor, isTypo, isClaim)
  const at = { kind: kinds.OwnedAccessKey, name }
  return stepOf(stage, actor, { ...at, method: 'create', body, what: 'creation', ...tagged(actor, danger) })
}

function dangerOfKey(actor: Actor, isTypo: boolean, isClaim: boolean): Family | undefined {
  if (isTypo) return 'typos'
  if (actor.credential?.isMachine) return 'machines'
  if (isClaim || actor.credential?.login !== undefined) return 'sessions'
  return isBounded(actor) ? 'lifetime' : undefined
}

/** A secret that another key may have, for a new key or for one of the actor's own. */
export function bringKey(stage: Stage, actor: Actor): Step | undefined {
  const { chance, prover, enabled } = stage
  if (!enabled.has('brought-keys')) return undefined
  const { model } = prover
  const part = { dryRun: chance.is(0.5), ...tagged(actor, 'brought-keys') }
  const chosen = { key: chance.pick(chosenSecrets) }
  const own = model.of(kinds.OwnedAccessKey).filter(isInPool)
  const key = chance.any(own.filter(one => one.object.spec?.user === actor.principal?.username))
  const name = names.keys.find(one => !model.get(kinds.OwnedAccessKey, '', one))
  if (key && chance.is(0.4)) {
    const method = chance.pick<Method>(['update', 'merge', 'json', 'apply'])
    const visible = visibleOf(key.object)
    const body = bodyOf(method, visible, withSpec(visible, chosen), kinds.OwnedAccessKey)
    return stepOf(stage, actor, { kind: kinds.OwnedAccessKey, name: key.name, method, body, what: 'a secret', ...part })
  }
  if (name === undefined) return undefined
  const body = { metadata: { name }, spec: chance.is(0.3) ? { ...keySpec(stage), ...chosen } : chosen }
  return stepOf(stage, actor, { kind: kinds.OwnedAccessKey, name, method: 'create', body, what: 'creation', ...part })
}

export function mint(stage: Stage, actor: Actor): Step {
  const { chance, enabled } = stage
  const isTypo = enabled.has('typos') && chance.is(0.1)
  const life = chance.is(0.7) ? { ttl: chance.pick([60, 900, 3600, 86_400]) } : {}
  const confined = isTypo ? { scope: { cluster: [{ cluster: 'c1' }] } } : chance.is(0.2) ? { scope: scope(stage) } : {}
  const danger: Family = actor.as ? 'impersonation' : isTypo ? 'typos' : 'token-overlap'
  const body = { spec: { ...life, ...confined } }
  return stepOf(stage, actor, { kind: tokens, name: '', method: 'create', body, what: 'a token', danger })
}
