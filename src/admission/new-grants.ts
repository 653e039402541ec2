// Computes the permissions that exist after a write and did not exist before (D60).

import type { Caller } from '../api/caller.ts'
import type { Grant, Recipient } from '../api/grant.ts'
import { callerAsOwner } from '../kinds/shared-schema.ts'

/** Grants of an object, with the uids of the teams that it refers to. */
export type Given = { readonly grants: readonly Grant[]; readonly uids: { readonly [team: string]: string } }

export function newGrants(after: Given, before: Given): Grant[] {
  const rights = rightsOn(before)
  const others = new Set(before.grants.map(grant => keyOf(grant, before.uids)))
  return after.grants.flatMap(grant => {
    if (grant.type !== 'object') return others.has(keyOf(grant, after.uids)) ? [] : [grant]
    return newVerbs(grant, idOf(grant.to, after.uids), rights)
  })
}

/** The uid identifies a team. Without one, the name refers to any team with that name. */
function idOf(to: Recipient | undefined, uids: Given['uids']): string {
  if (!to) return ''
  return to.kind === 'team' ? `team ${to.name} ${uids[to.name] ?? ''}` : `${to.kind} ${to.name}`
}

function keyOf(grant: Grant, uids: Given['uids']): string {
  const { field: _, to, ...what } = grant
  return JSON.stringify([what, idOf(to, uids)])
}

/** Verbs on the object itself, by recipient. A right is `verb` or `verb subresource`; `*` means all. */
type Rights = ReadonlyMap<string, ReadonlySet<string>>
const everyone = 'user *'

function rightsOn({ grants, uids }: Given): Rights {
  const found = new Map<string, Set<string>>()
  for (const grant of grants) {
    if (grant.type !== 'object' && grant.type !== 'owner') continue
    // An owner with the name * is not everyone.
    const id = grant.type === 'owner' && idOf(grant.to, uids) === everyone ? '' : idOf(grant.to, uids)
    const granted = found.get(id) ?? new Set()
    found.set(id, granted)
    for (const right of grant.type === 'owner' ? ['*', '* *'] : rightsIn(grant)) granted.add(right)
  }
  return found
}

type ObjectGrant = Extract<Grant, { type: 'object' }>

const rightsIn = ({ verbs, subresources }: ObjectGrant): string[] =>
  verbs.flatMap(verb => [verb, ...subresources.map(sub => `${verb} ${sub}`)])

/** The new part of a grant, as one grant per verb, so that an error lists exactly the new verbs. */
function newVerbs(grant: ObjectGrant, id: string, rights: Rights): Grant[] {
  const granted = [rights.get(id), rights.get(everyone)]
  const has = (verb: string, sub: string | undefined) =>
    granted.some(set => {
      if (!set) return false
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
