// The reviews about somebody else: whose key is it, may they, and why (D2, D27). They are not stored.

import { required } from '../api/errors.ts'
import { defineKind } from '../api/kind.ts'
import { flag, list, mapOf, struct, text } from '../api/schema.ts'
import { attributes, checkAttributes, review, userInfo } from './self-reviews.ts'

export const TokenReview = defineKind({
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
  sample: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token: 'plat_none' } },
})

const about = {
  user: text('The user that is asked about.'),
  groups: list(text(''), 'Groups of that user.'),
  uid: text('Identifies the user over time.'),
  extra: mapOf(list(text(''), ''), 'What else is known of the user.'),
}

export const SubjectAccessReview = defineKind({
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
  sample: {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    spec: { user: 'ada', resourceAttributes: { verb: 'get', group: 'management.platform.sh', resource: 'teams' } },
  },
})

export const AccessExplanation = defineKind({
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
  sample: {
    apiVersion: 'management.platform.sh/v1',
    kind: 'AccessExplanation',
    spec: { resourceAttributes: { verb: 'update', group: 'management.platform.sh', resource: 'teams', name: 'web' } },
  },
})
