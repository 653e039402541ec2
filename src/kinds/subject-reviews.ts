// Reviews about other users: token reviews, access reviews and explanations (D2, D27).
// Never stored.

import { invalidValue, required } from '../api/errors.ts'
import { defineKind } from '../api/kind.ts'
import { flag, list, longText, mapOf, struct, text } from '../api/schema.ts'
import { attributes, checkAttributes, review, userInfo } from './self-reviews.ts'
import { scope } from './shared-schema.ts'

export const TokenReview = defineKind({
  ...review,
  group: 'authentication.k8s.io',
  kind: 'TokenReview',
  plural: 'tokenreviews',
  writeOnly: ['spec.token'],
  singular: 'tokenreview',
  description: 'TokenReview shows the owner of a bearer key.',
  spec: struct('The request to review.', {
    token: longText('The key.'),
    audiences: list(text(''), 'Audiences that the key must have.'),
  }),
  status: struct('Result of the review.', {
    authenticated: flag('Whether the key is valid.'),
    user: userInfo,
    audiences: list(text(''), 'Audiences of the key.'),
    error: longText('Why the key is not valid.'),
  }),
  validate: next => (next.spec?.token ? [] : [required('spec.token', 'key to review')]),
  sample: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token: 'plat_none' } },
})

const about = {
  user: text('The user to check.'),
  groups: list(text(''), 'Groups of that user.'),
  uid: text('Unique identifier of the user.'),
  extra: mapOf(list(longText(''), ''), 'Additional attributes of the user.'),
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
    reason: longText('Reason of the decision.'),
    evaluationError: longText('Error during the evaluation.'),
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

const tokenCheck = struct('One check of a token.', {
  name: text('Name of the check, such as signature or claimValidationRules[0].'),
  rule: longText('Expression or claim of the rule.'),
  passed: flag('Whether the token passed the check.'),
  message: longText('Why the token failed the check.'),
  found: list(text(''), 'Issuer or audiences of the token, if their check failed.'),
  configured: list(text(''), 'Issuers or audiences that auth.yaml has, if their check failed.'),
})

const tokenExplanation = struct('The explanation of a token. The server has not accepted it.', {
  accepted: flag('Whether the server would accept the token.'),
  issuer: text('Name of the entry of auth.yaml that the token belongs to.'),
  checks: list(tokenCheck, 'All checks, in their order. A check that needs a failed one is missing.'),
  user: text('The user that the claims give, also if a check failed.'),
  uid: text('Unique identifier of the user.'),
  groups: list(text(''), 'Groups of the user, with those of teams.'),
  extra: mapOf(list(longText(''), ''), 'Additional attributes of the user.'),
  scope,
})

export const AccessExplanation = defineKind({
  ...review,
  group: 'management.platform.sh',
  kind: 'AccessExplanation',
  plural: 'accessexplanations',
  writeOnly: ['spec.token'],
  singular: 'accessexplanation',
  description:
    'AccessExplanation explains why a request is allowed or denied, lists the users who may make it, or explains a token of an external issuer.',
  spec: struct('The request to review.', {
    ...attributes,
    user: text('The user to check. Defaults to the caller.'),
    whoCan: flag('List the users who may do it instead.'),
    token: longText(
      'Explain this token of an external issuer instead. It is never returned. No other field may be set.',
    ),
  }),
  status: struct('Result of the review.', {
    allowed: flag('Whether it is allowed.'),
    reason: longText('Reason of the decision.'),
    steps: list(text(''), 'Steps of the decision, from the key to the rule.'),
    nearMisses: list(text(''), 'Rules that almost allow it.'),
    who: list(text(''), 'Users who may do it.'),
    token: tokenExplanation,
  }),
  validate: ({ spec }) => {
    const { token, ...others } = spec ?? {}
    if (token === undefined) return checkAttributes(spec)
    // The message must not repeat the token.
    return Object.values(others).some(Boolean)
      ? [invalidValue('spec.token', null, 'must be the only field of spec')]
      : []
  },
  sample: {
    apiVersion: 'management.platform.sh/v1',
    kind: 'AccessExplanation',
    spec: { resourceAttributes: { verb: 'update', group: 'management.platform.sh', resource: 'teams', name: 'web' } },
  },
})
