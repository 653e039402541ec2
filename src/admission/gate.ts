// The one gate for power (D60): every write of an object that gives something to somebody passes it. Kinds declare what an
// object gives (`grants`); this file compares what is there before and after, and refuses what the caller does not hold.

import { systemCaller } from '../api/caller.ts'
import { ApiError, forbidden } from '../api/errors.ts'
import type { Grant } from '../api/grant.ts'
import type { Kind, Tools } from '../api/kind.ts'
import type { Resource } from '../api/object.ts'
import type { Gate, GatedWrite } from '../api/power-gate.ts'
import { teamUidsOf, withTeamUids } from '../kinds/team-uids.ts'
import { checkCredential, releaseKey } from './access-key.ts'
import { refuseBuiltInChange, refuseBuiltInDeletion } from './built-in-roles.ts'
import { type Check, checkGrants } from './check-grants.ts'
import { pinSource } from './copied-source.ts'
import { isOnlyForCollector } from './garbage-collection.ts'
import { isCreatorsOwn, newGrants } from './new-grants.ts'
import { keepReserved } from './reserved-metadata.ts'

export const gate: Gate = { admit, release }

async function admit({ kind, next: sent, old, tools }: GatedWrite): Promise<Resource> {
  // Controllers and the first start act as the server. They keep what is pinned.
  if (tools.caller === systemCaller) return sent
  const next = keepReserved(kind, sent, old)
  if (!kind.grants) return next
  refuseBuiltInChange(kind, next, old)
  if (kind.checkedWhole && old && !isScoped(tools) && isOnlyForCollector(next, old)) return next
  const source = pinSource(kind, next, old, tools)
  const [before, after] = [old ? kind.grants(old) : [], kind.grants(source)]
  if (isScoped(tools)) refuseScoped(kind, source, { before, after }, tools)
  if (after.some(({ type }) => type === 'credential')) return checkCredential({ kind, next: source, old, tools })
  const check: Check = { kind, next: source, old, tools }
  const uids = uidsFor(after, before, old, tools)
  const known = { grants: before, uids: effectiveUids(before, old, tools) }
  const added = kind.checkedWhole ? after : newGrants({ grants: after, uids: uids.kept }, known)
  await checkGrants(check, added)
  return withTeamUids(source, isScoped(tools) ? uids.kept : await pinAgain(check, after, uids, known))
}

/** Built-in roles stay; with a scoped key one may delete only keys whose scope is no wider than one's own (D14). */
function release(kind: Kind, old: Resource, tools: Tools): void {
  if (tools.caller === systemCaller) return
  refuseBuiltInDeletion(kind, old)
  if (kind.grants?.(old).some(({ type }) => type === 'credential')) releaseKey(kind, old, tools)
}

const isScoped = (tools: Tools) => !tools.isWithinScope(undefined)

/** What a scoped key gave away would not be confined by its scope any more (D25). Creating an object of one's own is fine. */
function refuseScoped(
  kind: Kind,
  next: Resource,
  { before, after }: { readonly before: readonly Grant[]; readonly after: readonly Grant[] },
  tools: Tools,
): void {
  if (after.some(({ type }) => type === 'credential')) return
  const isNew = before.length === 0
  const lasting = (grants: readonly Grant[]) =>
    grants.filter(one => givesPower(one) && one.field !== 'metadata.name' && !(isNew && isCreatorsOwn(one, tools)))
  const isSame = JSON.stringify(lasting(before)) === JSON.stringify(lasting(after))
  if (isSame && !kind.checkedWhole) return
  throw forbidden(
    kind,
    next.metadata.name ?? '',
    `the scope of access key "${tools.caller.key}" does not allow changes of owner, access, members, roles or bindings; use a key without a scope`,
  )
}

/** Reading and copying are asked about by themselves, within the scope. */
const givesPower = ({ type }: Grant) => type !== 'read' && type !== 'copy'

type Uids = { readonly [team: string]: string }

const teamsIn = (grants: readonly Grant[]): Set<string> =>
  new Set(grants.flatMap(({ to }) => (to?.kind === 'team' ? [to.name] : [])))

/** The teams that the stored object means: what it kept, or the team that has the name by now. */
function effectiveUids(grants: readonly Grant[], old: Resource | undefined, tools: Tools): Uids {
  const kept = old ? teamUidsOf(old) : {}
  const found: { [team: string]: string } = {}
  for (const team of teamsIn(grants)) {
    const uid = Object.hasOwn(kept, team) ? kept[team] : tools.teamUid(team)
    if (uid !== undefined) found[team] = uid
  }
  return found
}

/** `kept`: which team each name means if nothing is pinned again. `stale`: names of teams that were created again since. */
function uidsFor(after: readonly Grant[], before: readonly Grant[], old: Resource | undefined, tools: Tools) {
  const known = effectiveUids(before, old, tools)
  const kept: { [team: string]: string } = {}
  const stale: { [team: string]: string } = {}
  for (const team of teamsIn(after)) {
    const now = tools.teamUid(team)
    const uid = known[team] ?? now
    if (uid !== undefined) kept[team] = uid
    if (now !== undefined && uid !== now) stale[team] = now
  }
  return { kept, stale }
}

/** Unchanged words mean the new team only if the caller may give that team what they say; otherwise the old pin stays (D61). */
async function pinAgain(
  check: Check,
  after: readonly Grant[],
  { kept, stale }: ReturnType<typeof uidsFor>,
  known: { readonly grants: readonly Grant[]; readonly uids: Uids },
): Promise<Uids> {
  let uids: Uids = kept
  for (const [team, uid] of Object.entries(stale)) {
    const tried = { ...uids, [team]: uid }
    try {
      if (!check.kind.checkedWhole) await checkGrants(check, newGrants({ grants: after, uids: tried }, known))
      uids = tried
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 403) throw error
    }
  }
  return uids
}
