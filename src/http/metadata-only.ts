// Recognizes reads whose response shows only metadata of the objects. Some scopes allow no others, and hide parts of the metadata (D25).

import type { Caller, Scope } from '../api/caller.ts'
import { ApiError, forbidden } from '../api/errors.ts'
import type { Question } from '../api/kind.ts'
import type { Resource } from '../api/object.ts'
import type { Target } from '../api/permissions.ts'
import { documentOf } from '../api/resources.ts'
import { fieldsInSelector, SelectorError } from '../api/selector.ts'
import { allows, restricts, rolesOf } from '../auth/authz/scope.ts'
import type { Exchange, Query } from '../serving/exchange.ts'
import { isPlain, negotiate, shapeOf } from './negotiate.ts'
import { withoutFieldValues } from './redact-response.ts'
import { includeOf } from './table.ts'
import type { Result } from './verbs.ts'

const reads = ['get', 'list', 'watch']

/** The question for authorization, with the view that the response will have. */
export function withView(question: Question, exchange: Exchange): Question {
  const { accept } = exchange.request.headers
  if (isPlain(accept) || 'path' in question || !reads.includes(question.verb)) return question
  return isMetadataOnly(accept, question.verb, exchange) ? { ...question, metadataOnly: true } : question
}

/** A header or parameter that nobody can answer is an error later. Until then it does not count as metadata. */
function isMetadataOnly(accept: string | undefined, verb: string, { query }: Exchange): boolean {
  try {
    const { as } = negotiate(accept, shapeOf(verb))
    return as === 'Table' ? includeOf(query) !== 'Object' : as !== 'object'
  } catch (error) {
    if (error instanceof ApiError) return false
    throw error
  }
}

/** The object with the metadata that the scope of the caller allows. Columns of Tables need the other fields. */
type Limit = (object: Resource) => Resource

/** undefined: the scope allows whole objects, so it does not limit their metadata. */
export function metadataLimit(caller: Caller | undefined, question: Question): Limit | undefined {
  const limited = limitedBy(caller, question)
  if (!limited) return undefined
  const { scope, verb, target } = limited
  return object => {
    const { namespace = '', name = '' } = object.metadata
    const one = { ...target, namespace, name }
    if (isCovered(scope, 'get', one) || isCovered(scope, verb, one)) return object
    return { ...object, metadata: withoutFieldValues(object.metadata) }
  }
}

/** The response to a read. */
export function limitResult(result: Result, caller: Caller | undefined, question: Question): Result {
  const limit = metadataLimit(caller, question)
  if (!limit || result.type === 'status') return result
  if (result.type === 'document') return { ...result, document: documentOf(limit(result.document.object)) }
  const items = result.list.items.map(({ object }) => documentOf(limit(object)))
  return { ...result, list: { ...result.list, items } }
}

const openFields = ['metadata.name', 'metadata.namespace']

/** A selector finds the value of a field by trying values. Throws 403 if the response would show only metadata. */
export function checkFieldSelector(caller: Caller | undefined, question: Question, query: Query): void {
  const selector = query.get('fieldSelector')
  const limited = selector ? limitedBy(caller, question) : undefined
  if (!selector || !limited || !rolesOf(limited.scope).some(({ role }) => role === 'platform-cli')) return
  const hidden = fieldsOf(selector).find(field => !openFields.includes(field))
  if (hidden === undefined) return
  const { group, resource } = limited.target
  const reason = `the scope of access key "${caller?.key}" allows only metadata, so it does not allow the field selector ${hidden}`
  const why = `${reason}; select by ${openFields.join(', ')} or labels`
  throw forbidden({ group, plural: resource, kind: resource }, '', why, [{ reason: 'KeyScopeDenied', message: reason }])
}

/** Whether the scope does not cover the request for whole objects. */
function limitedBy(
  caller: Caller | undefined,
  question: Question,
): { readonly scope: Scope; readonly verb: string; readonly target: Target } | undefined {
  if ('path' in question || !question.metadataOnly || !restricts(caller?.scope)) return undefined
  const { scope } = caller
  const { verb, target } = question
  return isCovered(scope, verb, target) ? undefined : { scope, verb, target }
}

const isCovered = (scope: Scope, verb: string, target: Target) =>
  allows(scope, { target: 'Management', act: { verb, ...target } }) !== undefined

/** The registry reports an invalid selector. */
function fieldsOf(selector: string): readonly string[] {
  try {
    return fieldsInSelector(selector)
  } catch (error) {
    if (error instanceof SelectorError) return []
    throw error
  }
}
