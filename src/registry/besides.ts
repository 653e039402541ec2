// What a change brings along in its own commit, such as the revocation of tokens that lost their ground (D33). update, delete and subresources commit it.

import type { Kind, Tools } from '../api/kind.ts'
import { type JsonObject, type Metadata, type Resource, timestamp } from '../api/object.ts'
import type { Op } from '../storage/store.ts'
import { type Context, keyOf } from './context.ts'
import { newMetadata } from './metadata.ts'
import { encode } from './redact.ts'

type Change = { readonly old: Resource; readonly next: Resource | undefined; readonly tools: Tools }

export function opsBesides(ctx: Context, kind: Kind, { old, next, tools }: Change): readonly Op[] {
  return (kind.besides?.(old, next, tools) ?? []).map(beside => {
    const object = complete(ctx, beside.kind, beside.object)
    const { namespace = '', name = '' } = object.metadata
    const key = keyOf(beside.kind, { namespace, name })
    return { type: 'put', key, value: encode(ctx, beside.kind, object), expect: 0 }
  })
}

function complete(ctx: Context, kind: Kind, object: JsonObject): Resource {
  const uid = ctx.uuid()
  const sent = { name: `${kind.nameless ?? ''}${uid}`, ...(object.metadata as Metadata | undefined) }
  const namespace = kind.namespaced ? (sent.namespace ?? '') : ''
  const metadata = newMetadata(sent, { namespace, uid, now: timestamp(ctx.now()) })
  return { ...object, apiVersion: kind.apiVersion, kind: kind.kind, metadata } as unknown as Resource
}
