// May you: yes, no, or only some. Scope of the key first, then the rights of its owner, by roles and by the object itself
// (D25–D27). Requests, reviews, rules of kinds and explanations all ask this one evaluator.

import type { Caller } from '../api/caller.ts'
import type { Judgement, Kind, Question, RuleLike, Rules } from '../api/kind.ts'
import type { Ref, Resource } from '../api/object.ts'
import type { Filter } from '../api/resources.ts'
import type { Rbac } from './rbac.ts'
import { objectRight } from './rights.ts'
import type { PolicyRule } from './rules.ts'
import { missingRules, printRule } from './rules.ts'
import { type Act, allows, restricts } from './scope.ts'

export type Verdict =
  | { readonly answer: 'yes' }
  | { readonly answer: 'no'; readonly reason: string }
  | { readonly answer: 'only'; readonly filter: Filter }

export interface Authorizer {
  /** The request path's question. */
  authorize(caller: Caller | undefined, question: Question): Verdict
  /** The same question for reviews and rules of kinds; `object` where it is at hand already. */
  judge(caller: Caller | undefined, question: Question, object?: Resource): Judgement
  rules(caller: Caller, namespace: string): Rules
  /** Which parts of these rules the caller does not hold itself, and so may not give away. */
  missing(caller: Caller, wanted: readonly RuleLike[], namespace: string): readonly string[]
}

export type AuthorizerOptions = {
  readonly kinds: readonly Kind[]
  readonly rbac: Rbac
  /** A stored object as it lies there, without opening what is sealed. */
  readonly peek: (kind: Kind, ref: Ref) => Resource | undefined
}

const anonymous = { username: 'system:anonymous', groups: ['system:unauthenticated'] }
const no = (reason = ''): Judgement => ({ allowed: false, reason })
const yes = (reason: string): Judgement => ({ allowed: true, reason })

export function openAuthorizer({ kinds, rbac, peek }: AuthorizerOptions): Authorizer {
  const byPlural = Map.groupBy(kinds, kind => kind.plural)
  const kindOf = (group: string, plural: string) => byPlural.get(plural)?.find(kind => kind.group === group)

  /** By role, or where the kind is a personal one, by a role that is all of it (D15). */
  const byRole = (caller: Caller, act: Act, kind: Kind | undefined): Judgement | undefined => {
    const isNew = act.verb === 'create' && !('path' in act) && act.subresource === undefined
    const asked = kind?.personal && !isNew ? { ...act, verb: '*' } : act
    const found = rbac.find(caller, asked)
    return found && yes(`allowed by ${found.grant.binding} of ${found.grant.role} to ${found.grant.subject}`)
  }

  const byObject = (caller: Caller, act: Act, kind: Kind | undefined, object?: Resource): Judgement | undefined => {
    if ('path' in act || act.name === undefined || !kind?.stored || !kind.rights) return undefined
    const there = object ?? peek(kind, { namespace: act.namespace, name: act.name })
    const right =
      there === undefined
        ? undefined
        : objectRight(kind, there, caller, act, question => judge(caller, question).allowed)
    return right === undefined ? undefined : yes(right)
  }

  const judge = (caller: Caller | undefined, question: Question, object?: Resource): Judgement => {
    const act = actOf(question)
    if ('path' in act && rbac.find(anonymous, act)) return yes('open to everyone')
    if (!caller) return no()
    if (!allows(caller.scope, { target: 'Management', act }))
      return no(`the scope of access key "${caller.key}" does not cover it`)
    if (caller.groups.includes('system:masters')) return yes('the server itself')
    const kind = 'path' in act ? undefined : kindOf(act.group, act.resource)
    return (
      byRole(caller, act, kind) ??
      byObject(caller, act, kind, object) ??
      no(isFiltered(question, kind) ? 'filtered' : '')
    )
  }

  /** What may be seen of a collection that may not be listed whole: the objects that may be got (D27). */
  const filterFor = (
    caller: Caller,
    { group, resource }: { readonly group: string; readonly resource: string },
  ): Filter => {
    return object => {
      const { namespace = '', name = '' } = object.metadata
      return judge(caller, { verb: 'get', target: { group, resource, namespace, name } }, object).allowed
    }
  }

  return {
    judge,
    authorize(caller, question) {
      const { allowed, reason } = judge(caller, question)
      if (allowed) return { answer: 'yes' }
      const target = 'target' in question ? question.target : undefined
      if (caller && target && isFiltered(question, kindOf(target.group, target.resource)))
        return { answer: 'only', filter: filterFor(caller, target) }
      return { answer: 'no', reason }
    },
    rules(caller, namespace) {
      const held = [...rbac.grants(caller, namespace)].flatMap(grant => grant.rules)
      return {
        resourceRules: held.filter(rule => rule.resources?.length) as Rules['resourceRules'],
        nonResourceRules: held.filter(rule => rule.nonResourceURLs?.length) as Rules['nonResourceRules'],
      }
    },
    missing(caller, wanted, namespace) {
      if (caller.groups.includes('system:masters')) return []
      // What a scoped key gave away would not be confined by its scope any more.
      if (restricts(caller.scope)) return wanted.map(rule => printRule(rule as PolicyRule))
      return missingRules(
        [...rbac.grants(caller, namespace)].flatMap(grant => grant.rules),
        wanted as readonly PolicyRule[],
      ).map(printRule)
    },
  }
}

/** Collections that show what may be got of them, where they may not be read whole. */
function isFiltered(question: Question, kind: Kind | undefined): boolean {
  return (
    (question.verb === 'list' || question.verb === 'watch') &&
    kind?.stored === true &&
    'target' in question &&
    !question.target.subresource
  )
}

export function actOf(question: Question): Act {
  return 'path' in question ? question : { verb: question.verb, ...question.target }
}
