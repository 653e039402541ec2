// Finds unknown resources, verbs and subresources in a question, so that an explanation can name the likely typo (D27).

import { didYouMean } from '../../api/did-you-mean.ts'
import { cut } from '../../api/errors.ts'
import type { Kind, Question } from '../../api/kind.ts'

/** Verbs and resources that exist only in rules: impersonation and escalation. */
const verbsBeside = ['*', 'bind', 'escalate', 'impersonate']
const resourcesBeside = ['*', 'users', 'groups', 'uids', 'userextras', 'serviceaccounts']
const subresourcesBeside: { readonly [resource: string]: readonly string[] } = { accessexplanations: ['others'] }

/** The problems as sentences. Empty: everything is known. */
export function unknownIn(question: Question, kinds: readonly Kind[]): string[] {
  if ('path' in question) return []
  const { group, subresource = '' } = question.target
  const resource = cut(question.target.resource)
  if (resourcesBeside.includes(resource)) return []
  const served = kinds.filter(kind => kind.served)
  const kind = served.find(one => one.plural === resource && (one.group === group || group === '*'))
  if (!kind) {
    const elsewhere = served.find(one => one.plural === resource)
    const hint = elsewhere
      ? `; it is in "${elsewhere.group}"`
      : didYouMean(
          resource,
          served.map(one => one.plural),
        )
    return [`this server has no resource "${resource}" in the group "${cut(group)}"${hint}`]
  }
  const parts = [
    ...Object.keys(kind.subresources),
    ...(kind.statusSubresource ? ['status'] : []),
    ...(subresourcesBeside[resource] ?? []),
  ]
  if (subresource && subresource !== '*' && !parts.includes(subresource))
    return [`${resource} have no subresource "${cut(subresource)}"${didYouMean(subresource, parts)}`]
  if (subresource || verbsBeside.includes(question.verb)) return []
  const verbs: readonly string[] = kind.verbs
  if (verbs.includes(question.verb)) return []
  return [
    `${resource} have no verb "${cut(question.verb)}"${didYouMean(question.verb, verbs) || `; they have ${verbs.join(', ')}`}`,
  ]
}
