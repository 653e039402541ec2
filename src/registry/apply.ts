// Server-side apply: checks the configuration, merges it with the stored object, and stores the result.

import {
  ApiError,
  badRequest,
  conflict,
  forbidden,
  invalid,
  invalidOptions,
  isEnough,
  required,
} from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import { wholeSchema } from '../api/metadata-schema.ts'
import {
  isObject,
  type Json,
  type JsonObject,
  type Metadata,
  type Ref,
  type Resource,
  timestamp,
} from '../api/object.ts'
import type { Document, PatchBody, WriteOptions } from '../api/resources.ts'
import { ApplyConflict, type ApplyRequest, applyConfiguration, applyConflictStatus } from '../smd/apply.ts'
import { TypedError } from '../smd/typed.ts'
import { trackUpdate } from '../smd/update.ts'
import { admit, observed } from './admission.ts'
import { withoutReplaced } from './alternatives.ts'
import { type Context, keyOf, requestOf } from './context.ts'
import { insert, withoutStatus } from './create.ts'
import { decodeObject } from './decode.ts'
import { checkMetadata, newMetadata } from './metadata.ts'
import { isPlain } from './object-codec.ts'
import { checkNameOnPath } from './request-path.ts'
import { fieldsOfConfiguration, maySee, secretFields, writtenBy } from './secret-fields.ts'
import { withTextStored } from './text-forms.ts'
import { rewrite } from './update.ts'

type Apply = Extract<PatchBody, { type: 'apply' }>

export async function apply(
  ctx: Context,
  kind: Kind,
  ref: Ref,
  body: Apply,
  options: WriteOptions,
): Promise<Document & { created?: boolean }> {
  if (!options.fieldManager)
    throw invalidOptions('PatchOptions', [required('fieldManager', 'is required for apply patch')])
  const sent = checkConfiguration(kind, ref, body.body)
  rejectManyErrors(kind, sent)
  const config = withTextStored(kind, sent as unknown as JsonObject) as unknown as Resource
  for (let attempt = 0; ; attempt++) {
    const exists = ctx.store.get(keyOf(kind, ref)) !== undefined
    try {
      if (exists || options.subresource) return await mergeInto(ctx, kind, ref, config, body.force, options)
      ctx.check?.target?.(undefined)
      return Object.assign(await createBy(ctx, kind, ref, config, body.force, options), { created: true })
    } catch (error) {
      // Another request created or deleted the object in between, so retry with the other operation.
      const isRace = error instanceof ApiError && error.status.reason === (exists ? 'NotFound' : 'AlreadyExists')
      if (!isRace || attempt >= 5) throw error
    }
  }
}

async function mergeInto(
  ctx: Context,
  kind: Kind,
  ref: Ref,
  config: Resource,
  force: boolean,
  options: WriteOptions,
): Promise<Document> {
  const { apiVersion: _, kind: __, metadata: ___, ...fields } = config as unknown as JsonObject
  return rewrite(ctx, kind, ref, options, old => {
    const written = writtenBy(secretFields(ctx, kind, ref), config as unknown as Json)
    const callerCannotGet = !maySee(ctx, kind, ref)
    const guessable = callerCannotGet ? fieldsOfConfiguration(wholeSchema(kind), fields) : []
    checkVersion(kind, ref, config.metadata, old)
    const applied = { live: old, config, force, written: [...written, ...guessable] }
    const merged = replaceAlternatives(ctx, kind, merge(ctx, kind, applied, { ...options, callerCannotGet }), {
      config,
      options,
    })
    const { resourceVersion: ____, managedFields = [], ...metadata } = merged.metadata
    return {
      ...decodeObject(kind, { ...merged, metadata } as unknown as Json, { ...options, fieldValidation: 'Ignore' }),
      managedFields,
      written,
      callerCannotGet: callerCannotGet && Object.keys(fields).length > 0,
    }
  })
}

async function createBy(
  ctx: Context,
  kind: Kind,
  ref: Ref,
  config: Resource,
  force: boolean,
  options: WriteOptions,
): Promise<Document> {
  if (config.metadata.uid)
    throw conflict(
      kind,
      ref.name,
      `uid mismatch: the provided object specified uid ${config.metadata.uid}, and no existing object was found`,
    )
  const request = requestOf(ctx, options)
  checkCreatePermission(ctx, kind, ref)
  const merged = merge(ctx, kind, { live: undefined, config, force, written: [] }, options)
  const { object, errors } = decodeObject(kind, merged as unknown as Json, { ...options, fieldValidation: 'Ignore' })
  const fresh = newMetadata(object.metadata, { namespace: ref.namespace, uid: ctx.uuid(), now: timestamp(ctx.now()) })
  const next = withoutStatus({ ...object, metadata: { ...fresh, name: ref.name } })
  const admitted = await admit(ctx, { kind, next, old: undefined, errors, request })
  const { managedFields = [] } = merged.metadata
  const metadata = { ...admitted.object.metadata, ...(managedFields.length ? { managedFields } : {}) }
  const complete = observed(ctx, kind, { ...admitted.object, metadata }, undefined)
  return insert(ctx, kind, { ...admitted, object: complete }, request.dryRun)
}

/** An apply that creates also needs permission to create. */
function checkCreatePermission({ authorize, caller }: Context, kind: Kind, { namespace }: Ref): void {
  const { allowed } = authorize(caller, {
    verb: 'create',
    target: { group: kind.group, resource: kind.plural, namespace },
  })
  if (allowed) return
  const where = namespace ? `in the namespace "${namespace}"` : 'at the cluster scope'
  throw forbidden(
    kind,
    '',
    `User "${caller.username}" cannot create resource "${kind.plural}" in API group "${kind.group}" ${where}`,
  )
}

const envelope = ['apiVersion', 'kind', 'metadata']
/** Prints a value of any type where the message expects a string. */
const wordOf = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value))

/** Rejects an invalid configuration before the merge. */
function checkConfiguration(kind: Kind, ref: Ref, body: Json): Resource {
  if (!isObject(body)) throw badRequest('error decoding YAML: an apply configuration is an object')
  const { apiVersion = '', kind: word = '' } = body
  if (apiVersion !== kind.apiVersion || word !== kind.kind)
    throw badRequest(`invalid object type: ${wordOf(apiVersion) || '/'}, Kind=${wordOf(word)}`)
  const unknown = Object.keys(body).filter(key => !envelope.includes(key) && !Object.hasOwn(kind.fields, key))
  if (isEnough(unknown))
    throw badRequest(`failed to create typed patch object: ${unknown.length} fields not declared in schema`)
  const metadata = (body.metadata ?? {}) as Metadata
  if (!isObject(metadata)) throw badRequest('metadata must be an object')
  if (metadata.managedFields !== undefined && metadata.managedFields !== null)
    throw badRequest('metadata.managedFields must be nil')
  checkNameOnPath(kind, ref, metadata)
  return {
    ...body,
    metadata: { ...metadata, name: ref.name, ...(ref.namespace ? { namespace: ref.namespace } : {}) },
  } as unknown as Resource
}

/**
 * Merging a 3 MiB body costs a hundred times more than decoding it. Reject a body with many errors before the merge.
 */
function rejectManyErrors(kind: Kind, config: Resource): void {
  const { object, errors } = decodeObject(kind, config as unknown as Json, { fieldValidation: 'Ignore' })
  // The merge would respond with 400 to an unknown field. If the field could lift a restriction, respond with 422
  // (D25).
  if (errors.some(({ reason }) => reason === 'FieldValueForbidden'))
    throw invalid(kind, config.metadata.name ?? '', errors)
  const all = errors.length
    ? errors
    : [...checkMetadata(kind, object.metadata, () => {}), ...(kind.validate?.(object, undefined) ?? [])]
  if (isEnough(all)) throw invalid(kind, config.metadata.name ?? '', all)
}

function checkVersion(kind: Kind, ref: Ref, { resourceVersion, uid }: Metadata, old: Resource): void {
  if (resourceVersion && resourceVersion !== old.metadata.resourceVersion) throw conflict(kind, ref.name)
  if (uid && uid !== old.metadata.uid)
    throw conflict(
      kind,
      ref.name,
      `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${old.metadata.uid}`,
    )
}

function merge(
  ctx: Context,
  kind: Kind,
  applied: Pick<ApplyRequest, 'live' | 'config' | 'force' | 'written'>,
  options: WriteOptions & { readonly callerCannotGet?: boolean },
): Resource {
  try {
    return applyConfiguration({
      ...applied,
      schema: wholeSchema(kind),
      manager: options.fieldManager as string,
      subresource: options.subresource ?? '',
      apiVersion: kind.apiVersion,
      now: timestamp(ctx.now()),
      resetStatus: true,
    }).object
  } catch (error) {
    if (options.callerCannotGet && error instanceof ApplyConflict) throw redactedConflict()
    throw toApiError(kind, applied.config, error)
  }
}

/** Removes the alternatives that the configuration replaces, also from the fields of their managers. */
function replaceAlternatives(
  ctx: Context,
  kind: Kind,
  merged: Resource,
  { config, options }: { readonly config: Resource; readonly options: WriteOptions },
): Resource {
  const body = { type: 'apply', body: config as unknown as Json, force: false } as const
  const kept = withoutReplaced(kind, merged as unknown as Json, body) as unknown as Resource
  if (kept === merged) return merged
  const managedFields = trackUpdate({
    schema: wholeSchema(kind),
    before: merged,
    after: kept,
    manager: options.fieldManager as string,
    subresource: '',
    apiVersion: kind.apiVersion,
    now: timestamp(ctx.now()),
    resetStatus: true,
  })
  return { ...kept, metadata: { ...kept.metadata, managedFields } }
}

/** Hides the managers, fields and their number from callers without permission to get the object. */
const redactedConflict = () =>
  new ApiError(409, 'Conflict', 'Apply failed with conflicts: other managers own fields of this configuration')

function toApiError(kind: Kind, config: Resource, error: unknown): unknown {
  if (error instanceof ApplyConflict) {
    const { message, causes } = applyConflictStatus(error)
    return new ApiError(409, 'Conflict', message, { details: { causes } })
  }
  if (error instanceof TypedError) {
    // Upstream prints the rejected value. Hide it, because it may be a secret.
    const detail = isPlain(kind)
      ? error.message
      : error.problems.map(one => one.replace(/, got .*$/s, ', got <hidden>')).join('\n')
    return badRequest(
      `failed to create typed ${error.subject === 'live' ? 'live' : 'patch'} object (${config.metadata.namespace ?? ''}/${config.metadata.name}; ${kind.apiVersion}, Kind=${kind.kind}): ${detail}`,
    )
  }
  return error
}
