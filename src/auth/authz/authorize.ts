// The authorizer: yes, no, or only some objects. It checks the scope of the key, then the roles of its owner, then the object itself (D25–D27).
// Requests, reviews, admission and explanations use this one evaluator.

import { type Caller, credentialOf, type Scope } from '../../api/caller.ts'
import type { Candidates } from '../../api/candidates.ts'
import { maxErrors } from '../../api/errors.ts'
import type { Kind, Question } from '../../api/kind.ts'
import type { Ref, Resource } from '../../api/object.ts'
import type { ComparedRules, Decision, RuleComparison, Rules, Target, VerbCheck } from '../../api/permissions.ts'
import type { Filter } from '../../api/resources.ts'
import { isOwnCluster } from './agent-scope.ts'
import { maxPermissions, missingRules } from './missing-rules.ts'
import { indexRights, objectRight, type PulledSecrets, rightsOn } from './object-permissions.ts'
import type { Rbac } from './rbac.ts'
import type { PolicyRule } from './rbac-rules.ts'
import { printRule } from './rbac-rules.ts'
import { allows, allowsMetadata, coversPart, restricts } from './scope.ts'
import { withinScope, wordsIn } from './scope-permissions.ts'
import type { Act } from './scope-rules.ts'
import { openVisible } from './visible-objects.ts'

export type Verdict =
  | {
      readonly answer: 'yes'
      readonly reason: string /** The object that grants it; absent: a role does. */
      readonly object?: Resource
    }
  | { readonly answer: 'no'; readonly reason: string; readonly byScope?: true; readonly allowsMetadata?: true }
  | {
      readonly answer: 'only'
      readonly reason: string
      readonly filter: Filter
      /** The objects that the filter can keep now; undefined: any. */
      readonly among: () => Candidates | undefined
    }

export interface Authorizer {
  /** For requests. */
  authorize(caller: Caller | undefined, question: Question): Verdict
  /** The same for reviews and rules of kinds. `object`: set if it is loaded already. */
  decide(caller: Caller | undefined, question: Question, object?: Resource | (() => Resource)): Decision
  rules(caller: Caller, namespace: string): Rules
  /** The same question about many verbs on one object. The rights of the object are evaluated once. */
  verbCheck(caller: Caller, target: Target): VerbCheck
  /** Finds rules that a caller does not have, and so may not grant. All comparisons of one write share a limit. */
  startComparison(): RuleComparison
}

export type AuthorizerOptions = {
  readonly kinds: readonly Kind[]
  readonly rbac: Rbac
  /** A stored object without decryption. */
  readonly peek: (kind: Kind, ref: Ref) => Resource | undefined
  /** The same, for the objects among some candidates. */
  readonly among: (kind: Kind, candidates: Candidates) => readonly Resource[]
  /** The uid of a team that exists. */
  readonly teamUid: (team: string) => string | undefined
  readonly pulled: PulledSecrets
}

const anonymous = { username: 'system:anonymous', groups: ['system:unauthenticated'] }
const no = (reason = ''): Decision => ({ allowed: false, reason })
const yes = (reason: string): Decision => ({ allowed: true, reason })

export function openAuthorizer({ kinds, rbac, peek, among, teamUid, pulled }: AuthorizerOptions): Authorizer {
  const byPlural = new Map<string, Map<string, Kind>>()
  for (const kind of kinds) byPlural.set(kind.plural, (byPlural.get(kind.plural) ?? new Map()).set(kind.group, kind))
  const kindOf = (question: Question) =>
    'path' in question ? undefined : byPlural.get(question.target.resource)?.get(question.target.group)

  /** By role. For a personal kind, only by a role that allows everything on it (D15). */
  const byRole = (caller: Caller, question: Question, kind: Kind | undefined): string | undefined =>
    rbac.find(caller, question, kind?.ownerOnly && !isNew(question) ? '*' : question.verb)?.because

  const objectOf = (question: Question, kind: Kind | undefined): Resource | undefined => {
    if ('path' in question || !kind?.stored || !kind.rights) return undefined
    const { namespace, name } = question.target
    return name === undefined ? undefined : peek(kind, { namespace, name })
  }

  const byObject = (
    caller: Caller,
    question: Question,
    kind: Kind | undefined,
    object?: Resource | (() => Resource),
  ) => {
    if ('path' in question || !kind?.stored || !kind.rights) return undefined
    // A create has no object yet.
    if (isNew(question) || !isOneObject(question, kind)) return undefined
    const there = typeof object === 'function' ? object() : (object ?? objectOf(question, kind))
    if (!there) return undefined
    return objectRight(kind, there, caller, question, asking(caller))
  }

  const asking = (caller: Caller) => ({ may: (asked: Question) => decide(caller, asked).allowed, teamUid, pulled })

  /** The result that does not depend on the object: scope, roles and caller. undefined: the object may still allow it. */
  const decideWithoutObject = (caller: Caller | undefined, question: Question, kind: Kind | undefined) => {
    if ('path' in question && rbac.find(anonymous, question)) return yes('open to everyone')
    if (!caller) return no()
    if (
      caller.scope &&
      !allows(caller.scope, { target: 'Management', act: actOf(question) }) &&
      !isOwnCluster(caller, question)
    )
      return scopeDenial(caller.scope, credentialOf(caller), question)
    if (caller.groups.includes('system:masters')) return yes('the server itself')
    const reason = byRole(caller, question, kind)
    return reason === undefined ? undefined : yes(reason)
  }

  const decide: Authorizer['decide'] = (caller, question, object) => {
    const kind = kindOf(question)
    const decision = decideWithoutObject(caller, question, kind)
    if (decision) return decision
    const right = byObject(caller as Caller, question, kind, object)
    return right === undefined ? no(isFiltered(question, kind) ? 'filtered' : '') : yes(right)
  }

  /** The visible part of a collection that the caller may not list as a whole: objects that the caller may get, list or watch (D27). */
  const filterFor = (caller: Caller, { verb, target: { group, resource }, metadataOnly }: ResourceQuestion): Filter => {
    const view = metadataOnly ? { metadataOnly } : {}
    return object => {
      const { namespace = '', name = '' } = object.metadata
      const target = { group, resource, namespace, name }
      return (
        decide(caller, { verb: 'get', target, ...view }, object).allowed ||
        decide(caller, { verb, target, ...view }, object).allowed
      )
    }
  }

  /** Objects that are about an object that the caller owns and may get (D70). An object of the same name is another one. */
  const ownedFilter =
    (caller: Caller, about: NonNullable<Kind['about']>): Filter =>
    object => {
      const found = about(object)
      const kind = found && byPlural.get(found.resource)?.get(found.group)
      if (!found || !kind?.stored || !kind.rights) return false
      const there = peek(kind, { namespace: found.namespace, name: found.name })
      if (!there || there.metadata.uid !== found.uid) return false
      if (!rightsOn(kind, there, caller, asking(caller)).some(({ isOwner }) => isOwner)) return false
      const { group, resource, namespace, name } = found
      return decide(caller, { verb: 'get', target: { group, resource, namespace, name } }, there).allowed
    }

  const visible = openVisible({ rbac, among, decide, pulled })

  return {
    decide,
    authorize(caller, question) {
      const kind = kindOf(question)
      const decision = decideWithoutObject(caller, question, kind)
      if (decision?.allowed) return { answer: 'yes', reason: decision.reason }
      // An existing object says nothing about objects that a list or watch may find under its name at other times.
      if (
        caller &&
        kind &&
        'target' in question &&
        isFiltered(question, kind) &&
        (kind.stored || !decision) &&
        !isMetadataDenial(caller, question, decision)
      )
        return {
          answer: 'only',
          reason: 'filtered',
          ...(kind.about
            ? { filter: ownedFilter(caller, kind.about), among: () => undefined }
            : { filter: filterFor(caller, question), among: () => visible(caller, kind, question.verb) }),
        }
      const object = decision ? undefined : objectOf(question, kind)
      const right = object && byObject(caller as Caller, question, kind, object)
      if (right !== undefined) return { answer: 'yes', reason: right, ...(object ? { object } : {}) }
      return {
        answer: 'no',
        reason: decision?.reason ?? '',
        ...(decision?.byScope ? { byScope: true } : {}),
        ...(decision?.allowsMetadata ? { allowsMetadata: true } : {}),
      }
    },
    rules(caller, namespace) {
      const held = listRules(rbac.grants(caller, namespace))
      const scoped = restricts(caller.scope)
        ? withinScope(held.rules, caller.scope, { namespace, maxWords })
        : undefined
      const granted = scoped?.rules ?? held.rules
      return {
        ...(scoped?.notes.length ? { notes: scoped.notes } : {}),
        ...(held.isPartial || scoped?.isPartial ? { isPartial: true } : {}),
        resourceRules: granted.filter(rule => rule.resources?.length) as Rules['resourceRules'],
        nonResourceRules: granted.filter(rule => rule.nonResourceURLs?.length) as Rules['nonResourceRules'],
      }
    },
    verbCheck(caller, target) {
      const kind = kindOf({ verb: '', target })
      let byRights: VerbCheck | undefined
      const rights = () => {
        const object = isOneObject({ target }, kind) ? objectOf({ verb: '', target }, kind) : undefined
        return indexRights(kind && object ? rightsOn(kind, object, caller, asking(caller)) : [])
      }
      return (verb, subresource) => {
        const question = { verb, target: subresource === undefined ? target : { ...target, subresource } }
        const decision = decideWithoutObject(caller, question, kind)
        if (decision || isNew(question)) return decision?.allowed === true
        byRights ??= rights()
        return byRights(verb, subresource)
      }
    },
    startComparison() {
      const budget = { left: maxPermissions }
      return async (caller, wanted, namespace) => {
        if (caller.groups.includes('system:masters')) return { hasAll: true }
        const refuse = (rules: readonly PolicyRule[], limit?: number): ComparedRules => {
          const missing = rules.slice(0, maxMissing).map(printRule)
          return { hasAll: false, missing, ...(limit === undefined ? {} : { limit }) }
        }
        // Permissions that a scoped key grants would not be limited by its scope.
        if (restricts(caller.scope)) return wanted.length ? refuse(wanted as readonly PolicyRule[]) : { hasAll: true }
        // Administrators have everything. One look-up finds that.
        const all = { verb: '*', target: { group: '*', resource: '*', namespace } }
        const open = rbac.find(caller, all) ? wanted.filter(rule => rule.nonResourceURLs?.length) : wanted
        const held = rbac.index(caller, namespace)
        const { rules, isPartial } = await missingRules(held, open as readonly PolicyRule[], {
          budget,
          maxMissing,
        })
        if (isPartial) return refuse(rules, maxPermissions)
        return rules.length ? refuse(rules) : { hasAll: true }
      }
    },
  }
}

type ResourceQuestion = Extract<Question, { readonly target: Target }>

/** Programs and people learn how to ask for metadata, where the scope allows that much. */
function scopeDenial(scope: Scope, credential: string, question: Question): Decision {
  if (!allowsMetadata(scope, actOf(question)))
    return { ...no(`the scope of ${credential} does not cover it`), byScope: true }
  const view = question.verb === 'list' ? 'PartialObjectMetadataList' : 'PartialObjectMetadata'
  const hint = `request it with Accept: application/json;as=${view};g=meta.k8s.io;v=v1, or as a Table with includeObject=None or Metadata`
  return {
    ...no(`the scope of ${credential} allows only metadata: ${hint}`),
    byScope: true,
    allowsMetadata: true,
  }
}

/** A list without any data would look like a list of everything. The refusal says how to get the metadata. */
const isMetadataDenial = ({ scope }: Caller, { target }: ResourceQuestion, decision: Decision | undefined) =>
  decision?.allowsMetadata === true && scope !== undefined && !coversPart(scope, target)

/** The maximum of words in a list of rules: verbs, groups, resources, names and paths. */
const maxWords = 20_000

/** Each rule once, however many bindings grant it. */
function listRules(grants: Iterable<{ readonly rules: readonly PolicyRule[] }>) {
  const roles = new Set<readonly PolicyRule[]>()
  for (const { rules } of grants) roles.add(rules)
  const listed = new Set<PolicyRule>()
  let [left, isPartial] = [maxWords, false]
  for (const rules of roles)
    for (const rule of rules) {
      if (listed.has(rule)) continue
      const words = wordsIn(rule)
      if (words > left) isPartial = true
      else {
        listed.add(rule)
        left -= words
      }
    }
  return { rules: [...listed], isPartial }
}

/** One more than an error lists, so that it can say that there are more. */
const maxMissing = maxErrors + 1

/** A name in all namespaces refers to many objects (D26). */
const isOneObject = ({ target: { namespace, name } }: { readonly target: Target }, kind: Kind | undefined) =>
  name !== undefined && !(kind?.namespaced && namespace === '')

/** A create of an object, whose name is not known to authorization. */
const isNew = (question: Question) =>
  question.verb === 'create' && 'target' in question && question.target.subresource === undefined

/** Collections that are filtered for callers who may not list them as a whole. */
function isFiltered(question: Question, kind: Kind | undefined): boolean {
  return (
    (question.verb === 'list' || question.verb === 'watch') &&
    (kind?.stored === true || kind?.about !== undefined) &&
    !kind.allOrNothing &&
    'target' in question &&
    !question.target.subresource
  )
}

export function actOf(question: Question): Act {
  if ('path' in question) return question
  return { verb: question.verb, ...question.target, metadataOnly: question.metadataOnly === true }
}
