// Data: copies come from the source they follow, and responses show only readable data (D6, D30, D61).

import type { Known } from './model.ts'
import { kinds, type SourceRef } from './objects.ts'
import type { Prover } from './prover.ts'
import { scopeCovers } from './scopes.ts'
import type { Before, Change, Outcome } from './step.ts'
import { type Atom, hasBit, placeOf } from './universe.ts'
import { Violation } from './violation.ts'

export function checkData(prover: Prover, changes: readonly Change[], outcome: Outcome | undefined): void {
  for (const { before, after, cause } of changes) {
    if (after?.kind !== kinds.ProjectSecret) continue
    const ref = after.object.spec?.sharedSecretRef
    if (!ref?.name || prover.model.uids.get(after.uid) !== after) continue
    if (cause === 'request' && outcome) checkFollower(prover, outcome, ref, before)
    const allowed = prover.model.sourcesOf(after.uid)
    for (const uid of prover.canaries.foundIn(prover.dataOf(after.namespace, after.name)))
      if (uid !== after.uid && !allowed.has(uid))
        throw new Violation(
          'data flow',
          `ProjectSecret "${after.name}" has data of a source that replaced the one it follows`,
        )
  }
}

/** Only a caller who may read a source can let a secret follow it. */
function checkFollower(prover: Prover, { before, step }: Outcome, ref: SourceRef, old: Known | undefined): void {
  const was = old?.object.spec?.sharedSecretRef
  const namespaceOf = ({ namespace }: SourceRef) => namespace || 'default'
  if (was && was.name === ref.name && namespaceOf(was) === namespaceOf(ref) && was.uid === ref.uid) return
  const source = readOf('sharedsecrets', ref.namespace || 'default', ref.name ?? '')
  if (!maySee(prover, before, source))
    throw new Violation(
      'data flow',
      `${step.what} made a ProjectSecret follow "${ref.name}", which its writer may not read`,
    )
}

export const readOf = (resource: string, namespace: string, name: string, sub = ''): Atom => ({
  verb: 'get',
  group: 'management.platform.sh',
  resource,
  sub,
  namespace,
  name,
  path: '',
})

/** Before or after the request, because it may have created or deleted the object. */
export function maySee({ rights }: Prover, { principal, scope, bits }: Before, ask: Atom): boolean {
  const index = placeOf(ask)
  if (index >= 0 && hasBit(bits, index)) return true
  return principal !== undefined && scopeCovers(scope, ask) && rights.may(principal, ask)
}

/** Callers with list or watch can read at least what they may get. For a deleted object, its last state decides (D71). */
function mayRead(prover: Prover, before: Before, object: Known): boolean {
  const { principal, scope } = before
  const { kind, namespace, name } = object
  const read = readOf(kind.plural, namespace, name)
  const verbs = ['get', 'list', 'watch']
  const isGone = prover.model.gone.has(object.uid)
  if (verbs.some(verb => maySee(prover, before, { ...read, verb, name: '' }))) return true
  if (isGone)
    return verbs.some(verb => {
      const ask = { ...read, verb }
      return principal && scopeCovers(scope, ask) && prover.rights.mayOn(principal, object, ask)
    })
  return (
    verbs.some(verb => maySee(prover, before, { ...read, verb })) || maySee(prover, before, { ...read, sub: 'history' })
  )
}

const secret = /plat_[0-9A-Za-z]{49}|chosen-[a-z]+-+/g

export function checkAnswer(prover: Prover, outcome: Outcome): void {
  const { answer, before, shown } = outcome
  const { canaries, model, coalition } = prover
  for (const uid of canaries.foundIn(answer.text)) {
    const source = model.uids.get(uid) ?? model.gone.get(uid)
    if (source && mayRead(prover, before, source)) continue
    const secrets = [...model.of(kinds.ProjectSecret), ...model.gone.values()]
    const copies = secrets.filter(one => model.sourcesOf(one.uid).has(uid))
    if (copies.some(one => mayRead(prover, before, one))) continue
    const what = source ? `${source.kind.kind} "${source.namespace}/${source.name}"` : 'an object that is gone'
    throw new Violation(
      'answers',
      `an answer shows data of ${what} to "${before.principal?.username}", who may not read it`,
    )
  }
  if (!answer.text.includes('plat_') && !answer.text.includes('chosen-')) return
  for (const [found] of answer.text.matchAll(secret))
    if (found !== shown && !coalition.has(found))
      throw new Violation('answers', 'an answer shows a secret of somebody else')
}
