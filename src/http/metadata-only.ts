// Recognizes reads whose response shows only metadata of the objects. Some scopes allow no others (D25).

import { ApiError } from '../api/errors.ts'
import type { Question } from '../api/kind.ts'
import type { Exchange } from '../serving/exchange.ts'
import { isPlain, negotiate, shapeOf } from './negotiate.ts'
import { includeOf } from './table.ts'

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
