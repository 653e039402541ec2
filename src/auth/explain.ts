// Why: how an answer of the authorizer comes about, step by step, and what came near to allowing it (D27).

import type { Caller } from '../api/caller.ts'
import type { Explained, Kind, Question, TeamPermissions } from '../api/kind.ts'
import type { Ref, Resource } from '../api/object.ts'
import { type Authorizer, actOf } from './authorize.ts'
import type { KeyBook } from './key-book.ts'
import type { Rbac } from './rbac.ts'
import type { PolicyRule } from './rules.ts'
import { type Act, allows } from './scope.ts'
import type { Teams } from './teams.ts'

export type ExplainOptions = {
  readonly authorizer: Authorizer
  readonly rbac: Rbac
  readonly teams: Teams
  readonly book: KeyBook
  readonly kinds: readonly Kind[]
  readonly peek: (kind: Kind, ref: Ref) => Resource | undefined
}

export interface Explainer {
  explain(caller: Caller, question: Question): Explained
  whoCan(question: Question): readonly string[]
  permissionsOf(team: string): TeamPermissions
  /** A user as they would come, by the groups of their live keys (D17). */
  callerNamed(user: string): Caller
}

const teamGroup = 'platform:team:'

export function openExplainer({ authorizer, rbac, teams, book, kinds, peek }: ExplainOptions): Explainer {
  const callerNamed = (user: string): Caller => {
    const groups = new Set(['system:authenticated', `platform:user:${user}`])
    for (const key of book.all())
      if (key.user === user && !key.disabled && !key.deleting) for (const group of key.groups) groups.add(group)
    for (const team of teams.of(user, [...groups])) groups.add(teamGroup + team)
    return { identity: 'User', username: user, groups: [...groups] }
  }

  const membership = (caller: Caller): string[] =>
    caller.groups.flatMap(group => {
      const team =
        group.startsWith(teamGroup) && caller.identity === 'User' ? teams.get(group.slice(teamGroup.length)) : undefined
      if (!team) return []
      const via = team.users.includes(caller.username)
        ? 'spec.users'
        : `group ${team.groups.find(one => caller.groups.includes(one))}`
      return [`member of team ${team.name} through ${via}`]
    })

  /** Roles that are about the same resource, and what they grant instead. */
  const nearMisses = (caller: Caller, act: Act): string[] => {
    if ('path' in act) return []
    const word = act.subresource ? `${act.resource}/${act.subresource}` : act.resource
    const about = (rule: PolicyRule) =>
      rule.resources?.some(one => one === word || one === '*') &&
      rule.apiGroups?.some(one => one === act.group || one === '*')
    return [...rbac.grants(caller, act.namespace)].flatMap(grant =>
      grant.rules.filter(about).map(rule => {
        const names = rule.resourceNames?.length ? ` on ${rule.resourceNames.join(', ')} alone` : ''
        return `${grant.role} grants ${rule.verbs?.join(', ')}${names}, not ${act.verb}${act.name ? ` on ${act.name}` : ''}`
      }),
    )
  }

  return {
    callerNamed,
    explain(caller, question) {
      const act = actOf(question)
      const judgement = authorizer.judge(caller, question)
      const covered = allows(caller.scope, { target: 'Management', act })
      const steps = [
        ...(caller.key ? [`access key ${caller.key}`] : []),
        `acts as ${caller.username}`,
        ...membership(caller),
        covered ? `scope: ${covered}` : 'scope: no entry covers the request',
        judgement.allowed ? judgement.reason : 'no role, binding or right of the object allows it',
      ]
      return { ...judgement, steps, nearMisses: judgement.allowed || !covered ? [] : nearMisses(caller, act) }
    },
    whoCan(question) {
      const act = actOf(question)
      const found = new Set<string>()
      for (const bound of rbac.bindings()) {
        if (bound.namespace !== '' && ('path' in act || bound.namespace !== act.namespace)) continue
        for (const [word, names] of [
          ['user', bound.users],
          ['group', bound.groups],
        ] as const)
          for (const name of names) {
            const holder = word === 'user' ? { username: name, groups: [] } : { username: '', groups: [name] }
            const by = rbac.find(holder, act)
            if (by) found.add(`${word} ${name} by ${by.grant.binding}`)
          }
      }
      for (const line of byObject(act, kinds, peek)) found.add(line)
      return [...found].sort()
    },
    permissionsOf(name) {
      const team = teams.get(name)
      const members = new Map((team?.users ?? []).map(user => [user, 'spec.users']))
      for (const key of book.all())
        for (const group of team?.groups ?? [])
          if (key.user && key.groups.includes(group) && !members.has(key.user)) members.set(key.user, `group ${group}`)
      const grants = [...rbac.boundTo(teamGroup + name)]
      return {
        members: [...members].map(([user, via]) => ({ user, via })),
        permissions: grants.flatMap(({ rules, namespace, through }) =>
          rules.map(rule => ({ rule, namespace, through })),
        ),
      }
    },
  }
}

/** Owner and access entries of the object that is asked about. */
function byObject(act: Act, kinds: readonly Kind[], peek: ExplainOptions['peek']): string[] {
  if ('path' in act || !act.name) return []
  const kind = kinds.find(one => one.plural === act.resource && one.group === act.group)
  const object = kind?.stored ? peek(kind, { namespace: act.namespace, name: act.name }) : undefined
  const {
    owner,
    access = [],
    user,
  } = (object?.spec ?? {}) as {
    owner?: { user?: string; team?: string }
    access?: { verbs?: string[]; users?: string[]; teams?: string[] }[]
    user?: string
  }
  const given = access.flatMap((entry, index) => {
    if (!entry.verbs?.includes('*') && !entry.verbs?.includes(act.verb)) return []
    const because = `by spec.access[${index}] of the object`
    return [
      ...(entry.users ?? []).map(one => `user ${one} ${because}`),
      ...(entry.teams ?? []).map(one => `group ${teamGroup}${one} ${because}`),
    ]
  })
  const owners = [owner?.user ?? user, owner?.team].flatMap((one, index) =>
    one ? [`${index ? `group ${teamGroup}` : 'user '}${one} as owner of the object`] : [],
  )
  return [...owners, ...given]
}
