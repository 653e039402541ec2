// AuditEvent: a line of the audit log. Not stored: the server reads the log (D70).

import type { AuditLine } from '../api/audit-query.ts'
import { defineKind, type ObjectOfEvent } from '../api/kind.ts'
import type { Resource } from '../api/object.ts'
import { flag, integer, list, longText, mapOf, struct, text, time } from '../api/schema.ts'

const user = (description: string) =>
  struct(description, {
    username: text('The name of the user.'),
    uid: text('Unique identifier of the user.'),
    groups: list(text(''), 'Groups of the user.'),
    extra: mapOf(list(text(''), ''), 'Additional attributes from the authenticator.'),
  })

/** Any object. */
const body = (description: string) =>
  mapOf({ type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as never, description, {
    'x-kubernetes-preserve-unknown-fields': true,
  })

const lineOf = (object: Resource) => object as unknown as AuditLine

export const AuditEvent = defineKind({
  kind: 'AuditEvent',
  plural: 'auditevents',
  singular: 'auditevent',
  namespaced: false,
  description:
    'AuditEvent is a line of the audit log of the server, newest first. Fields are those of audit.k8s.io/v1 Event. Field selectors: user, verb, resource, namespace, name, uid, code, stage, from and to. Without the permission to list them, callers see their own actions, and those on objects they own.',
  verbs: ['list', 'watch'],
  stored: false,
  fields: {
    level: text('Level of the policy: Metadata, Request or RequestResponse.'),
    auditID: text('Identifies the request. The same as the header Audit-Id of the response.'),
    stage: text('Stage of the request: RequestReceived, ResponseStarted, ResponseComplete or Panic.'),
    requestURI: longText('URI of the request.'),
    verb: text('Verb of the request.'),
    user: user('The authenticated user.'),
    impersonatedUser: user('The user that the request acted as.'),
    sourceIPs: list(text(''), 'Addresses that the request came through, the client first.'),
    userAgent: longText('User agent of the client.'),
    objectRef: struct('The object of the request.', {
      resource: text('Plural of the kind.'),
      subresource: text('Subresource, if any.'),
      namespace: text('Namespace of the object.'),
      name: text('Name of the object.'),
      uid: text('Unique identifier of the object.'),
      apiGroup: text('API group of the kind.'),
      apiVersion: text('Version of the API group.'),
      resourceVersion: text('Version of the object that the request was based on.'),
    }),
    responseStatus: struct('The result.', {
      code: integer('HTTP status code.'),
      status: text('Failure, if the request failed.'),
      reason: longText('Machine-readable reason of a failure.'),
      message: longText('Message of a failure.'),
    }),
    requestObject: body('The body of the request, if the policy records it.'),
    responseObject: body('The body of the response, if the policy records it.'),
    requestReceivedTimestamp: time('When the request arrived.'),
    stageTimestamp: time('When this stage was reached.'),
    annotations: mapOf(longText(''), 'Facts about the request, such as the decision of the authorizer.'),
    redacted: flag(
      'Whether addresses, groups, messages and bodies are left out, because the caller sees the event as the owner of the object.',
    ),
    truncated: flag('Whether the bodies are left out, because the event is larger than 64 KiB.'),
  },
  columns: [
    {
      name: 'Time',
      type: 'string',
      description: 'When it happened.',
      value: o => `${(lineOf(o).stageTimestamp ?? '').slice(0, 19)}Z`,
    },
    { name: 'User', type: 'string', description: 'Who did it.', value: o => whoOf(lineOf(o)) },
    { name: 'Verb', type: 'string', description: 'What was done.', value: o => lineOf(o).verb },
    {
      name: 'Object',
      type: 'string',
      description: 'Object of the request, or its path.',
      value: o => whatOf(lineOf(o)),
    },
    {
      name: 'Code',
      type: 'integer',
      description: 'HTTP status code of the response.',
      value: o => lineOf(o).responseStatus?.code,
    },
  ],
  about: o => aboutOf(lineOf(o as unknown as Resource)),
  sample: {
    apiVersion: 'management.platform.sh/v1',
    kind: 'AuditEvent',
    metadata: { name: 'audit-86ca1ffdb4adde4e06be' },
    auditID: '7c1c8f4a-4d58-4a68-a2a2-7f4c8c4b4a10',
    stage: 'ResponseComplete',
    verb: 'delete',
    user: { username: 'ada' },
    objectRef: { resource: 'teams', name: 'web', apiGroup: 'management.platform.sh', apiVersion: 'v1' },
    responseStatus: { code: 200 },
    stageTimestamp: '2026-01-31T12:00:00.000000Z',
  },
})

function whoOf({ user: who, impersonatedUser }: AuditLine): string {
  const name = who?.username ?? ''
  return impersonatedUser?.username ? `${name} as ${impersonatedUser.username}` : name
}

function whatOf({ objectRef, requestURI = '' }: AuditLine): string {
  if (!objectRef?.resource) return requestURI.split('?', 1)[0] ?? ''
  const { resource, namespace, name, subresource } = objectRef
  return [resource, namespace, name, subresource].filter(part => part !== undefined).join('/')
}

function aboutOf({ objectRef = {} }: AuditLine): ObjectOfEvent | undefined {
  const { apiGroup: group = '', resource, namespace = '', name, uid } = objectRef
  return resource && name && uid ? { group, resource, namespace, name, uid } : undefined
}
