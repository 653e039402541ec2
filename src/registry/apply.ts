// Server-side apply: checks the configuration, merges it with what is there, and stores it as any write is stored.

import { ApiError, badRequest, conflict, forbidden, invalidOptions, required } from '../api/errors.ts'
import type { Kind, Tools } from '../api/kind.ts'
import { wholeSchema } from '../api/metadata-schema.ts'
import { isObject, type Json, type Metadata, type Ref, type Resource, timestamp } from '../api/object.ts'
import type { Document, PatchBody, WriteOptions } from '../api/resources.ts'
import { admit } from './admit.ts'
import { type Context, keyOf } from './context.ts'
import { insert, withoutStatus } from './create.ts'
import { ApplyConflict, applyConfiguration, applyConflictStatus } from './merge-apply.ts'
import { newMetadata } from './metadata.ts'
import { receive } from './receive.ts'
import { isPlain } from './redact.ts'
import { TypedError } from './typed.ts'
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
  const config = checkConfiguration(kind, ref, body.body)
  if (ctx.store.get(keyOf(kind, ref)) || options.subresource)
    return rewrite(ctx, kind, ref, options, old => {
      checkVersion(kind, ref, config.metadata, old)
      const merged = merge(ctx, kind, old, config, body.force, options)
      const { resourceVersion: _, managedFields = [], ...metadata } = merged.metadata
      return {
        ...receive(kind, { ...merged, metadata } as unknown as Json, { ...options, fieldValidation: 'Ignore' }),
        managedFields,
      }
    })
  return Object.assign(await createBy(ctx, kind, ref, config, body.force, options), { created: true })
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
  const tools = ctx.tools({ dryRun: options.dryRun ?? false, warn: options.warn ?? (() => {}) })
  await mustCreate(kind, ref, tools)
  const merged = merge(ctx, kind, undefined, config, force, options)
  const { object, errors } = receive(kind, merged as unknown as Json, { ...options, fieldValidation: 'Ignore' })
  const fresh = newMetadata(object.metadata, { namespace: ref.namespace, uid: ctx.uuid(), now: timestamp(ctx.now()) })
  const next = withoutStatus({ ...object, metadata: { ...fresh, name: ref.name } })
  const admitted = await admit(ctx, { kind, next, old: undefined, errors, tools })
  const { managedFields = [] } = merged.metadata
  const metadata = { ...admitted.object.metadata, ...(managedFields.length ? { managedFields } : {}) }
  return insert(ctx, kind, { ...admitted.object, metadata }, { dryRun: tools.dryRun, shown: admitted.shown })
}

/** An apply that creates needs to be allowed that as well. */
async function mustCreate(kind: Kind, { namespace }: Ref, tools: Tools): Promise<void> {
  const { allowed } = await tools.judge({
    verb: 'create',
    target: { group: kind.group, resource: kind.plural, namespace },
  })
  if (allowed) return
  const where = namespace ? `in the namespace "${namespace}"` : 'at the cluster scope'
  throw forbidden(
    kind,
    '',
    `User "${tools.caller.username}" cannot create resource "${kind.plural}" in API group "${kind.group}" ${where}`,
  )
}

/** What is not a configuration of this object is refused before anything is merged. */
function checkConfiguration(kind: Kind, ref: Ref, body: Json): Resource {
  if (!isObject(body)) throw badRequest('error decoding YAML: an apply configuration is an object')
  const { apiVersion = '', kind: word = '' } = body
  if (apiVersion !== kind.apiVersion || word !== kind.kind)
    throw badRequest(`invalid object type: ${apiVersion || '/'}, Kind=${word}`)
  const metadata = (body.metadata ?? {}) as Metadata
  if (!isObject(metadata)) throw badRequest('metadata must be an object')
  if (metadata.managedFields !== undefined && metadata.managedFields !== null)
    throw badRequest('metadata.managedFields must be nil')
  if (metadata.name && metadata.name !== ref.name)
    throw badRequest(`the name of the object (${metadata.name}) does not match the name on the URL (${ref.name})`)
  if (kind.namespaced && metadata.namespace && metadata.namespace !== ref.namespace)
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request')
  return {
    ...body,
    metadata: { ...metadata, name: ref.name, ...(ref.namespace ? { namespace: ref.namespace } : {}) },
  } as unknown as Resource
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
  live: Resource | undefined,
  config: Resource,
  force: boolean,
  options: WriteOptions,
): Resource {
  try {
    return applyConfiguration({
      schema: wholeSchema(kind),
      live,
      config,
      manager: options.fieldManager as string,
      force,
      subresource: options.subresource ?? '',
      apiVersion: kind.apiVersion,
      now: timestamp(ctx.now()),
      resetStatus: true,
    }).object
  } catch (error) {
    throw refusal(kind, config, error)
  }
}

function refusal(kind: Kind, config: Resource, error: unknown): unknown {
  if (error instanceof ApplyConflict) {
    const { message, causes } = applyConflictStatus(error)
    return new ApiError(409, 'Conflict', message, { details: { causes } })
  }
  if (error instanceof TypedError) {
    // Upstream prints the value it cannot use; where it may be a secret, ours does not.
    const said = isPlain(kind)
      ? error.message
      : error.problems.map(one => one.replace(/, got .*$/s, ', got <hidden>')).join('\n')
    return badRequest(
      `failed to create typed ${error.subject === 'live' ? 'live' : 'patch'} object (${config.metadata.namespace ?? ''}/${config.metadata.name}; ${kind.apiVersion}, Kind=${kind.kind}): ${said}`,
    )
  }
  return error
}
