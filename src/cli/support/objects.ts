// Counts objects and audit events for a support bundle, and lists conditions that are not True.

import type { AuditLine } from '../../api/audit-query.ts'
import type { Kind } from '../../api/kind.ts'
import { isObject, type Json } from '../../api/object.ts'
import { kinds } from '../../kinds/index.ts'
import { codeWord, type Redaction, time } from './redact.ts'

type Named = { readonly metadata?: { readonly name?: string; readonly namespace?: string }; readonly status?: unknown }

/** Without messages, which contain names. */
export function brokenConditions(kind: Kind, objects: Iterable<Named>, { name }: Redaction): object[] {
  const found: object[] = []
  for (const { metadata = {}, status } of objects) {
    const conditions = isObject(status) && Array.isArray(status['conditions']) ? status['conditions'] : []
    for (const condition of conditions as readonly Json[]) {
      if (!isObject(condition) || condition['status'] === 'True') continue
      found.push({
        kind: kind.kind,
        ...(metadata.namespace ? { namespace: name(metadata.namespace) } : {}),
        name: name(metadata.name ?? ''),
        type: codeWord(condition['type']),
        status: codeWord(condition['status']),
        reason: codeWord(condition['reason']),
        lastTransitionTime: time(condition['lastTransitionTime']),
      })
    }
  }
  return found
}

const resources = new Set(kinds.map(({ plural }) => plural))
const verbs = new Set('get list watch create update patch delete deletecollection post put head options'.split(' '))

/** Counts failed requests by code, reason, verb and resource. Nobody is named. */
export function countErrors(events: Iterable<AuditLine>): object[] {
  const counts = new Map<string, { readonly facts: object; count: number }>()
  for (const { stage, verb = '', objectRef, responseStatus } of events) {
    const code = responseStatus?.code
    if (stage !== 'ResponseComplete' && stage !== 'Panic') continue
    if (typeof code !== 'number' || code < 400) continue
    const facts = {
      code,
      reason: codeWord(responseStatus?.reason),
      verb: verbs.has(verb) ? verb : 'other',
      resource:
        objectRef?.resource === undefined
          ? undefined
          : resources.has(objectRef.resource)
            ? objectRef.resource
            : 'other',
    }
    const key = JSON.stringify(facts)
    const one = counts.get(key) ?? { facts, count: 0 }
    one.count++
    counts.set(key, one)
  }
  return [...counts.values()].toSorted((a, b) => b.count - a.count).map(({ facts, count }) => ({ ...facts, count }))
}
