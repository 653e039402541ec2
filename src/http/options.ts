// Reads the options of a verb from a request's query, in upstream's words where they are wrong (wire §1.8, §1.11).

import {
  badRequest,
  type FieldError,
  fieldForbidden,
  invalidOptions,
  invalidValue,
  notSupported,
  tooLong,
} from '../api/errors.ts'
import type { ListOptions, WatchOptions, WriteOptions } from '../api/resources.ts'
import { type Exchange, isSet, type Query } from '../serving/exchange.ts'

type OptionsKind = 'CreateOptions' | 'UpdateOptions' | 'PatchOptions' | 'DeleteOptions'

/** A client that sends dryRun wants no change, so every value but All is an error, also the empty one (D10). */
export function dryRunOf(query: Query, errors: FieldError[]): boolean {
  const values = query.getAll('dryRun')
  for (const value of values) if (value !== 'All') errors.push(notSupported('dryRun', value, ['All']))
  return values.includes('All')
}

const validations = ['', 'Ignore', 'Strict', 'Warn'] as const

const parameters = [
  ...['dryRun', 'fieldManager', 'fieldValidation', 'force', 'pretty', 'timeout', 'timeoutSeconds'],
  ...['gracePeriodSeconds', 'orphanDependents', 'propagationPolicy'],
  ...['labelSelector', 'fieldSelector', 'resourceVersion', 'resourceVersionMatch', 'limit', 'continue'],
] as const
const byLowerCase = new Map(parameters.map(name => [name.toLowerCase(), name]))

/** A write that ignored `dryrun` or `labelselector` would do more than was meant: a wrong case is an error. */
export function checkParameters(query: Query): void {
  for (const name of query.keys()) {
    const meant = byLowerCase.get(name.toLowerCase())
    if (meant !== undefined && meant !== name)
      throw badRequest(`unknown query parameter "${name}": did you mean "${meant}"? nothing was changed`)
  }
}

/** dryRun, fieldManager and fieldValidation; the manager of a request that names none is its user agent. */
export function writeOptions(exchange: Exchange, kind: OptionsKind, subresource: string): WriteOptions {
  const { query } = exchange
  checkParameters(query)
  const errors: FieldError[] = []
  const dryRun = dryRunOf(query, errors)
  const manager = query.get('fieldManager') ?? ''
  if (manager.length > 128) errors.push(tooLong('fieldManager', 128))
  if (/[^\P{C}]/u.test(manager))
    errors.push(invalidValue('fieldManager', manager, 'should only contain printable characters'))
  const validation = query.get('fieldValidation') ?? ''
  if (!validations.includes(validation as '')) errors.push(notSupported('fieldValidation', validation, validations))
  if (errors.length) throw invalidOptions(kind, errors)
  return {
    dryRun,
    ...(subresource ? { subresource } : {}),
    ...(manager ? { fieldManager: manager } : {}),
    fieldValidation: (validation || 'Warn') as 'Ignore' | 'Strict' | 'Warn',
    warn: text => exchange.warn(text),
  }
}

/** The part of a user agent before its version, e.g. `kubectl`. */
export function agentOf(exchange: Exchange): string {
  const agent = String(exchange.request.headers['user-agent'] ?? '').split('/', 1)[0] ?? ''
  return agent.replace(/[^\P{C}]/gu, '').slice(0, 128) || 'unknown'
}

function selectionOf(
  query: Query,
  namespace: string,
): Pick<ListOptions, 'namespace' | 'labelSelector' | 'fieldSelector'> {
  return {
    ...(namespace ? { namespace } : {}),
    ...text(query, 'labelSelector'),
    ...text(query, 'fieldSelector'),
  }
}

/** A name from the path comes first, so that nothing the query says can swallow it. */
function withName(name: string, selector: string | undefined): string {
  const own = `metadata.name=${name.replace(/[\\,=]/g, '\\$&')}`
  return selector ? `${own},${selector}` : own
}

export function listOptions(query: Query, namespace: string): ListOptions {
  const limit = integer(query, 'limit')
  return {
    ...selectionOf(query, namespace),
    ...(limit === undefined ? {} : { limit }),
    ...text(query, 'continue'),
    ...text(query, 'resourceVersion'),
    ...text(query, 'resourceVersionMatch'),
  }
}

/** `onlyName`: the one object that the path is about; '' for all. */
export function watchOptions(
  query: Query,
  namespace: string,
  onlyName: string,
): WatchOptions & { readonly timeoutSeconds?: number } {
  const timeoutSeconds = integer(query, 'timeoutSeconds')
  const selection = selectionOf(query, namespace)
  return {
    ...selection,
    ...(onlyName ? { fieldSelector: withName(onlyName, selection.fieldSelector) } : {}),
    ...text(query, 'resourceVersion'),
    ...text(query, 'resourceVersionMatch'),
    allowWatchBookmarks: isSet(query, 'allowWatchBookmarks'),
    ...(query.has('sendInitialEvents') ? { sendInitialEvents: isSet(query, 'sendInitialEvents') } : {}),
    ...(timeoutSeconds !== undefined && timeoutSeconds > 0 ? { timeoutSeconds } : {}),
  }
}

function text<K extends string>(query: Query, name: K): { [key in K]?: string } {
  const value = query.get(name)
  return value ? ({ [name]: value } as { [key in K]: string }) : {}
}

export function integer(query: Query, name: string): number | undefined {
  const value = query.get(name)
  if (value === null || value === '') return undefined
  if (!/^[+-]?\d{1,15}$/.test(value))
    throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(value)}: invalid syntax`)
  return Number(value)
}

const units: { readonly [unit: string]: number } = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
}
const longest = 60_000

/** `?timeout=`: may only lower the 60 seconds a request has. */
export function timeoutOf(query: Query): number {
  if (query.size === 0) return longest
  const value = query.get('timeout')
  if (value === null || value === '') return longest
  if (!/^(\d{1,9}(\.\d{1,9})?(ns|us|µs|ms|s|m|h))+$/.test(value) && value !== '0')
    throw badRequest(`invalid timeout specified in the request URL - time: invalid duration ${JSON.stringify(value)}`)
  let total = 0
  for (const [, number, , unit] of value.matchAll(/(\d+(\.\d+)?)(ns|us|µs|ms|s|m|h)/g))
    total += Number(number) * (units[unit as string] ?? 0)
  return total > 0 ? Math.min(total, longest) : longest
}

/** `force` belongs to apply alone; `sendInitialEvents` to watches. */
export const forceForbidden = () =>
  invalidOptions('PatchOptions', [fieldForbidden('force', 'may not be specified for non-apply patch')])
export const sendInitialEventsOnList = () =>
  invalidOptions('ListOptions', [fieldForbidden('sendInitialEvents', 'sendInitialEvents is forbidden for list')])
