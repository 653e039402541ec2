// Checks that the caller has the permissions that a write grants (D27, D60).
// Throws 403 with the missing ones.

import { maxErrors } from '../api/errors.ts'
import type { Grant } from '../api/grant.ts'
import type { Kind, Question } from '../api/kind.ts'
import type { Ref, Resource } from '../api/object.ts'
import type { RuleLike, VerbCheck } from '../api/permissions.ts'
import type { GatedWrite } from '../api/power-gate.ts'
import { pause } from '../api/time-slices.ts'
import { type ClusterDependencies, checkCluster, checkClusterRole, checkDeliver } from './cluster-grants.ts'
import { type CopyDependencies, checkCopy } from './copied-source.ts'
import { type PermissionDependencies, refusal, refuseMissing, roleTarget, shown } from './missing-permissions.ts'
import { isCreatorsOwn } from './new-grants.ts'
import { checkTeamPower } from './team-escalation.ts'
import { checkUserPower, type UserDependencies } from './user-escalation.ts'

export type GrantDependencies = PermissionDependencies &
  UserDependencies &
  CopyDependencies &
  ClusterDependencies & {
    /** The rules of a role; undefined if it does not exist. */
    readonly rulesOfRole: (kind: 'Role' | 'ClusterRole', ref: Ref) => readonly RuleLike[] | undefined
  }

/** Checks new grants of one write. */
export type GrantCheck = (added: readonly Grant[]) => Promise<void>

/** The checks of one write share the permissions that the caller has on the object. */
export function openGrantCheck(dependencies: GrantDependencies, check: GatedWrite): GrantCheck {
  const { kind, next, request } = check
  let may: VerbCheck | undefined
  return async added => {
    // Most writes grant nothing new.
    if (added.length === 0) return
    may ??= remembered(dependencies.verbCheck(request.caller, targetOf(kind, next)))
    await checkGrants(dependencies, check, may, added)
  }
}

/** Many recipients get the same verbs. */
function remembered(check: VerbCheck): VerbCheck {
  const known = new Map<string, Map<string, boolean>>()
  return (verb, subresource) => {
    const key = subresource ?? ''
    const verbs = known.get(key) ?? new Map<string, boolean>()
    known.set(key, verbs)
    const result = verbs.get(verb) ?? check(verb, subresource)
    verbs.set(verb, result)
    return result
  }
}

/** How many grants are checked between two looks at the clock. */
const pieceOf = 64

async function checkGrants(
  dependencies: GrantDependencies,
  check: GatedWrite,
  may: VerbCheck,
  added: readonly Grant[],
): Promise<void> {
  const { caller } = check.request
  const isOwn = !check.old && added.some(grant => isCreatorsOwn(grant, caller))
  const missing = new Set<string>()
  const rulesSeen = new Set<string>()
  let isTeamChecked = false
  let isUserChecked = false
  let count = 0
  for (const grant of added)
    switch (grant.type) {
      case 'rules':
        await checkRules(dependencies, check, grant)
        break
      case 'role': {
        const role = JSON.stringify([grant.role, grant.namespace])
        if (!rulesSeen.has(role)) await checkRole(dependencies, check, grant)
        rulesSeen.add(role)
        break
      }
      case 'owner':
        if (!isOwn || !isCreatorsOwn(grant, caller)) checkOwner(dependencies, check, may, grant)
        break
      case 'object':
        // The creator owns the object and has every verb on it.
        if (isOwn || missing.size > maxErrors) break
        if (++count % pieceOf === 0) await pause()
        for (const one of missingVerbs(may, grant)) missing.add(one)
        break
      case 'team':
        if (!isTeamChecked) await checkTeamPower(dependencies, check, grant.team)
        isTeamChecked = true
        break
      case 'user':
        if (!isUserChecked) await checkUserPower(dependencies, check, grant.user)
        isUserChecked = true
        break
      case 'read':
        checkRead(dependencies, check, grant)
        break
      case 'copy':
        checkCopy(dependencies, check, grant)
        break
      case 'deliver':
        checkDeliver(dependencies, check, grant, isOwn || may('get'))
        break
      case 'clusterRole':
        checkClusterRole(dependencies, check, grant)
        break
      case 'cluster':
        await checkCluster(dependencies, check, grant)
        break
    }
  if (missing.size)
    throw refusal(
      check,
      `spec.access can only grant verbs that its author has on the object; missing: ${shown([...missing]).join(', ')}`,
    )
}

type Authorize = Pick<GrantDependencies, 'authorize'>

type Of<T extends Grant['type']> = Extract<Grant, { readonly type: T }>

const targetOf = (kind: Kind, { metadata: { namespace = '', name = '' } }: Resource) => ({
  group: kind.group,
  resource: kind.plural,
  namespace,
  name,
})

const everything: readonly RuleLike[] = [
  { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
  { verbs: ['*'], nonResourceURLs: ['*'] },
]

/** The verbs `escalate` and `bind` work only with a key that has no scope. */
const isExempt = (
  { isNoWider, authorize }: Pick<GrantDependencies, 'isNoWider' | 'authorize'>,
  { request: { caller } }: GatedWrite,
  question: Question,
): boolean => isNoWider(undefined, caller.scope) && authorize(caller, question).allowed

/**
 * A role can contain only rules that its author has, unless they may `escalate` it. An aggregated role may get any
 * rule.
 */
async function checkRules(
  dependencies: GrantDependencies,
  check: GatedWrite,
  { rules, aggregates }: Of<'rules'>,
): Promise<void> {
  const { kind, next, old } = check
  if (isExempt(dependencies, check, { verb: 'escalate', target: targetOf(kind, next) })) return
  const aggregated = aggregates || (old && kind.grants?.(old).some(one => one.type === 'rules' && one.aggregates))
  // The request contains all rules of a new role. A change merges with rules that its author may not be able to read.
  const source = old && targetOf(kind, next)
  await refuseMissing(dependencies, check, {
    rules: aggregated ? everything : rules,
    namespace: next.metadata.namespace ?? '',
    source,
  })
}

/** Binding a role grants its rules. The caller needs these rules, or the verb `bind` on the role. */
async function checkRole(
  dependencies: GrantDependencies,
  check: GatedWrite,
  { role, namespace }: Of<'role'>,
): Promise<void> {
  const { kind, ...ref } = role
  const target = roleTarget(role)
  if (isExempt(dependencies, check, { verb: 'bind', target })) return
  // A role that does not exist yet may get any rule.
  const rules = dependencies.rulesOfRole(kind, ref) ?? everything
  await refuseMissing(dependencies, check, { rules, namespace, source: target })
}

/**
 * Setting an owner requires the permissions of an owner: every verb on the object and its subresources. For a team it
 * also requires permission to update the team (D23).
 */
function checkOwner({ authorize }: Authorize, check: GatedWrite, may: VerbCheck, { to }: Of<'owner'>): void {
  if (!may('*') || !may('*', '*'))
    throw refusal(check, 'setting spec.owner requires every verb on the object and its subresources')
  if (to?.kind !== 'team') return
  const target = { group: 'management.platform.sh', resource: 'teams', namespace: '', name: to.name }
  if (!authorize(check.request.caller, { verb: 'update', target }).allowed)
    throw refusal(check, `making team "${to.name}" the owner requires permission to update the team`)
}

function missingVerbs(may: VerbCheck, { verbs, subresources }: Of<'object'>): string[] {
  const missing: string[] = []
  for (const verb of verbs)
    for (const subresource of [undefined, ...subresources])
      if (!may(verb, subresource || undefined)) missing.push(subresource ? `${verb} ${subresource}` : verb)
  return missing
}

function checkRead({ authorize }: Authorize, check: GatedWrite, { target, field }: Of<'read'>): void {
  if (authorize(check.request.caller, { verb: 'get', target }).allowed) return
  const { resource, name, namespace } = target
  throw refusal(check, `${field} requires permission to get ${resource} "${name}" in the namespace "${namespace}"`)
}
