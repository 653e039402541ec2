// Attacks through sign-in: writes of sessions and exchanged keys, keys that claim a sign-in, and links of accounts to Users.

import { type Actor, isInPool, stepOf, tagged } from './actor.ts'
import { keyOfSignIn } from './aspects/keys.ts'
import { bodyOf, visibleOf } from './encode.ts'
import type { Stage } from './generator-context.ts'
import type { Known } from './model.ts'
import { kinds, type Obj } from './objects.ts'
import type { Method, Step } from './step.ts'
import { atoms, hasBit, names, noBits } from './universe.ts'

const links = atoms.flatMap(({ resource, sub }, index) => (resource === 'users' && sub === 'link' ? [index] : []))

/** Writes a key that only the server may write. */
export function touchSession(stage: Stage, someone: Actor): Step | undefined {
  const { chance, prover, enabled, prepared } = stage
  const { model, signIns } = prover
  const hasMachines = prepared.has('machines')
  const isMachine = chance.is(hasMachines === prepared.has('sessions') ? 0.5 : hasMachines ? 0.9 : 0.1)
  const all = model
    .of(kinds.OwnedAccessKey)
    .filter(one => (isMachine ? signIns.exchanged.has(one.uid) : signIns.isSession(one)))
  const disabled = all.filter(one => one.object.spec?.disabled)
  const key = chance.any(disabled.length && chance.is(0.5) ? disabled : all)
  if (!key) return undefined
  const actor = chance.is(0.9) ? ownerOf(stage, key) : someone
  if (!actor) return undefined
  const danger = signIns.isSession(key) ? 'sessions' : 'machines'
  if (!enabled.has(danger)) return undefined
  const at = { kind: kinds.OwnedAccessKey, name: key.name, danger } as const
  if (chance.is(0.3)) {
    const body = { kind: 'KeyRotation', spec: { overlapSeconds: chance.pick([0, 600]) } }
    return stepOf(stage, actor, { ...at, sub: 'rotate', method: 'create', body, what: 'rotation' })
  }
  if (chance.is(0.1)) return stepOf(stage, actor, { ...at, method: 'delete', what: 'deletion' })
  const visible = visibleOf(key.object)
  const toggle = (object: Obj) => ({ ...object, spec: { ...object.spec, disabled: !object.spec?.disabled } })
  const edits: readonly ((object: Obj) => Obj)[] = [
    toggle,
    object => ({ ...object, spec: { ...object.spec, ttl: 864_000 } }),
    object => ({ ...object, spec: { ...object.spec, type: 'User' } }),
    object => ({ ...object, spec: { ...object.spec, groups: [chance.pick(names.groups)] } }),
    keyOfSignIn(stage),
  ]
  const edit = key.object.spec?.disabled && chance.is(0.7) ? toggle : chance.pick(edits)
  const method = chance.pick<Method>(['update', 'merge', 'json', 'apply'])
  const body = bodyOf(method, visible, edit(visible), kinds.OwnedAccessKey)
  return stepOf(stage, actor, { ...at, method, body, what: 'a write' })
}

/** The user of a key, with another credential that may write keys. */
function ownerOf({ chance, prover: { coalition, credentials } }: Stage, { uid, object }: Known): Actor | undefined {
  const own = [...coalition].flatMap(secret => {
    const credential = credentials.of(secret)
    const isOwner = credential?.principal.username === object.spec?.user && credential?.key?.uid !== uid
    return credential && isOwner && !credential.isMachine
      ? [{ secret, credential, principal: credential.principal }]
      : []
  })
  return chance.any(own)
}

/** Lets an account sign in as a User. */
export function link(stage: Stage, actor: Actor): Step | undefined {
  const { chance, prover, enabled, attackers, holds = noBits() } = stage
  const all = prover.model.of(kinds.User).filter(isInPool)
  const others = all.filter(one => !attackers.includes(one.object.spec?.username ?? ''))
  const user = chance.any(others.length && chance.is(0.8) ? others : all)
  const mayLink = links.some(index => hasBit(holds, index))
  if (!user || !enabled.has('users') || (!mayLink && chance.is(0.8))) return undefined
  const own = [...prover.accounts]
  const subject = chance.pick(own.length && chance.is(0.7) ? own : names.accounts)
  const body = { kind: 'UserLink', spec: { provider: 'corp', subject } }
  const at = { kind: kinds.User, name: user.name, sub: 'link' }
  return stepOf(stage, actor, { ...at, method: 'create', body, what: 'a link', ...tagged(actor, 'users') })
}
