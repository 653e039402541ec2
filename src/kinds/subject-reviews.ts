// Reviews about other users: token reviews, access reviews and explanations (D2, D27).
// Never stored.

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
  description: 'TokenReview shows the owner of a bearer key.',
  spec: struct('The request to review.', {
    token: text('The key.'),
    audiences: list(text(''), 'Audiences that the key must have.'),
  }),
  status: struct('Result of the review.', {
    authenticated: flag('Whether the key is valid.'),
    user: userInfo,
    audiences: list(text(''), 'Audiences of the key.'),
    error: text('Why the key is not valid.'),
  }),
  validate: next => (next.spec?.token ? [] : [required('spec.token', 'key to review')]),
  sample: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token: 'plat_none' } },
})

const about = {
  user: text('The user to check.'),
  groups: list(text(''), 'Groups of that user.'),
  uid: text('Unique identifier of the user.'),
  extra: mapOf(list(text(''), ''), 'Additional attributes of the user.'),
}

export const SubjectAccessReview = defineKind({
  ...review,
  group: 'authorization.k8s.io',
  kind: 'SubjectAccessReview',
  plural: 'subjectaccessreviews',
  singular: 'subjectaccessreview',
  description: 'SubjectAccessReview checks whether a user may do something.',
  spec: struct('The request to review.', { ...attributes, ...about }),
  status: struct('Result of the review.', {
    allowed: flag('Whether it is allowed.'),
    denied: flag('Whether it is denied regardless of other authorizers.'),
    reason: text('Reason of the decision.'),
    evaluationError: text('Error during the evaluation.'),
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
  description: 'AccessExplanation explains why a request is allowed or denied, or lists the users who may make it.',
  spec: struct('The request to review.', {
    ...attributes,
    user: text('The user to check. Defaults to the caller.'),
    whoCan: flag('List the users who may do it instead.'),
  }),
  status: struct('Result of the review.', {
    allowed: flag('Whether it is allowed.'),
    reason: text('Reason of the decision.'),
    steps: list(text(''), 'Steps of the decision, from the key to the rule.'),
    nearMisses: list(text(''), 'Rules that almost allow it.'),
    who: list(text(''), 'Users who may do it.'),
  }),
  validate: next => checkAttributes(next.spec),
  sample: {
    apiVersion: 'management.platform.sh/v1',
    kind: 'AccessExplanation',
    spec: { resourceAttributes: { verb: 'update', group: 'management.platform.sh', resource: 'teams', name: 'web' } },
  },
})
