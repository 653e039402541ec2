// POST of a new object, in the order it happens. http/verbs.ts, controllers and tests call it through Resources.

import { alreadyExists, badRequest, nameNotGenerated } from '../api/errors.ts'
import type { Kind, Shown } from '../api/kind.ts'
import { wholeSchema } from '../api/metadata-schema.ts'
import { type Json, type Metadata, type Resource, timestamp } from '../api/object.ts'
import { type Document, documentOf, type WriteOptions } from '../api/resources.ts'
import { type Entry, type Key, StoreError, type Value } from '../storage/store.ts'
import { admit } from './admit.ts'
import { type Context, keyOf, spaceOf } from './context.ts'
import { trackUpdate } from './managed-fields.ts'
import { newMetadata } from './metadata.ts'
import { receive } from './receive.ts'
import { encode, presentStored, visible } from './redact.ts'
import { translate } from './store-errors.ts'

export async function create(
  ctx: Context,
  kind: Kind,
  namespace: string,
  sent: Json,
  options: WriteOptions = {},
): Promise<Document> {
  const { object, errors } = receive(kind, sent, options)
  const tools = ctx.tools({ dryRun: options.dryRun ?? false, warn: options.warn ?? (() => {}) })
  const space = spaceOf(kind, namespace)
  checkSent(kind, object.metadata, space)
  if (!kind.stored) {
    const next = withoutStatus(object)
    const admitted = await admit(ctx, { kind, next, old: undefined, errors, tools })
    return documentOf(kind.answer ? await kind.answer(admitted.object, tools) : admitted.object)
  }
  const now = timestamp(ctx.now())
  const fresh = newMetadata(object.metadata, { namespace: space, uid: ctx.uuid(), now })
  const prefix = fresh.name ? undefined : (fresh.generateName ?? kind.nameless)
  const regenerate = prefix === undefined ? undefined : () => generate(prefix, tools.random)
  const metadata = regenerate ? { ...fresh, generateName: prefix as string, name: regenerate() } : fresh
  const next = withoutStatus({ ...object, metadata })
  const admitted = await admit(ctx, { kind, next, old: undefined, errors, tools })
  const managedFields = trackUpdate({
    schema: wholeSchema(kind),
    before: undefined,
    after: admitted.object,
    manager: options.fieldManager ?? 'unknown',
    subresource: '',
    apiVersion: kind.apiVersion,
    now,
    resetStatus: true,
  })
  const whole: Resource = {
    ...admitted.object,
    metadata: { ...admitted.object.metadata, ...(managedFields.length ? { managedFields } : {}) },
  }
  return insert(ctx, kind, whole, { dryRun: tools.dryRun, shown: admitted.shown, regenerate })
}

/** Puts a new object into the store; also where an apply creates. Answers it as its creator sees it. */
export async function insert(
  ctx: Context,
  kind: Kind,
  object: Resource,
  { dryRun, shown, regenerate }: { dryRun: boolean; shown: Shown | undefined; regenerate?: (() => string) | undefined },
): Promise<Document> {
  let next = object
  for (let attempt = 0; ; attempt++) {
    const key = keyOf(kind, { namespace: next.metadata.namespace ?? '', name: next.metadata.name as string })
    const there = ctx.store.get(key)
    if (!there) {
      if (dryRun) return documentOf(visible(ctx, kind, next))
      const value = encode(ctx, kind, next)
      const revision = await commitNew(ctx, kind, key, value)
      if (revision !== undefined) return presentStored(ctx, kind, { object: next, value, revision }, shown)
    }
    // Only a generated name is tried again (SPEC §2.2: 409 when it stays taken).
    if (!regenerate) throw alreadyExists(kind, key.name, there !== undefined && isTerminating(there))
    if (attempt >= 7) throw nameNotGenerated(kind, key.name)
    next = { ...next, metadata: { ...next.metadata, name: regenerate() } }
  }
}

async function commitNew(ctx: Context, kind: Kind, key: Key, value: Value): Promise<number | undefined> {
  try {
    return await ctx.store.commit([{ type: 'put', key, value, expect: 0 }])
  } catch (error) {
    if (error instanceof StoreError && error.reason === 'exists') return undefined
    throw translate(error, kind, key.name)
  }
}

function checkSent(kind: Kind, metadata: Metadata, namespace: string): void {
  if (kind.namespaced && metadata.namespace && metadata.namespace !== namespace)
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request')
  if (metadata.resourceVersion) throw badRequest('resourceVersion should not be set on objects to be created')
}

/** Status is the server's to write (D9). */
export function withoutStatus(object: Resource): Resource {
  const { status: _, ...rest } = object
  return rest
}

const isTerminating = (entry: Entry) =>
  (JSON.parse(entry.text.toString()) as Resource).metadata.deletionTimestamp !== undefined

const letters = 'bcdfghjklmnpqrstvwxz2456789'

/** The prefix, cut to leave room, and five characters that spell nothing. */
function generate(prefix: string, random: (bytes: number) => Uint8Array): string {
  const suffix = Array.from(random(5), byte => letters[byte % letters.length]).join('')
  return prefix.slice(0, 58) + suffix
}
