// Authenticates and authorizes each request, and authorizes open watches again (D18, D27).

import type { Caller } from '../api/caller.ts'
import { type ApiError, badRequest, forbidden, forbiddenPath, notFound } from '../api/errors.ts'
import type { Question } from '../api/kind.ts'
import type { Affects, PermissionVersions } from '../api/permissions.ts'
import type { Selection } from '../api/resources.ts'
import { type Authenticate, isGuess, missingKey, type Prepare } from '../auth/authn/authenticate.ts'
import { impersonate, isImpersonating } from '../auth/authn/impersonate.ts'
import { RejectedCredential } from '../auth/authn/rejected-credential.ts'
import type { Authorizer, Verdict } from '../auth/authz/authorize.ts'
import type { Issuer } from '../auth/tokens/issuer.ts'
import type { Audit } from '../serving/audit.ts'
import { rejectedCredential } from '../serving/audit-event.ts'
import { rejectDuplicateAuthorization } from '../serving/duplicate-authorization.ts'
import type { Exchange, Request } from '../serving/exchange.ts'
import { checkGuess, type UnknownKeyLimiter } from '../serving/unknown-key-limiter.ts'
import { checkFieldSelector } from './metadata-only.ts'
import type { KindFinder } from './request-info.ts'
import { cookieIn } from './sign-in/cookies.ts'
import { checkExpectedUser, checkSameOrigin } from './sign-in/same-origin.ts'

export type Access = {
  readonly authenticate: Authenticate
  readonly prepare: Prepare
  readonly authorizer: Authorizer
  /** The name of the team that a text refers to by name or username; otherwise the text (D23). */
  readonly teamNamed: (text: string) => string
  readonly issuer: Pick<Issuer, 'signedClaims'>
  readonly guard: UnknownKeyLimiter
  readonly audit: Audit
  /** A warning for the client, for example that its key expires soon. */
  readonly warningFor: (caller: Caller) => string | undefined
  /** The session cookie of browsers; absent: no cookie is accepted. */
  readonly cookie?: { readonly name: () => string; readonly publicUrl: string } | undefined
  readonly permissionVersions: PermissionVersions
  /** Whether the key of a caller is still valid, and gives the same identity. */
  readonly isCurrent: (caller: Caller) => boolean
  /** Calls back when permissions may have changed. Returns a function that stops it. */
  readonly permissionsChanged: (callback: (affects: Affects) => void) => () => void
}

/** The result for a request: everything it asked for, or only the objects that the filter keeps. */
export type AuthResult = { readonly caller: Caller | undefined; readonly verdict: Exclude<Verdict, { answer: 'no' }> }

/** Throws 401, 403, or 404 where even the name is not theirs to know. */
export function authorize(access: Access, exchange: Exchange, question: Question, find: KindFinder): AuthResult {
  const holder = holderOf(access, exchange, question)
  exchange.auditContext = access.audit.begin(exchange, question, holder)
  const result = authResultOf(access, exchange, question, find, holder)
  const warning = result.caller && access.warningFor(result.caller)
  if (warning) exchange.warn(warning)
  return result
}

/** Authenticates and authorizes again after a wait: for a turn, for the body, or for a resourceVersion. */
export function reauthorize(access: Access, exchange: Exchange, question: Question, find: KindFinder): AuthResult {
  const { request } = exchange
  const holder = access.authenticate(authorizationOf(access, request), true, connectionOf(request))
  return authResultOf(access, exchange, question, find, holder)
}

function authResultOf(
  access: Access,
  exchange: Exchange,
  question: Question,
  find: KindFinder,
  holder: Caller | undefined,
): AuthResult {
  const { auditContext } = exchange
  checkExpectedUser(exchange.request, holder?.username)
  const caller = actingAs(access, exchange, holder)
  const verdict = access.authorizer.authorize(caller, question)
  if (auditContext) {
    if (caller !== holder) auditContext.impersonated = caller
    auditContext.allowed = verdict.answer !== 'no'
    auditContext.reason = verdict.reason
  }
  if (verdict.answer !== 'no') {
    checkFieldSelector(caller, question, exchange.query)
    return { caller, verdict }
  }
  throw caller ? refusal(caller, question, { ...verdict, find }) : missingKey()
}

/** Whose key it is. Unknown ones are counted by where they come from, and refused there after too many. */
function holderOf(access: Access, exchange: Exchange, question: Question): Caller | undefined {
  const { authenticate, guard, audit } = access
  const { request } = exchange
  try {
    rejectDuplicateAuthorization(request)
    return authenticate(authorizationOf(access, request), false, connectionOf(request))
  } catch (error) {
    exchange.auditContext = audit.begin(exchange, question, undefined)
    if (error instanceof RejectedCredential) exchange.auditContext.noted = rejectedCredential(error.holder)
    if (isGuess(error)) {
      const address = guard.addressOf(request)
      checkGuess(guard, address)
      guard.failed(address)
    }
    throw error
  }
}

/** Waits for the verification of a token of an external issuer; undefined: nothing to wait for. */
export const prepare = (access: Access, { request }: Exchange): Promise<void> | undefined => {
  const { guard } = access
  const addressOf = () => guard.addressOf(request)
  try {
    return access.prepare(authorizationOf(access, request), connectionOf(request), addressOf)
  } catch {
    return undefined // authorize() throws it, and records it
  }
}

/** The credential of a request: its header, or the session cookie of a browser. Throws 400 for both, 403 for requests of other sites. */
function authorizationOf({ cookie }: Access, request: Request): string | undefined {
  const { authorization, cookie: sent } = request.headers
  const secret = sent === undefined || !cookie ? undefined : cookieIn(sent, cookie.name())
  if (secret === undefined) return authorization
  if (authorization !== undefined)
    throw badRequest('a request with a session cookie cannot have an Authorization header; send one of them')
  checkSameOrigin({ request }, cookie?.publicUrl ?? '')
  return `Bearer ${secret}`
}

/** HTTP/2 makes a socket for every request, and one session for all of a connection; one that was taken back has none. HTTP/0.9 is let in, too. */
const connectionOf = (request: Request): object =>
  request.httpVersionMajor < 2
    ? request.socket
    : ((request as unknown as { stream?: { session?: object } }).stream?.session ?? request)

/** Impersonation is never ignored: acting as oneself where somebody else was meant would be a privilege bug. */
function actingAs(access: Access, { request }: Exchange, caller: Caller | undefined): Caller | undefined {
  if (!isImpersonating(request.headers)) return caller
  if (!caller) throw missingKey()
  const decide = (question: Question) => access.authorizer.decide(caller, question)
  return impersonate(caller, request.headers, { decide, teamNamed: access.teamNamed })
}

type Refusal = Pick<Extract<Verdict, { answer: 'no' }>, 'reason' | 'byScope' | 'allowsMetadata'> & {
  readonly find: KindFinder
}

function refusal(
  { username }: Caller,
  question: Question,
  { reason, byScope, allowsMetadata, find }: Refusal,
): ApiError {
  const because = reason ? `: ${reason}` : ''
  // For programs. Only SelfSubjectReview describes the key, and only to its holder (D25).
  const causes = byScope ? [{ reason: 'KeyScopeDenied', message: reason }] : undefined
  if ('path' in question)
    return forbiddenPath(`User "${username}" cannot ${question.verb} path "${question.path}"${because}`, causes)
  const { group, resource, subresource, namespace, name = '' } = question.target
  const kind = find(group, 'v1', resource)
  // The answer to a request for more than metadata is the same for every name, so it need not hide that the object exists.
  if (kind?.ownerOnly && name !== '' && !allowsMetadata) return notFound(kind, name)
  const what = subresource ? `${resource}/${subresource}` : resource
  const where = namespace ? `in the namespace "${namespace}"` : 'at the cluster scope'
  const why = `User "${username}" cannot ${question.verb} resource "${what}" in API group "${group}" ${where}${because}`
  return forbidden({ group, plural: resource, kind: resource }, name, why, causes)
}

export type AuthorizedWatch = {
  /** The part of a selection that follows the caller's rights. */
  readonly selection: Pick<Selection, 'only' | 'among' | 'refilter'>
  /** Calls back when the watch is no longer allowed; at once if that is so already. */
  onDenied(callback: () => void): void
  /** Whether the caller may still watch. Listeners learn of a change later than the data that was written after it. */
  isAllowed(): boolean
  /** The caller with the current scope of the key. */
  caller(): Caller | undefined
  close(): void
}

type VisibleObjects = Pick<Extract<Verdict, { readonly answer: 'only' }>, 'filter' | 'among'>
const everything: VisibleObjects = { filter: () => true, among: () => undefined }

/** Authorizes an open watch again: after every change of permissions, and every second because keys expire. */
export function reauthorizeWatch(
  access: Access,
  exchange: Exchange,
  question: Question,
  first: AuthResult,
): AuthorizedWatch {
  let visible: VisibleObjects | undefined = first.verdict.answer === 'only' ? first.verdict : undefined
  const filtered = visible !== undefined
  let isDenied = false
  let stop: () => void = () => {}
  const deny = () => {
    isDenied = true
    stop()
  }
  let refilter: () => void = () => {}
  let { caller } = first
  const recheck = () => {
    const current = authorizeAgain(access, exchange, question)
    const { verdict } = current
    caller = current.caller
    if (verdict.answer === 'no' || (verdict.answer === 'only' && !filtered)) return deny()
    if (filtered) visible = verdict.answer === 'only' ? verdict : everything
  }
  const { permissionVersions: versions } = access
  let version = versions.current()
  const isAllowed = () => {
    const since = version
    version = versions.current()
    if (version !== since && (!caller || versions.isAffected(caller, since))) recheck()
    return !isDenied
  }
  const unsubscribe = access.permissionsChanged(affects => {
    // Groups of an impersonated user come from the request, and the right to impersonate from somebody else.
    if (caller && caller.impersonator === undefined && !affects(caller)) return
    recheck()
    refilter()
  })
  const timer = setInterval(recheck, 1000).unref()
  return {
    selection: filtered
      ? {
          only: object => isAllowed() && (visible?.filter(object) ?? false),
          among: () => visible?.among(),
          refilter: callback => {
            refilter = callback
            return () => {
              refilter = () => {}
            }
          },
        }
      : {},
    onDenied: callback => {
      stop = callback
      // The right may have been lost while the watch was being opened.
      if (isDenied) callback()
    },
    isAllowed,
    caller: () => caller,
    close: () => {
      unsubscribe()
      clearInterval(timer)
    },
  }
}

type Current = { readonly caller: Caller | undefined; readonly verdict: Verdict }

function authorizeAgain(access: Access, exchange: Exchange, question: Question): Current {
  try {
    const holder = access.authenticate(authorizationOf(access, exchange.request), true, connectionOf(exchange.request))
    const caller = actingAs(access, exchange, holder)
    checkFieldSelector(caller, question, exchange.query)
    return { caller, verdict: access.authorizer.authorize(caller, question) }
  } catch {
    return { caller: undefined, verdict: { answer: 'no', reason: '' } }
  }
}
