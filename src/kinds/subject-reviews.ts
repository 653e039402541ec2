// The reviews about somebody else: who is behind a key, may they, and why (D2, D27). Nothing is stored.

import type { Caller } from '../api/caller.ts'
import { forbidden, required } from '../api/errors.ts'
import { defineKind, type Kind, type Tools } from '../api/kind.ts'
import { flag, list, mapOf, struct, text } from '../api/schema.ts'
import { attributes, checkAttributes, confinesOf, extraOf, question, review, userInfo } from './self-reviews.ts'

export const TokenReview: Kind = defineKind({
  ...review,
  group: 'authentication.k8s.io',
  kind: 'TokenReview',
  plural: 'tokenreviews',
  writeOnly: ['spec.token'],
  singular: 'tokenreview',
  description: 'TokenReview tells whom a bearer key belongs to.',
  spec: struct('The question.', {
    token: text('The key.'),
    audiences: list(text(''), 'Audiences that must be among the key’s.'),
  }),
  status: struct('The answer.', {
    authenticated: flag('Whether the key counts.'),
    user: userInfo,
    audiences: list(text(''), 'Audiences of the key.'),
    error: text('Why it does not count.'),
  }),
  validate: next => (next.spec?.token ? [] : [required('spec.token', 'the key to look at')]),
  answer: async (next, tools) => {
    // The key itself is not sent back.
    const { token = '', ...spec } = next.spec ?? {}
    return { ...next, spec, status: authenticated(token, tools) }
  },
  sample: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token: 'plat_none' } },
})

function authenticated(token: string, tools: Tools) {
  try {
    const caller = tools.authenticate(token)
    if (!caller) return { authenticated: false }
    // Whoever takes the key's word takes its confines along (D25): a gateway judges by this scope, as the server does. And
    // its end: what is opened with it must not last longer.
    const extra = extraOf({
      ...caller.extra,
      ...confinesOf(caller, tools.keyEnds(token), tools.now()),
      ...(caller.keyUid ? { 'authentication.platform.sh/key-uid': [caller.keyUid] } : {}),
    })
    return { authenticated: true, user: { username: caller.username, groups: [...caller.groups], extra } }
  } catch (error) {
    if ((error as { code?: number }).code !== 401) throw error
    return { authenticated: false, error: (error as Error).message }
  }
}

const about = {
  user: text('The user that is asked about.'),
  groups: list(text(''), 'Groups of that user.'),
  uid: text('Identifies the user over time.'),
  extra: mapOf(list(text(''), ''), 'What else is known of the user.'),
}

const other = ({
  user,
  groups = [],
}: {
  user?: string | undefined
  groups?: readonly string[] | undefined
}): Caller => ({
  username: user ?? '',
  groups: [...new Set([...groups, 'system:authenticated'])].filter(group => group !== 'system:masters'),
})

export const SubjectAccessReview: Kind = defineKind({
  ...review,
  group: 'authorization.k8s.io',
  kind: 'SubjectAccessReview',
  plural: 'subjectaccessreviews',
  singular: 'subjectaccessreview',
  description: 'SubjectAccessReview asks whether somebody may do something.',
  spec: struct('The question.', { ...attributes, ...about }),
  status: struct('The answer.', {
    allowed: flag('Whether it is allowed.'),
    denied: flag('Whether it is denied whatever others say.'),
    reason: text('Why.'),
    evaluationError: text('What went wrong while judging.'),
  }),
  validate: next => [
    ...checkAttributes(next.spec),
    ...(next.spec?.user || next.spec?.groups?.length
      ? []
      : [required('spec.user', 'at least one of user or group must be specified')]),
  ],
  answer: async (next, tools) => {
    const { allowed, reason } = tools.judgeOther(other(next.spec ?? {}), question(next.spec ?? {}))
    return { ...next, status: { allowed, ...(reason ? { reason } : {}) } }
  },
  sample: {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    spec: { user: 'ada', resourceAttributes: { verb: 'get', group: 'management.platform.sh', resource: 'teams' } },
  },
})

export const AccessExplanation: Kind = defineKind({
  ...review,
  group: 'management.platform.sh',
  kind: 'AccessExplanation',
  plural: 'accessexplanations',
  singular: 'accessexplanation',
  description: 'AccessExplanation says why a request is allowed or denied, or who may make it.',
  spec: struct('The question.', {
    ...attributes,
    user: text('The user that is asked about; absent: the caller.'),
    whoCan: flag('Ask who may do it instead.'),
  }),
  status: struct('The answer.', {
    allowed: flag('Whether it is allowed.'),
    reason: text('Why.'),
    steps: list(text(''), 'How the answer comes about, from the key to the rule.'),
    nearMisses: list(text(''), 'What came near to allowing it.'),
    who: list(text(''), 'Who may do it.'),
  }),
  validate: next => checkAttributes(next.spec),
  answer: async (next, tools) => {
    const { user, whoCan } = next.spec ?? {}
    const asked = question(next.spec ?? {})
    if (whoCan || (user && user !== tools.caller.username)) await mustDelegate(tools)
    const who = user && user !== tools.caller.username ? tools.callerNamed(user) : tools.caller
    const { allowed, reason, steps, nearMisses, unknown } = tools.explain(asked, who)
    for (const text of unknown) tools.warn(text)
    if (whoCan) return { ...next, status: { who: [...tools.whoCan(asked)] } }
    return {
      ...next,
      status: { allowed, ...(reason ? { reason } : {}), steps: [...unknown, ...steps], nearMisses: [...nearMisses] },
    }
  },
  sample: {
    apiVersion: 'management.platform.sh/v1',
    kind: 'AccessExplanation',
    spec: { resourceAttributes: { verb: 'update', group: 'management.platform.sh', resource: 'teams', name: 'web' } },
  },
})

/** Questions about others are for those who may ask them (D27). */
async function mustDelegate(tools: Tools): Promise<void> {
  const target = {
    group: 'management.platform.sh',
    resource: 'accessexplanations',
    subresource: 'others',
    namespace: '',
  }
  if (!(await tools.judge({ verb: 'create', target })).allowed)
    throw forbidden(
      AccessExplanation,
      '',
      `User "${tools.caller.username}" may ask about themselves only; others need create on accessexplanations/others`,
    )
}
