// Audits the server's own writes, for example those of controllers, like the writes of clients.

import { randomUUID } from 'node:crypto'
import { systemCaller } from '../api/caller.ts'
import type { Kind, Question } from '../api/kind.ts'
import type { Ref } from '../api/object.ts'
import { pathOf, prefix } from '../api/paths.ts'
import type { Document, Resources } from '../api/resources.ts'
import { issuedBy, microTime, userOf } from './audit-event.ts'
import { type Hash, scrub } from './audit-redact.ts'

export type InternalWrite = {
  readonly verb: 'create' | 'update' | 'patch' | 'delete'
  readonly kind: Kind
  readonly ref: Ref
  /** The part of the server that writes. */
  readonly manager: string
  readonly document: Document | undefined
  /** Of a deleted object. */
  readonly uid?: string | undefined
  /** Further annotations of the event. */
  readonly noted?: { readonly [name: string]: string }
}

/** The same verbs; the audit log records each successful write. Failures are retried and not recorded. */
export function withAudit(
  audit: { readonly own: (write: InternalWrite) => void },
  internalClient: Resources,
): Resources {
  const record = (verb: InternalWrite['verb'], kind: Kind, ref: Ref, manager = 'platform') => {
    return <T extends Document>(document: T): T => {
      const { namespace = '', name = '' } = document.object.metadata
      audit.own({ verb, kind, ref: { ...ref, namespace, name }, manager, document })
      return document
    }
  }
  return {
    ...internalClient,
    create: (kind, namespace, object, options) =>
      internalClient
        .create(kind, namespace, object, options)
        .then(record('create', kind, { namespace, name: '' }, options?.fieldManager)),
    update: (kind, ref, object, options) =>
      internalClient.update(kind, ref, object, options).then(record('update', kind, ref, options?.fieldManager)),
    patch: (kind, ref, body, options) =>
      internalClient.patch(kind, ref, body, options).then(record('patch', kind, ref, options?.fieldManager)),
    delete: async (kind, ref, options) => {
      const deleted = await internalClient.delete(kind, ref, options)
      const uid = 'status' in deleted ? deleted.status.details?.uid : deleted.document.uid
      audit.own({ verb: 'delete', kind, ref, manager: 'platform', document: undefined, uid })
      return deleted
    },
  }
}

export const questionOf = ({ verb, kind, ref }: InternalWrite): Question => ({
  verb,
  target: { group: kind.group, resource: kind.plural, ...ref },
})

export function internalEvent(write: InternalWrite, at: number, hash: Hash): object {
  const { verb, kind, ref, manager, document, uid, noted = {} } = write
  const code = verb === 'create' ? 201 : 200
  return {
    kind: 'Event',
    apiVersion: 'audit.k8s.io/v1',
    level: 'Metadata',
    auditID: randomUUID(),
    stage: 'ResponseComplete',
    requestURI: prefix + pathOf(kind, { namespace: ref.namespace, ...(verb === 'create' ? {} : { name: ref.name }) }),
    verb,
    user: userOf(systemCaller),
    userAgent: manager,
    objectRef: {
      resource: kind.plural,
      namespace: ref.namespace || undefined,
      name: ref.name,
      uid: document?.object.metadata.uid ?? uid,
      apiGroup: kind.group || undefined,
      apiVersion: kind.version,
    },
    responseStatus: { metadata: {}, code },
    requestReceivedTimestamp: microTime(at),
    stageTimestamp: microTime(at),
    annotations: {
      'authorization.k8s.io/decision': 'allow',
      'authorization.k8s.io/reason': 'the server itself',
      ...Object.fromEntries(Object.entries(noted).map(([name, text]) => [name, scrub(text, hash)])),
      ...issuedBy(document, hash),
    },
  }
}
