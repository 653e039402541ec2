// Defines all API errors, as Kubernetes Status objects (D6).

import type { JsonObject } from './object.ts'

export type Cause = { readonly reason: string; readonly message: string; readonly field?: string }

export type StatusDetails = {
  readonly name?: string
  readonly group?: string
  readonly kind?: string
  readonly uid?: string
  readonly causes?: readonly Cause[]
  readonly retryAfterSeconds?: number
}

export type Status = {
  readonly kind: 'Status'
  readonly apiVersion: 'v1'
  readonly metadata: { readonly continue?: string }
  readonly status: 'Success' | 'Failure'
  readonly message?: string
  readonly reason?: string
  readonly details?: StatusDetails
  readonly code?: number
}

/** An error with its response. The server treats any other thrown value as a bug and responds with a bare 500. */
export class ApiError extends Error {
  readonly status: Status & { readonly code: number }
  constructor(
    code: number,
    reason: string,
    message: string,
    extra: { details?: StatusDetails; continue?: string } = {},
  ) {
    // Skip the stack trace: nobody reads it, and it is the most expensive part of the error.
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super(message)
    Error.stackTraceLimit = stackTraceLimit
    this.name = 'ApiError'
    const metadata = extra.continue === undefined ? {} : { continue: extra.continue }
    const base = { kind: 'Status', apiVersion: 'v1', metadata, status: 'Failure', message, reason } as const
    this.status = extra.details ? { ...base, details: extra.details, code } : { ...base, code }
  }
  get code(): number {
    return this.status.code
  }
  get reason(): string | undefined {
    return this.status.reason
  }
  get details(): StatusDetails | undefined {
    return this.status.details
  }
}

/** Names in an error: plural and group for most, the kind for Invalid. */
export type Named = { readonly group: string; readonly plural: string; readonly kind: string }

const dotted = (group: string, word: string) => (group ? `${word}.${group}` : word)
const plural = (of: Named) => dotted(of.group, of.plural)
const about = (of: Named, name: string, extra: StatusDetails = {}): StatusDetails => ({
  ...(name ? { name } : {}),
  ...(of.group ? { group: of.group } : {}),
  kind: of.plural,
  ...extra,
})

export const badRequest = (message: string) => new ApiError(400, 'BadRequest', message)
export const unauthorized = (message = 'Unauthorized') => new ApiError(401, 'Unauthorized', message)
export const notAcceptable = (types: readonly string[]) =>
  new ApiError(406, 'NotAcceptable', `only the following media types are accepted: ${types.join(', ')}`)
export const unsupportedMediaType = (types: readonly string[]) =>
  new ApiError(
    415,
    'UnsupportedMediaType',
    `the body of the request was in an unknown format - accepted media types include: ${types.join(', ')}`,
  )
export const tooLarge = (message: string) => new ApiError(413, 'RequestEntityTooLarge', message)
export const misdirected = (message: string) => new ApiError(421, 'MisdirectedRequest', message)
export const expired = (message: string, next?: string) =>
  new ApiError(410, 'Expired', message, next === undefined ? {} : { continue: next })
export const unknownPath = () =>
  new ApiError(404, 'NotFound', 'the server could not find the requested resource', { details: {} })
export const internal = () =>
  new ApiError(
    500,
    'InternalError',
    'Internal error occurred; the server has logged it under the Audit-Id of this response',
  )
/** The stored data is damaged or was changed. Unlike other internal errors, the response contains the cause (D28). */
export const undecryptable = (of: Named, name: string, message: string) =>
  new ApiError(500, 'InternalError', message, { details: about(of, name, { causes: [{ reason: broken, message }] }) })
export const isUndecryptable = (error: unknown): error is ApiError =>
  error instanceof ApiError && error.status.details?.causes?.[0]?.reason === broken
const broken = 'SealBroken'
/** For `catch`: the object does not exist. Throws any other error again. */
export function ignoreNotFound(error: unknown): undefined {
  if (!(error instanceof ApiError) || error.code !== 404) throw error
}
/** Only a Status of the API server counts. A bare 404 may come from a proxy and proves nothing. */
export const isNotFound = (error: unknown): error is ApiError =>
  error instanceof ApiError && error.code === 404 && error.status.reason === 'NotFound'
/** For `catch`: another writer deleted or changed the object first. Throws any other error again. */
export function ignoreConflict(error: unknown): undefined {
  if (!(error instanceof ApiError) || error.code !== 409) return ignoreNotFound(error)
}
export const unavailable = (message: string) =>
  new ApiError(503, 'ServiceUnavailable', message, { details: { retryAfterSeconds: 1 } })
export const timedOut = () =>
  new ApiError(504, 'Timeout', 'Timeout: request did not complete within the allotted timeout', { details: {} })
/** The server may have stored the change, or may do so later. */
export const unknownOutcome = (message: string) =>
  new ApiError(504, 'Timeout', `the outcome of the write is unknown: ${message}; read the object before you retry`, {
    details: { causes: [{ reason: 'UnknownOutcome', message }] },
  })
export const tooManyRequests = () =>
  new ApiError(429, 'TooManyRequests', 'Too many requests, please try again later.', {
    details: { retryAfterSeconds: 1 },
  })
/** `seconds`: until the client may retry. */
export const tooManyGuesses = (seconds: number) =>
  new ApiError(429, 'TooManyRequests', `too many unknown keys from this address; retry in ${seconds} s`, {
    details: { retryAfterSeconds: seconds },
  })
export const futureRevision = (requested: string, current: string) =>
  new ApiError(504, 'Timeout', `Timeout: Too large resource version: ${requested}, current: ${current}`, {
    details: {
      causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
      retryAfterSeconds: 1,
    },
  })

export const notFound = (of: Named, name: string) =>
  new ApiError(404, 'NotFound', `${plural(of)} "${name}" not found`, { details: about(of, name) })
export const alreadyExists = (of: Named, name: string, terminating = false) =>
  new ApiError(
    409,
    'AlreadyExists',
    `${terminating ? 'object is being deleted: ' : ''}${plural(of)} "${name}" already exists`,
    {
      details: about(of, name),
    },
  )
export const nameNotGenerated = (of: Named, name: string) =>
  new ApiError(
    409,
    'AlreadyExists',
    `${plural(of)} "${name}" already exists, the server was not able to generate a unique name for the object`,
    { details: about(of, name, { retryAfterSeconds: 1 }) },
  )
export const conflict = (of: Named, name: string, why = modified, causes?: readonly Cause[]) =>
  new ApiError(409, 'Conflict', `Operation cannot be fulfilled on ${plural(of)} "${name}": ${why}`, {
    details: about(of, name, causes ? { causes } : {}),
  })
/** Permissions were changed again and again while the request was checked, or gave the caller another identity. */
export const permissionsChanged = () =>
  new ApiError(409, 'Conflict', 'permissions changed while the request was processed; try again', {
    details: { retryAfterSeconds: 1 },
  })
/** A failed delete precondition contains the kind, as in Kubernetes. */
export const preconditionFailed = (of: Named, name: string, why: string) =>
  new ApiError(409, 'Conflict', `Operation cannot be fulfilled on ${dotted(of.group, of.kind)} "${name}": ${why}`, {
    details: { name, group: of.group, kind: of.kind },
  })
const modified = 'the object has been modified; please apply your changes to the latest version and try again'

export const forbidden = (of: Named, name: string, why: string, causes?: readonly Cause[]) =>
  new ApiError(403, 'Forbidden', `${plural(of)}${name ? ` "${name}"` : ''} is forbidden: ${why}`, {
    details: about(of, name, causes ? { causes } : {}),
  })
export const forbiddenPath = (message: string, causes?: readonly Cause[]) =>
  new ApiError(403, 'Forbidden', `forbidden: ${message}`, { details: causes ? { causes } : {} })
export const methodNotAllowed = (verb: string, of: Named) =>
  new ApiError(405, 'MethodNotAllowed', `${verb} is not supported on resources of kind "${plural(of)}"`, {
    details: about(of, ''),
  })

export type FieldError = Cause & { readonly field: string }
const fieldError = (reason: string, text: string) => (field: string, message: string) => ({
  reason,
  field,
  message: message ? `${text}: ${message}` : text,
})
/** Formats a value for a message. Cuts long values, which would otherwise repeat a large body several times. */
function shown(value: unknown): string {
  if (typeof value === 'string' && value.length > maxShown)
    return cut(JSON.stringify(value.slice(0, maxShown)), value.length)
  return cut(value === undefined ? 'null' : JSON.stringify(value))
}
const maxShown = 512
/** `length`: of the text before any earlier cut. */
export const cut = (text: string, length = text.length): string =>
  length > maxShown ? `${text.slice(0, maxShown)}… (${length} characters)` : text
export const required = fieldError('FieldValueRequired', 'Required value')
export const fieldForbidden = fieldError('FieldValueForbidden', 'Forbidden')
export const invalidValue = (field: string, value: unknown, message: string): FieldError => ({
  reason: 'FieldValueInvalid',
  field,
  message: `Invalid value: ${shown(value)}: ${message}`,
})
/** For values that may be secret: the message does not contain the value. */
export const invalidSecret = (field: string, message: string): FieldError => ({
  reason: 'FieldValueInvalid',
  field,
  message: `Invalid value: <hidden>: ${message}`,
})
export const wrongType = (field: string, expected: string, actual: string, hint = ''): FieldError => ({
  reason: 'FieldValueTypeInvalid',
  field,
  message: `Invalid value: "${actual}": ${field} in body must be of type ${expected}: "${actual}"${hint}`,
})
export const notSupported = (field: string, value: unknown, supported: readonly string[]): FieldError => ({
  reason: 'FieldValueNotSupported',
  field,
  message: `Unsupported value: ${shown(value)}: supported values: ${supported.map(one => JSON.stringify(one)).join(', ')}`,
})
export const tooLongReason = 'FieldValueTooLong'
export const tooLong = (field: string, bytes: number): FieldError => ({
  reason: tooLongReason,
  field,
  message: `Too long: may not be more than ${bytes} bytes`,
})
export const tooManyReason = 'FieldValueTooMany'
export const tooMany = (field: string, actual: number, most: number): FieldError => ({
  reason: tooManyReason,
  field,
  message: `Too many: ${actual}: must have at most ${most} items`,
})
export const duplicateValue = (field: string, value: unknown): FieldError => ({
  reason: 'FieldValueDuplicate',
  field,
  message: `Duplicate value: ${shown(value)}`,
})

/** A 3 MiB body can have a million errors. Validation stops after this number. */
export const maxErrors = 100
export const isEnough = (errors: readonly unknown[]): boolean => errors.length > maxErrors

/** A 422 with all field errors, up to a limit. The message has each text once, the causes have all errors. */
export function invalid(
  of: { readonly group: string; readonly kind: string },
  name: string,
  errors: readonly FieldError[],
): ApiError {
  const listed = errors.slice(0, maxErrors).map(shortened)
  const texts = [...new Set(listed.map(error => `${error.field}: ${error.message}`))]
  if (isEnough(errors)) texts.push(`and more than ${maxErrors} errors`)
  const list = texts.length === 1 ? texts[0] : `[${texts.join(', ')}]`
  return new ApiError(422, 'Invalid', `${dotted(of.group, of.kind)} "${name.slice(0, 512)}" is invalid: ${list}`, {
    details: { ...(name ? { name: name.slice(0, 512) } : {}), group: of.group, kind: of.kind, causes: listed },
  })
}

/** Some messages quote names of any length, which would otherwise repeat a large body. */
function shortened(error: FieldError): FieldError {
  const { message } = error
  return message.length > maxMessage ? { ...error, message: `${message.slice(0, maxMessage)}…` } : error
}
const maxMessage = 4096

/** Kubernetes reports invalid query options on the options object. */
export const invalidOptions = (
  options: 'CreateOptions' | 'UpdateOptions' | 'PatchOptions' | 'DeleteOptions' | 'ListOptions',
  errors: readonly FieldError[],
) => invalid({ group: 'meta.k8s.io', kind: options }, '', errors)

/** A failed JSON Patch operation: the message of upstream, with the operation and its path as a cause. */
export const patchFailed = (causes: readonly Cause[]) =>
  new ApiError(422, 'Invalid', 'the server rejected our request due to an error in our request', {
    details: { causes },
  })

export const success = (details: StatusDetails): Status => ({
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Success',
  details,
})

export const statusJson = (status: Status): JsonObject => status as unknown as JsonObject
