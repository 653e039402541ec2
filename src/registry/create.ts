// Creates an object (POST).

import type { Admitted, RequestContext } from '../api/admission.ts'
import { ApiError, alreadyExists, badRequest, type FieldError, nameNotGenerated } from '../api/errors.ts'
import type { Kind } from '../api/kind.ts'
import { wholeSchema } from '../api/metadata-schema.ts'
import { type Json, type Metadata, type Resource, timestamp } from '../api/object.ts'
import { parseStored } from '../api/parse-cache.ts'
import { type Document, documentOf, type WriteOptions } from '../api/resources.ts'
import { trackUpdate } from '../smd/update.ts'
import type { Entry, Op } from '../storage/store.ts'
import { admit, observed } from './admission.ts'
import { commitNew } from './companion-writes.ts'
import { type Context, keyOf, requestOf, spaceOf } from './context.ts'
import { decodeObject } from './decode.ts'
import { newMetadata } from './metadata.ts'
import { encodeWrite, presentStored, visible } from './object-codec.ts'
import { checkNamespaceOnPath } from './request-path.ts'
import { translate } from './store-errors.ts'

export async function create(
  ctx: Context,
  kind: Kind,
  namespace: string,
  sent: Json,
  options: WriteOptions = {},
): Promise<Document> {
  const { object, errors } = decodeObject(kind, sent, options)
  const request = requestOf(ctx, options)
  const space = spaceOf(kind, namespace)
  checkSent(kind, object.metadata, space)
  if (!kind.stored) {
    const next = withoutStatus(kind.hasIdentity ? { ...object, metadata: identify(ctx, object.metadata) } : object)
    const admitted = await admit(ctx, { kind, next, old: undefined, errors, request })
    const answer = ctx.admissions.get(kind)?.answer
    // In the order of the answer: a preview of an object keeps the order of its fields.
    return documentOf(answer ? await answer(admitted.object, request) : admitted.object, JSON.stringify)
  }
  const fresh = newMetadata(object.metadata, { namespace: space, uid: ctx.uuid(), now: timestamp(ctx.now()) })
  const prefix = fresh.name ? undefined : (fresh.generateName ?? kind.generateNamePrefix)
  if (prefix === undefined) {
    const next = withoutStatus({ ...object, metadata: fresh })
    return insert(ctx, kind, await complete(ctx, kind, { next, errors, request, options }), request.dryRun)
  }
  // Defaults may depend on the name, so a generated name that is taken needs new defaults too.
  for (let attempt = 0; ; attempt++) {
    const name = generate(prefix, ctx.random)
    const isTaken = ctx.store.get(keyOf(kind, { namespace: space, name })) !== undefined
    if (isTaken && attempt >= 7) throw nameNotGenerated(kind, name)
    if (isTaken) continue
    const next = withoutStatus({ ...object, metadata: { ...fresh, generateName: prefix, name } })
    try {
      return await insert(ctx, kind, await complete(ctx, kind, { next, errors, request, options }), request.dryRun)
    } catch (error) {
      if (!(error instanceof ApiError) || error.status.reason !== 'AlreadyExists') throw error
      if (attempt >= 7) throw nameNotGenerated(kind, name)
    }
  }
}

/** The metadata of an object that is not stored: as for a new object, without what only stored ones have. */
function identify(ctx: Context, sent: Metadata): Metadata {
  const { generation: _, ...metadata } = newMetadata(sent, {
    namespace: '',
    uid: ctx.uuid(),
    now: timestamp(ctx.now()),
  })
  const { name, generateName } = metadata
  return name || !generateName ? metadata : { ...metadata, name: generate(generateName, ctx.random) }
}

type New = {
  readonly next: Resource
  readonly errors: readonly FieldError[]
  readonly request: RequestContext
  readonly options: WriteOptions
}

/** Builds the complete object to store. */
async function complete(ctx: Context, kind: Kind, { next, errors, request, options }: New): Promise<Admitted> {
  const admitted = await admit(ctx, { kind, next, old: undefined, errors, request })
  const managedFields = trackUpdate({
    schema: wholeSchema(kind),
    before: undefined,
    after: admitted.object,
    manager: options.fieldManager ?? 'unknown',
    subresource: '',
    apiVersion: kind.apiVersion,
    now: timestamp(ctx.now()),
    resetStatus: true,
  })
  const metadata = { ...admitted.object.metadata, ...(managedFields.length ? { managedFields } : {}) }
  return { ...admitted, object: observed(ctx, kind, { ...admitted.object, metadata }, undefined) }
}

/** Stores a new object, also for an apply that creates. Returns it as its creator sees it. */
export async function insert(
  ctx: Context,
  kind: Kind,
  { object, companions: more, preconditions, shown }: Admitted,
  dryRun: boolean,
): Promise<Document> {
  try {
    const key = keyOf(kind, { namespace: object.metadata.namespace ?? '', name: object.metadata.name as string })
    const stored = ctx.store.get(key)
    if (stored) throw alreadyExists(kind, key.name, isTerminating(stored))
    const value = encodeWrite(ctx, kind, object)
    if (dryRun) return documentOf(visible(ctx, kind, object))
    const write: Op = { type: 'put', key, value, expect: 0 }
    const revision = await commitNew(ctx, kind, write, { old: undefined, next: object, more, preconditions })
    return presentStored(ctx, kind, { object, value, revision }, shown)
  } catch (error) {
    throw translate(error, kind, object.metadata.name ?? '')
  }
}

function checkSent(kind: Kind, metadata: Metadata, namespace: string): void {
  checkNamespaceOnPath(kind, namespace, metadata)
  if (metadata.resourceVersion) throw badRequest('resourceVersion should not be set on objects to be created')
}

/** Clients cannot set the status of a new object (D9). */
export function withoutStatus(object: Resource): Resource {
  const { status: _, ...rest } = object
  return rest
}

const isTerminating = (entry: Entry) => parseStored(entry.text).metadata.deletionTimestamp !== undefined

const letters = 'bcdfghjklmnpqrstvwxz2456789'

/** The prefix, shortened to the maximum length, and five random characters without vowels. */
function generate(prefix: string, random: (bytes: number) => Uint8Array): string {
  const suffix = Array.from(random(5), byte => letters[byte % letters.length]).join('')
  return prefix.slice(0, 58) + suffix
}
