// Whether the caller holds what a write gives away, grant by grant (D27, D60). Throws 403 and names what is missing.

import { isEnough } from '../api/errors.ts'
import type { Grant } from '../api/grant.ts'
import type { Kind, Question } from '../api/kind.ts'
import type { Ref, Resource } from '../api/object.ts'
import type { RuleLike } from '../api/permissions.ts'
import type { GatedWrite } from '../api/power-gate.ts'
import { type CopyDependencies, checkCopy } from './copied-source.ts'
import { type PermissionDependencies, refusal, refuseMissing, roleTarget, shown } from './missing-permissions.ts'
import { isCreatorsOwn } from './new-grants.ts'
import { checkTeamPower, type TeamDependencies } from './team-escalation.ts'

export type GrantDependencies = PermissionDependencies &
  TeamDependencies &
  CopyDependencies & {
    /** The rules of a role; undefined: no such role. */
    readonly rulesOfRole: (kind: 'Role' | 'ClusterRole', ref: Ref) => readonly RuleLike[] | undefined
  }

export async function checkGrants(
  dependencies: GrantDependencies,
  check: GatedWrite,
  added: readonly Grant[],
): Promise<void> {
  const { caller } = check.request
  const isOwn = !check.old && check.kind.grants?.(check.next).some(grant => isCreatorsOwn(grant, caller))
  const lacking = new Set<string>()
  const rulesSeen = new Set<string>()
  let isTeamChecked = false
  for (const grant of added)
    switch (grant.type) {
      case 'rules':
        checkRules(dependencies, check, grant)
        break
      case 'role': {
        const role = JSON.stringify([grant.role, grant.namespace])
        if (!rulesSeen.has(role)) checkRole(dependencies, check, grant)
        rulesSeen.add(role)
        break
      }
      case 'owner':
        if (!isOwn || !isCreatorsOwn(grant, caller)) checkOwner(dependencies, check, grant)
        break
      case 'object':
        // The creator of an object owns it, and has every verb on it.
        if (!isOwn && !isEnough([...lacking]))
          for (const one of missingVerbs(dependencies, check, grant)) lacking.add(one)
        break
      case 'team':
        if (!isTeamChecked) await checkTeamPower(dependencies, check, grant.team)
        isTeamChecked = true
        break
      case 'read':
        checkRead(dependencies, check, grant)
        break
      case 'copy':
        checkCopy(dependencies, check, grant)
        break
    }
  if (lacking.size)
    throw refusal(
      check,
      `access may give only what its author has on the object; missing: ${shown([...lacking]).join(', ')}`,
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
const mayAnyway = (
  { isNoWider, authorize }: Pick<GrantDependencies, 'isNoWider' | 'authorize'>,
  { request: { caller } }: GatedWrite,
  question: Question,
): boolean => isNoWider(undefined, caller.scope) && authorize(caller, question).allowed

/** A role holds only what its author holds, unless they may `escalate` it. A role that aggregates may later hold anything. */
function checkRules(dependencies: GrantDependencies, check: GatedWrite, { rules, aggregates }: Of<'rules'>): void {
  const { kind, next, old } = check
  if (mayAnyway(dependencies, check, { verb: 'escalate', target: targetOf(kind, next) })) return
  const aggregated = aggregates || (old && kind.grants?.(old).some(one => one.type === 'rules' && one.aggregates))
  // The author sent all rules of a new role. A change merges with rules that its author may not have read.
  const source = old && targetOf(kind, next)
  refuseMissing(dependencies, check, {
    rules: aggregated ? everything : rules,
    namespace: next.metadata.namespace ?? '',
    source,
  })
}

/** Granting a role grants its rules. The caller must hold them, or the verb `bind` on the role. */
function checkRole(dependencies: GrantDependencies, check: GatedWrite, { role, namespace }: Of<'role'>): void {
  const { kind, ...ref } = role
  const target = roleTarget(role)
  if (mayAnyway(dependencies, check, { verb: 'bind', target })) return
  // A role that does not exist yet may become anything.
  const rules = dependencies.rulesOfRole(kind, ref) ?? everything
  refuseMissing(dependencies, check, { rules, namespace, source: target })
}

/**
 * Setting an owner needs what the owner has: every verb on the object and its subresources. For a team it also needs
 * permission to update that team (D23).
 */
function checkOwner({ authorize }: Authorize, check: GatedWrite, { to }: Of<'owner'>): void {
  const { kind, next, request } = check
  for (const subresource of [{}, { subresource: '*' }])
    if (!authorize(request.caller, { verb: '*', target: { ...targetOf(kind, next), ...subresource } }).allowed)
      throw refusal(check, 'setting spec.owner needs every verb on the object and its subresources')
  if (to?.kind !== 'team') return
  const target = { group: 'management.platform.sh', resource: 'teams', namespace: '', name: to.name }
  if (!authorize(request.caller, { verb: 'update', target }).allowed)
    throw refusal(check, `making team "${to.name}" the owner needs permission to update that team`)
}

function missingVerbs(
  { authorize }: Authorize,
  { kind, next, request }: GatedWrite,
  { verbs, subresources }: Of<'object'>,
): string[] {
  const target = targetOf(kind, next)
  const lacking: string[] = []
  for (const verb of verbs)
    for (const subresource of [undefined, ...subresources]) {
      const asked = { verb, target: subresource ? { ...target, subresource } : target }
      if (!authorize(request.caller, asked).allowed) lacking.push(subresource ? `${verb} ${subresource}` : verb)
    }
  return lacking
}

function checkRead({ authorize }: Authorize, check: GatedWrite, { target, field }: Of<'read'>): void {
  if (authorize(check.request.caller, { verb: 'get', target }).allowed) return
  const { resource, name, namespace } = target
  throw refusal(check, `${field} needs permission to get ${resource} "${name}" in the namespace "${namespace}"`)
}
