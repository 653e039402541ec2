// Computes the permissions that exist after a write and did not exist before (D60).

import type { Caller } from '../api/caller.ts'
import type { Grant, Recipient } from '../api/grant.ts'
import { pause } from '../api/time-slices.ts'
import { callerAsOwner } from '../kinds/shared-schema.ts'

/** Grants of an object, with the uids of the teams that it refers to. */
export type Given = { readonly grants: readonly Grant[]; readonly uids: { readonly [team: string]: string } }

/** How many grants are compared between two looks at the clock. */
const pieceOf = 256

export async function newGrants(after: Given, before: Given): Promise<readonly Grant[]> {
  if (before.grants.length === 0) return after.grants
  const changed = changedGrants(after, before)
  if (changed.length === 0) return changed
  const rightsOf = await rightsOn(before)
  const others = new Set(
    before.grants.flatMap(grant => (grant.type === 'object' ? [] : [keyOf(grant, idOf(grant.to, before.uids))])),
  )
  const added: Grant[] = []
  for (const [index, grant] of changed.entries()) {
    if (index % pieceOf === pieceOf - 1) await pause()
    if (grant.type === 'object')
      added.push(...newVerbs(grant, [...idsOf(grant.to, after.uids).map(rightsOf), rightsOf(everyone)]))
    else if (!idsOf(grant.to, after.uids).some(id => others.has(keyOf(grant, id)))) added.push(grant)
  }
  return added
}

/** Without the grants that are the same at the beginning and at the end. Most writes change one access entry. */
function changedGrants(after: Given, before: Given): readonly Grant[] {
  const isKept = (at: number, was: number) => {
    const [next, old] = [after.grants[at], before.grants[was]]
    if (!next || !old || idOf(next.to, {}) !== idOf(old.to, {})) return false
    const isOtherTeam = next.to?.kind === 'team' && idOf(next.to, after.uids) !== idOf(old.to, before.uids)
    return !isOtherTeam && isSame(next, old)
  }
  let first = 0
  while (isKept(first, first)) first++
  let [end, wasEnd] = [after.grants.length, before.grants.length]
  while (end > first && wasEnd > first && isKept(end - 1, wasEnd - 1)) {
    end--
    wasEnd--
  }
  return after.grants.slice(first, end)
}

/** For two grants to the same recipient. */
function isSame(one: Grant, other: Grant): boolean {
  if (one.type === 'object' && other.type === 'object')
    return sameWords(one.verbs, other.verbs) && sameWords(one.subresources, other.subresources)
  if (one.type === 'team' && other.type === 'team') return one.team === other.team
  if (one.type === 'owner' || other.type === 'owner') return one.type === other.type
  return keyOf(one, '') === keyOf(other, '')
}
const sameWords = (one: readonly string[], other: readonly string[]) =>
  one.length === other.length && one.every((word, index) => word === other[index])

/** The uid identifies a team. Without one, the name refers to any team with that name. */
function idOf(to: Recipient | undefined, uids: Given['uids']): string {
  if (!to) return ''
  return to.kind === 'team'
    ? `${to.keysOnly ? 'keys' : 'team'} ${to.name} ${Object.hasOwn(uids, to.name) ? uids[to.name] : ''}`
    : `${to.kind} ${to.name}`
}

/** The recipients whose permissions this one has. Keys of a team have all permissions of the team, its members not those of keys. */
const idsOf = (to: Recipient | undefined, uids: Given['uids']): readonly string[] =>
  to?.keysOnly ? [idOf(to, uids), idOf({ kind: 'team', name: to.name }, uids)] : [idOf(to, uids)]

/** `id`: of the recipient. */
function keyOf(grant: Grant, id: string): string {
  const { field: _, to: __, ...what } = grant
  return JSON.stringify([what, id])
}

/** The grants of one recipient, and their rights: `verb` or `verb subresource`, where `*` means all. */
type Rights = { readonly grants: Grant[]; rights?: ReadonlySet<string> }
const everyone = 'user *'

/** Computes the rights only of recipients whose grants change. */
async function rightsOn({ grants, uids }: Given): Promise<(id: string) => Rights | undefined> {
  const found = new Map<string, Rights>()
  for (const [index, grant] of grants.entries()) {
    if (index % pieceOf === pieceOf - 1) await pause()
    if (grant.type !== 'object' && grant.type !== 'owner') continue
    const name = idOf(grant.to, uids)
    // An owner with the name * is not everyone.
    const id = grant.type === 'owner' && name === everyone ? '' : name
    const there = found.get(id)
    if (there) there.grants.push(grant)
    else found.set(id, { grants: [grant] })
  }
  return id => found.get(id)
}

function rightsIn(held: Rights): ReadonlySet<string> {
  if (held.rights) return held.rights
  const rights = new Set<string>()
  for (const grant of held.grants) {
    const { verbs, subresources } = grant.type === 'object' ? grant : { verbs: ['*'], subresources: ['*'] }
    for (const verb of verbs) {
      rights.add(verb)
      for (const subresource of subresources) rights.add(`${verb} ${subresource}`)
    }
  }
  held.rights = rights
  return rights
}

type ObjectGrant = Extract<Grant, { type: 'object' }>

/** The new part of a grant, as one grant per verb, so that an error lists exactly the new verbs. */
function newVerbs(grant: ObjectGrant, recipients: readonly (Rights | undefined)[]): Grant[] {
  const known = recipients.flatMap(one => one ?? [])
  if (known.some(({ grants: [first], grants }) => first && grants.length === 1 && isSame(first, grant))) return []
  const held = known.map(rightsIn)
  const has = (verb: string, sub: string | undefined) =>
    held.some(set => {
      if (sub === undefined) return set.has(verb) || set.has('*')
      return set.has(`${verb} ${sub}`) || set.has(`* ${sub}`) || set.has(`${verb} *`) || set.has('* *')
    })
  return grant.verbs.flatMap(verb => {
    const subresources = grant.subresources.filter(sub => !has(verb, sub))
    return has(verb, undefined) && subresources.length === 0 ? [] : [{ ...grant, verbs: [verb], subresources }]
  })
}

/** Whether a grant of a new object only makes its creator the owner. */
export function isCreatorsOwn(grant: Grant, caller: Caller): boolean {
  const { user, team } = callerAsOwner(caller)
  if (grant.type !== 'owner' || !grant.to) return false
  return grant.to.kind === 'user' ? grant.to.name === user : grant.to.kind === 'team' && grant.to.name === team
}
