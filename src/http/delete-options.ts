// The options of a delete, from its body, its query or both; where the two contradict each other nothing is deleted (D10).

import { badRequest, type FieldError, invalidOptions, invalidValue, notSupported } from '../api/errors.ts'
import { isObject, type Json } from '../api/object.ts'
import type { DeleteOptions } from '../api/resources.ts'
import { isSet, type Query } from '../serving/exchange.ts'
import { checkParameters, dryRunOf, integer } from './options.ts'

type Policy = 'Background' | 'Foreground' | 'Orphan'
const policies: readonly string[] = ['Background', 'Foreground', 'Orphan']
const fields: readonly string[] = [
  'apiVersion',
  'kind',
  'dryRun',
  'gracePeriodSeconds',
  'orphanDependents',
  'preconditions',
  'propagationPolicy',
]

type Options = {
  readonly dryRun?: boolean
  readonly gracePeriodSeconds?: number
  readonly propagationPolicy?: string
  readonly uid?: string
  readonly resourceVersion?: string
}

export function deleteOptions(query: Query, body: Json | undefined): DeleteOptions {
  checkParameters(query)
  const errors: FieldError[] = []
  const sent = body === undefined || body === null ? {} : fromBody(body, errors)
  const inQuery = fromQuery(query, errors)
  if (errors.length) throw invalidOptions('DeleteOptions', errors)
  for (const field of ['gracePeriodSeconds', 'propagationPolicy', 'uid', 'resourceVersion'] as const)
    if (sent[field] !== undefined && inQuery[field] !== undefined && sent[field] !== inQuery[field])
      throw badRequest(
        `the query asks for ${field} ${inQuery[field]}, the body for ${sent[field]}; nothing was deleted`,
      )
  if (Boolean(sent.dryRun) !== Boolean(inQuery.dryRun) && query.has('dryRun') && body !== undefined && hasDryRun(body))
    throw badRequest('the query and the body do not agree on dryRun; nothing was deleted')
  const all: Options = { ...inQuery, ...sent, dryRun: Boolean(sent.dryRun) || Boolean(inQuery.dryRun) }
  const preconditions = {
    ...(all.uid === undefined ? {} : { uid: all.uid }),
    ...(all.resourceVersion === undefined ? {} : { resourceVersion: all.resourceVersion }),
  }
  return {
    dryRun: all.dryRun === true,
    ...(all.gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds: all.gracePeriodSeconds }),
    ...(all.propagationPolicy === undefined ? {} : { propagationPolicy: all.propagationPolicy as Policy }),
    ...(Object.keys(preconditions).length ? { preconditions } : {}),
  }
}

const hasDryRun = (body: Json) => isObject(body) && Array.isArray(body.dryRun) && body.dryRun.length > 0

function fromQuery(query: Query, errors: FieldError[]): Options {
  const gracePeriodSeconds = integer(query, 'gracePeriodSeconds')
  const orphan = query.has('orphanDependents') ? isSet(query, 'orphanDependents') : undefined
  const propagationPolicy = policy(query.get('propagationPolicy') ?? undefined, orphan, errors)
  return {
    ...(dryRunOf(query, errors) ? { dryRun: true } : {}),
    ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds: grace(gracePeriodSeconds, errors) }),
    ...(propagationPolicy ? { propagationPolicy } : {}),
  }
}

function fromBody(body: Json, errors: FieldError[]): Options {
  if (!isObject(body)) throw badRequest('the body of a delete is a DeleteOptions object')
  const { kind, gracePeriodSeconds, propagationPolicy, orphanDependents, preconditions, dryRun } = body
  if (kind !== undefined && kind !== 'DeleteOptions')
    throw badRequest(`the body of a delete is a DeleteOptions object, not ${JSON.stringify(kind)}`)
  for (const name of Object.keys(body))
    if (!fields.includes(name)) throw badRequest(`DeleteOptions: unknown field "${name}"; nothing was deleted`)
  const wrong = (field: string, type: string) =>
    badRequest(`DeleteOptions in version "v1" cannot be handled as a DeleteOptions: ${field} must be ${type}`)
  if (gracePeriodSeconds != null && !Number.isSafeInteger(gracePeriodSeconds))
    throw wrong('gracePeriodSeconds', 'an integer')
  if (propagationPolicy != null && typeof propagationPolicy !== 'string') throw wrong('propagationPolicy', 'a string')
  if (orphanDependents != null && typeof orphanDependents !== 'boolean') throw wrong('orphanDependents', 'a boolean')
  if (preconditions != null && !isObject(preconditions)) throw wrong('preconditions', 'an object')
  for (const name of Object.keys(preconditions ?? {}))
    if (name !== 'uid' && name !== 'resourceVersion')
      throw badRequest(`preconditions: unknown field "${name}"; nothing was deleted`)
  if (dryRun != null && !Array.isArray(dryRun)) throw wrong('dryRun', 'a list of strings')
  for (const value of (dryRun ?? []) as readonly Json[])
    if (value !== 'All') errors.push(notSupported('dryRun', value, ['All']))
  const chosen = policy(propagationPolicy as string | undefined, orphanDependents as boolean | undefined, errors)
  const { uid, resourceVersion } = (preconditions ?? {}) as { uid?: Json; resourceVersion?: Json }
  if (uid !== undefined && typeof uid !== 'string') throw wrong('preconditions.uid', 'a string')
  if (resourceVersion !== undefined && typeof resourceVersion !== 'string')
    throw wrong('preconditions.resourceVersion', 'a string')
  return {
    ...(Array.isArray(dryRun) && dryRun.length ? { dryRun: true } : {}),
    ...(gracePeriodSeconds == null ? {} : { gracePeriodSeconds: grace(gracePeriodSeconds as number, errors) }),
    ...(chosen ? { propagationPolicy: chosen } : {}),
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
  }
}

function grace(seconds: number, errors: FieldError[]): number {
  if (seconds < 0) errors.push(invalidValue('gracePeriodSeconds', seconds, 'must be greater than or equal to 0'))
  return seconds
}

function policy(name: string | undefined, orphan: boolean | undefined, errors: FieldError[]): string | undefined {
  if (name && orphan !== undefined)
    errors.push(invalidValue('propagationPolicy', name, 'orphanDependents and deletionPropagation cannot be both set'))
  if (name && !policies.includes(name)) errors.push(notSupported('propagationPolicy', name, policies))
  return name || (orphan === undefined ? undefined : orphan ? 'Orphan' : 'Background')
}
