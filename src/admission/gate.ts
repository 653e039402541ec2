// The permission gate: rejects a write that grants permissions its caller does not have (D60).
// Kinds declare the grants of an object. The gate compares the grants before and after the write, and checks the new
// ones.

import { type Caller, credentialOf, systemCaller } from '../api/caller.ts'
import { ApiError, forbidden } from '../api/errors.ts'
import type { Grant } from '../api/grant.ts'
import type { Kind } from '../api/kind.ts'
import type { Resource } from '../api/object.ts'
import type { RuleComparison } from '../api/permissions.ts'
import type { Gate, GatedWrite } from '../api/power-gate.ts'
import { clusterUidsOf, withClusterUids } from '../kinds/cluster-selection.ts'
import { teamOfGroup, teamUidsOf, withTeamUids } from '../kinds/team-uids.ts'
import { refuseBuiltInChange, refuseBuiltInDeletion } from './built-in-roles.ts'
import { checkCredential, checkKeyDelete } from './check-credential.ts'
import { type GrantCheck, type GrantDependencies, openGrantCheck } from './check-grants.ts'
import { type ClusterPins, checkDeliver, clusterUidsFor } from './cluster-grants.ts'
import { checkCopy, pinSource } from './copied-source.ts'
import { isOnlyForCollector } from './garbage-collection.ts'
import { isCreatorsOwn, newGrants } from './new-grants.ts'
import { type PullDependencies, pinPullSecrets } from './pull-secrets.ts'
import { keepReserved } from './reserved-metadata.ts'
import { type TeamNames, withTeamNames } from './team-usernames.ts'
import { type UnknownName, warnUnknownNames } from './unknown-names.ts'
import { checkUserPower, disabledUser } from './user-escalation.ts'

type WriteDependencies = GrantDependencies &
  Parameters<typeof checkCredential>[0] &
  Parameters<typeof pinSource>[0] &
  PullDependencies &
  ClusterPins &
  TeamNames

export type GateDependencies = Omit<WriteDependencies, 'compareRules'> & {
  /** Starts the comparison of rules in one write. */
  readonly startComparison: () => RuleComparison
}

export const openGate = (dependencies: GateDependencies): Gate => ({
  teamNamed: dependencies.teamNamed,
  withTeamNames: write => withTeamNames(dependencies, write),
  admit: write => admit({ ...dependencies, compareRules: dependencies.startComparison() }, write),
  checkDelete: (kind, old, caller) => checkDelete(dependencies, kind, old, caller),
})

async function admit(
  dependencies: WriteDependencies,
  { kind, next: sent, old, request }: GatedWrite,
): Promise<Resource> {
  const { caller } = request
  // Controllers and the first start act as the server, and keep pinned uids.
  if (caller === systemCaller) return sent
  const next = keepReserved(kind, sent, old)
  if (!kind.grants) return next
  refuseBuiltInChange(kind, next, old)
  const isScoped = !dependencies.isNoWider(undefined, caller.scope)
  if (kind.checkedWhole && old && !isScoped && isOnlyForCollector(next, old)) return next
  const source = pinSource(dependencies, kind, next, old)
  const [before, after] = [old ? kind.grants(old) : [], kind.grants(source)]
  if (isScoped) refuseScoped(kind, source, { isNew: old === undefined, before, after }, caller)
  const check: GatedWrite = { kind, next: source, old, request }
  if (after.some(({ type }) => type === 'credential')) return checkCredential(dependencies, check)
  const known = { grants: before, uids: effectiveUids(dependencies, before, old) }
  const uids = uidsFor(dependencies, after, known.uids)
  const added = kind.checkedWhole ? after : await newGrants({ grants: after, uids: uids.kept }, known)
  const checkGrants = openGrantCheck(dependencies, check)
  await checkGrants(added)
  const { object: pinned, unknown } = pinPullSecrets(dependencies, check, isScoped)
  warnUnknownNames(dependencies, check, [...unknownTeams(dependencies, after, before), ...unknown])
  if (isScoped) return withTeamUids(pinned, uids.kept)
  if (kind.checkedWhole) return withTeamUids(pinned, { ...uids.kept, ...uids.stale })
  const checkCopies = (teams: Uids, copies: readonly Copy[]) => {
    const repinned = { ...check, next: withTeamUids(source, teams) }
    for (const copy of copies)
      if (copy.type === 'copy') checkCopy(dependencies, repinned, copy)
      else checkDeliver(dependencies, repinned, copy, true)
  }
  const clusters = await clusterUidsFor(
    dependencies,
    { after, stored: old ? clusterUidsOf(old) : {} },
    passes(checkGrants),
  )
  return withClusterUids(
    withTeamUids(pinned, await pinAgain({ checkGrants, checkCopies }, { after, uids, known })),
    clusters,
  )
}

/**
 * Nobody can delete built-in roles. A scoped key may delete only keys whose scope is at most as wide as its own (D14).
 * The person of a deleted User can sign in again, so the deletion of a disabled one is like enabling it (D63).
 */
function checkDelete(
  dependencies: GateDependencies,
  kind: Kind,
  old: Resource,
  caller: Caller,
): Promise<void> | undefined {
  if (caller === systemCaller) return undefined
  refuseBuiltInDeletion(kind, old)
  const grants = kind.grants?.(old) ?? []
  if (grants.some(({ type }) => type === 'credential')) checkKeyDelete(dependencies, kind, old, caller)
  const username = disabledUser(grants)
  if (username === undefined) return undefined
  if (!dependencies.isNoWider(undefined, caller.scope))
    throw forbidden(
      kind,
      old.metadata.name ?? '',
      `the scope of ${credentialOf(caller)} does not allow deleting disabled users; use a credential without a scope`,
    )
  const request = { caller, dryRun: false, warn: () => {}, written: [] }
  const compareRules = dependencies.startComparison()
  return checkUserPower({ ...dependencies, compareRules }, { kind, next: old, old, request }, username)
}

/** Whether the caller may grant these. */
const passes = (checkGrants: GrantCheck) => async (grants: readonly Grant[]) => {
  try {
    await checkGrants(grants)
    return true
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 403) throw error
    return false
  }
}

type Teams = Pick<GateDependencies, 'teamUid'>

type Change = { readonly isNew: boolean; readonly before: readonly Grant[]; readonly after: readonly Grant[] }

/** The scope of a key does not limit the permissions it grants to others (D25). Creating an own object is fine. */
function refuseScoped(kind: Kind, next: Resource, { isNew, before, after }: Change, caller: Caller): void {
  if (after.some(({ type }) => type === 'credential')) return
  const lasting = (grants: readonly Grant[]) =>
    grants.filter(one => givesPower(one) && one.field !== 'metadata.name' && !(isNew && isCreatorsOwn(one, caller)))
  const isSame = JSON.stringify(lasting(before)) === JSON.stringify(lasting(after))
  if (isSame && !kind.checkedWhole) return
  throw forbidden(
    kind,
    next.metadata.name ?? '',
    `the scope of ${credentialOf(caller)} does not allow changes of owner, access, members, roles or bindings; use a credential without a scope`,
  )
}

/** Copying is checked separately, within the scope. */
const givesPower = ({ type }: Grant) => type !== 'copy'

type Uids = { readonly [team: string]: string }

function teamsIn(grants: readonly Grant[]): Set<string> {
  const names = new Set<string>()
  for (const { to } of grants) if (to?.kind === 'team') names.add(to.name)
  return names
}

function unknownTeams({ teamUid }: Teams, grants: readonly Grant[], before: readonly Grant[]): UnknownName[] {
  const fields = new Map<string, string>()
  for (const { field, to } of grants) if (to?.kind === 'team' && !fields.has(to.name)) fields.set(to.name, field)
  const unknown = [...fields].filter(([name]) => teamUid(name) === undefined)
  if (unknown.length === 0) return []
  const stored = teamsIn(before)
  return unknown.map(([name, field]) => ({ field, what: 'team', name, isStored: stored.has(name) }))
}

/** The teams that the stored object refers to: the pinned ones, or else the current teams with these names. */
function effectiveUids({ teamUid }: Teams, grants: readonly Grant[], old: Resource | undefined): Uids {
  const kept = old ? teamUidsOf(old) : {}
  const found: { [team: string]: string } = {}
  for (const team of teamsIn(grants)) {
    const uid = Object.hasOwn(kept, team) ? kept[team] : teamUid(team)
    if (uid !== undefined) found[team] = uid
  }
  return found
}

/** `kept`: the team of each name without a new pin. `stale`: names of teams that were created again since. */
function uidsFor({ teamUid }: Teams, after: readonly Grant[], known: Uids) {
  const kept: { [team: string]: string } = {}
  const stale: { [team: string]: string } = {}
  for (const team of teamsIn(after)) {
    const now = teamUid(team)
    const uid = Object.hasOwn(known, team) ? known[team] : now
    if (uid !== undefined) kept[team] = uid
    if (now !== undefined && uid !== now) stale[team] = now
  }
  return { kept, stale }
}

type Repin = {
  readonly after: readonly Grant[]
  readonly uids: ReturnType<typeof uidsFor>
  readonly known: { readonly grants: readonly Grant[]; readonly uids: Uids }
}

type Copy = Extract<Grant, { type: 'copy' | 'deliver' }>
type RepinChecks = {
  readonly checkGrants: GrantCheck
  /** Checks that the owner with these pins may read the sources. */
  readonly checkCopies: (pinned: Uids, copies: readonly Copy[]) => void
}

/** By team. The server copies and delivers data with the permissions of the owner. */
const copiesByTeam = (grants: readonly Grant[]) =>
  Map.groupBy(
    grants.filter((grant): grant is Copy => grant.type === 'copy' || grant.type === 'deliver'),
    ({ owner }) => (owner.user ? teamOfGroup(owner.user) : owner.team),
  )

/**
 * An unchanged name refers to the new team only if the caller may grant the permissions to it. Otherwise the old pin
 * stays (D61).
 */
async function pinAgain(
  { checkGrants, checkCopies }: RepinChecks,
  { after, uids: { kept, stale }, known }: Repin,
): Promise<Uids> {
  if (Object.keys(stale).length === 0) return kept
  const uids = { ...kept }
  const toStale = after.filter(({ to }) => to?.kind === 'team' && Object.hasOwn(stale, to.name))
  const added = await newGrants({ grants: toStale, uids: stale }, known)
  const byTeam = Map.groupBy(added, ({ to }) => to?.name)
  const copies = copiesByTeam(after)
  for (const [team, uid] of Object.entries(stale)) {
    try {
      await checkGrants(byTeam.get(team) ?? [])
      const copied = copies.get(team)
      if (copied) checkCopies({ ...uids, [team]: uid }, copied)
      uids[team] = uid
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 403) throw error
    }
  }
  return uids
}
