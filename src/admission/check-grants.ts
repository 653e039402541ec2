// Whether the caller holds what a write gives away, grant by grant (D27, D60). Throws 403 and names what is missing.

import { isEnough } from '../api/errors.ts'
import type { Grant } from '../api/grant.ts'
import type { Kind, Question } from '../api/kind.ts'
import type { Resource } from '../api/object.ts'
import type { RuleLike } from '../api/permissions.ts'
import type { GatedWrite } from '../api/power-gate.ts'
import { checkCopy } from './copied-source.ts'
import { refusal, refuseMissing, roleTarget, shown } from './missing-permissions.ts'
import { isCreatorsOwn } from './new-grants.ts'
import { checkTeamPower } from './team-escalation.ts'

export type Check = GatedWrite

export async function checkGrants(check: Check, added: readonly Grant[]): Promise<void> {
  const isOwn = !check.old && check.kind.grants?.(check.next).some(grant => isCreatorsOwn(grant, check.tools))
  const lacking = new Set<string>()
  const rulesSeen = new Set<string>()
  let isTeamChecked = false
  for (const grant of added)
    switch (grant.type) {
      case 'rules':
        await checkRules(check, grant)
        break
      case 'role': {
        const role = JSON.stringify([grant.role, grant.namespace])
        if (!rulesSeen.has(role)) await checkRole(check, grant)
        rulesSeen.add(role)
        break
      }
      case 'owner':
        if (!isOwn || !isCreatorsOwn(grant, check.tools)) await checkOwner(check, grant)
        break
      case 'object':
        // The creator of an object owns it, and has every verb on it.
        if (!isOwn && !isEnough([...lacking])) for (const one of await missingVerbs(check, grant)) lacking.add(one)
        break
      case 'team':
        if (!isTeamChecked) await checkTeamPower(check, grant.team)
        isTeamChecked = true
        break
      case 'read':
        await checkRead(check, grant)
        break
      case 'copy':
        await checkCopy(check, grant)
        break
    }
  if (lacking.size)
    throw refusal(
      check,
      `access may give only what its author has on the object; missing: ${shown([...lacking]).join(', ')}`,
    )
}

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

/** The verbs `escalate` and `bind` count only for a key without a scope. */
async function mayAnyway({ tools }: Check, question: Question): Promise<boolean> {
  return tools.isWithinScope(undefined) && (await tools.judge(question)).allowed
}

/** A role holds only what its author holds, unless they may `escalate` it. A role that aggregates may come to hold anything. */
async function checkRules(check: Check, { rules, aggregates }: Of<'rules'>): Promise<void> {
  const { kind, next, old } = check
  if (await mayAnyway(check, { verb: 'escalate', target: targetOf(kind, next) })) return
  const aggregated = aggregates || (old && kind.grants?.(old).some(one => one.type === 'rules' && one.aggregates))
  // A new role was sent whole. A change of one merges with rules that its author may not have read.
  const source = old && targetOf(kind, next)
  await refuseMissing(check, {
    rules: aggregated ? everything : rules,
    namespace: next.metadata.namespace ?? '',
    source,
  })
}

/** Giving a role gives its rules: they must be held, or the verb `bind` on the role. */
async function checkRole(check: Check, { role, namespace }: Of<'role'>): Promise<void> {
  const { kind, ...ref } = role
  const target = roleTarget(role)
  if (await mayAnyway(check, { verb: 'bind', target })) return
  // A role that is not there yet may become anything.
  const rules = check.tools.rulesOfRole(kind, ref) ?? everything
  await refuseMissing(check, { rules, namespace, source: target })
}

/**
 * Setting an owner needs what the owner has: every verb on the object and its subresources. For a team it also needs
 * permission to update that team (D23).
 */
async function checkOwner(check: Check, { to }: Of<'owner'>): Promise<void> {
  const { kind, next, tools } = check
  for (const subresource of [{}, { subresource: '*' }])
    if (!(await tools.judge({ verb: '*', target: { ...targetOf(kind, next), ...subresource } })).allowed)
      throw refusal(check, 'setting spec.owner needs every verb on the object and its subresources')
  if (to?.kind !== 'team') return
  const target = { group: 'management.platform.sh', resource: 'teams', namespace: '', name: to.name }
  if (!(await tools.judge({ verb: 'update', target })).allowed)
    throw refusal(check, `making team "${to.name}" the owner needs permission to update that team`)
}

async function missingVerbs({ kind, next, tools }: Check, { verbs, subresources }: Of<'object'>): Promise<string[]> {
  const target = targetOf(kind, next)
  const lacking: string[] = []
  for (const verb of verbs)
    for (const subresource of [undefined, ...subresources]) {
      const asked = { verb, target: subresource ? { ...target, subresource } : target }
      if (!(await tools.judge(asked)).allowed) lacking.push(subresource ? `${verb} ${subresource}` : verb)
    }
  return lacking
}

async function checkRead(check: Check, { target, field }: Of<'read'>): Promise<void> {
  if ((await check.tools.judge({ verb: 'get', target })).allowed) return
  const { resource, name, namespace } = target
  throw refusal(check, `${field} needs permission to get ${resource} "${name}" in the namespace "${namespace}"`)
}
