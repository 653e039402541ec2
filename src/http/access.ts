// Who asks and may they: once for a request, and again for as long as a watch is open (D18, D27).

import type { Caller } from '../api/caller.ts'
import { type ApiError, forbidden, forbiddenPath, notFound } from '../api/errors.ts'
import type { Question } from '../api/kind.ts'
import type { Filter, Selection } from '../api/resources.ts'
import { type Authenticate, missingKey } from '../auth/authenticate.ts'
import type { Authorizer, Verdict } from '../auth/authorize.ts'
import { impersonate, isImpersonating } from '../auth/impersonate.ts'
import type { Exchange } from '../serving/exchange.ts'
import type { KindFinder } from './request-info.ts'

export type Access = {
  readonly authenticate: Authenticate
  readonly authorizer: Authorizer
  /** What whoever comes should hear, such as that their key is about to end. */
  readonly warningFor: (caller: Caller) => string | undefined
  /** Calls back whenever somebody's rights may have changed; answers how to stop that. */
  readonly rightsChanged: (callback: () => void) => () => void
}

/** What a request is allowed: all it asked for, or only what the selection keeps. */
export type Standing = { readonly caller: Caller | undefined; readonly verdict: Exclude<Verdict, { answer: 'no' }> }

/** Throws 401, 403, or 404 where even the name is not theirs to know. */
export function judge(access: Access, exchange: Exchange, question: Question, find: KindFinder): Standing {
  const caller = identify(access, exchange, false)
  const warning = caller && access.warningFor(caller)
  if (warning) exchange.warnings.add(warning)
  const verdict = access.authorizer.authorize(caller, question)
  if (verdict.answer !== 'no') return { caller, verdict }
  throw caller ? refusal(caller, question, verdict.reason, find) : missingKey()
}

/** Impersonation is never ignored: acting as oneself where somebody else was meant would be a privilege bug. */
function identify({ authenticate, authorizer }: Access, { request }: Exchange, quietly: boolean): Caller | undefined {
  const caller = authenticate(request.headers.authorization, quietly)
  if (!isImpersonating(request.headers)) return caller
  if (!caller) throw missingKey()
  return impersonate(caller, request.headers, question => authorizer.judge(caller, question))
}

function refusal(caller: Caller, question: Question, reason: string, find: KindFinder): ApiError {
  const because = reason ? `: ${reason}` : ''
  const { username } = caller
  if ('path' in question)
    return forbiddenPath(`User "${username}" cannot ${question.verb} path "${question.path}"${because}`)
  const { group, resource, subresource, namespace, name = '' } = question.target
  const kind = find(group, 'v1', resource)
  if (kind?.personal && name !== '') return notFound(kind, name)
  const what = subresource ? `${resource}/${subresource}` : resource
  const where = namespace ? `in the namespace "${namespace}"` : 'at the cluster scope'
  const why = `User "${username}" cannot ${question.verb} resource "${what}" in API group "${group}" ${where}${because}`
  return forbidden({ group, plural: resource, kind: resource }, name, why)
}

export type Watching = {
  /** The part of a selection that follows the caller's rights. */
  readonly selection: Pick<Selection, 'only' | 'refilter'>
  /** Calls back once, when the watch may not go on. */
  onLost(callback: () => void): void
  close(): void
}

const lookEvery = 1000

/** Judges an open watch again: at every change of rights, and every second for keys that expire. */
export function keepJudging(access: Access, exchange: Exchange, question: Question, first: Standing): Watching {
  let filter: Filter | undefined = first.verdict.answer === 'only' ? first.verdict.filter : undefined
  const filtered = filter !== undefined
  let lost: () => void = () => {}
  let again: () => void = () => {}
  const look = () => {
    const verdict = currentVerdict(access, exchange, question)
    if (verdict.answer === 'no' || (verdict.answer === 'only' && !filtered)) return lost()
    if (filtered) filter = verdict.answer === 'only' ? verdict.filter : () => true
  }
  const unsubscribe = access.rightsChanged(() => {
    look()
    again()
  })
  const timer = setInterval(look, lookEvery).unref()
  return {
    selection: filtered
      ? {
          only: object => filter?.(object) ?? false,
          refilter: callback => {
            again = callback
            return () => {
              again = () => {}
            }
          },
        }
      : {},
    onLost: callback => {
      lost = callback
    },
    close: () => {
      unsubscribe()
      clearInterval(timer)
    },
  }
}

function currentVerdict(access: Access, exchange: Exchange, question: Question): Verdict {
  try {
    return access.authorizer.authorize(identify(access, exchange, true), question)
  } catch {
    return { answer: 'no', reason: '' }
  }
}
