// Translates store errors to API errors.

import {
  alreadyExists,
  badRequest,
  conflict,
  expired,
  notFound,
  tooLarge,
  unavailable,
  unknownOutcome,
} from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import { StoreError } from '../storage/store.ts'

export function translate(error: unknown, kind: Kind, name: string): unknown {
  if (!(error instanceof StoreError)) return error
  switch (error.reason) {
    case 'exists':
      return alreadyExists(kind, name)
    case 'missing':
      return notFound(kind, name)
    case 'conflict':
      return conflict(kind, name)
    case 'compacted':
      return expired('The resourceVersion for the provided list is too old.')
    case 'future':
      return badRequest('invalid continue token: this server never returned its revision')
    case 'unknown':
      return unknownOutcome(error.message)
    case 'tooLarge':
      return tooLarge(`Request entity too large: ${error.message}`)
    case 'notLeader':
    case 'unavailable':
      return unavailable(`the server cannot store changes now: ${error.message}`)
  }
}

export const isConflict = (error: unknown) =>
  error instanceof StoreError && (error.reason === 'conflict' || error.reason === 'missing')
