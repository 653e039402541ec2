// May you: yes, no, or only some. The first cut knows the administrator and what everyone signed in may do (D27); roles follow.

import type { Caller } from '../api/caller.ts'
import type { Judgement, Question, Rules } from '../api/kind.ts'
import type { Filter } from '../api/resources.ts'

export type Verdict =
  | { readonly answer: 'yes' }
  | { readonly answer: 'no'; readonly reason: string }
  | { readonly answer: 'only'; readonly filter: Filter }

export interface Authorizer {
  /** The request path's question. */
  authorize(caller: Caller | undefined, question: Question): Verdict
  /** The same question for reviews and rules of kinds. */
  judge(caller: Caller | undefined, question: Question): Judgement
  rules(caller: Caller, namespace: string): Rules
}

const openPaths = [/^\/(livez|readyz|healthz)(\/|$)/, /^\/version$/]
const discoveryPaths = [/^\/$/, /^\/apis?(\/|$)/, /^\/openapi(\/|$)/]
const selfReviews: { readonly [group: string]: readonly string[] } = {
  'authorization.k8s.io': ['selfsubjectaccessreviews', 'selfsubjectrulesreviews'],
  'authentication.k8s.io': ['selfsubjectreviews'],
}

export function openAuthorizer(): Authorizer {
  const judge = (caller: Caller | undefined, question: Question): Judgement => {
    if ('path' in question && openPaths.some(path => path.test(question.path))) return yes('open to everyone')
    if (!caller) return no
    if (isAdministrator(caller)) return yes('administrator')
    if ('path' in question)
      return discoveryPaths.some(path => path.test(question.path)) ? yes('open to everyone signed in') : no
    const { group, resource } = question.target
    return question.verb === 'create' && selfReviews[group]?.includes(resource) ? yes('open to everyone signed in') : no
  }
  return {
    judge,
    authorize(caller, question) {
      const { allowed, reason } = judge(caller, question)
      return allowed ? { answer: 'yes' } : { answer: 'no', reason }
    },
    rules: caller => (isAdministrator(caller) ? everything : signedIn),
  }
}

const isAdministrator = ({ username, groups }: Caller) => username === 'admin' || groups.includes('system:masters')
const yes = (reason: string): Judgement => ({ allowed: true, reason })
const no: Judgement = { allowed: false, reason: '' }

const everything: Rules = {
  resourceRules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }],
  nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['*'] }],
}
const signedIn: Rules = {
  resourceRules: Object.entries(selfReviews).map(([group, resources]) => ({
    verbs: ['create'],
    apiGroups: [group],
    resources,
  })),
  nonResourceRules: [
    {
      verbs: ['get'],
      nonResourceURLs: ['/livez', '/livez/*', '/readyz', '/readyz/*', '/healthz', '/healthz/*', '/version'],
    },
    { verbs: ['get'], nonResourceURLs: ['/', '/api', '/api/*', '/apis', '/apis/*', '/openapi', '/openapi/*'] },
  ],
}
