// One function a verb: reads its options and its body, asks Resources, and says what came of it.

import { badRequest, type Status, tooLarge, unsupportedMediaType } from '../api/errors.ts'
import { patchOperations } from '../api/json-patch.ts'
import { hasMoreSegments } from '../api/json-pointer.ts'
import type { Kind, Verb } from '../api/kind.ts'
import type { Json } from '../api/object.ts'
import type { Document, List, PatchBody, Resources, Selection, Watch } from '../api/resources.ts'
import { type Exchange, isSet } from '../serving/exchange.ts'
import { mediaType, readObject, readParsed } from './body.ts'
import { deleteOptions } from './delete-options.ts'
import { agentOf, forceForbidden, listOptions, sendInitialEventsOnList, watchOptions, writeOptions } from './options.ts'
import type { ResourceInfo } from './request-info.ts'

export type Result =
  | { readonly type: 'document'; readonly code: number; readonly document: Document }
  | { readonly type: 'list'; readonly list: List }
  | { readonly type: 'status'; readonly status: Status }

/** The verbs bound to the caller, and the objects that the caller may see. */
export type Ready = { readonly resources: Resources; readonly selection: Pick<Selection, 'only' | 'among'> }

/** `ready` is called once the whole request was read, and throws where the caller has lost the right meanwhile. */
type Perform = (ready: () => Ready, info: ResourceInfo, exchange: Exchange) => Promise<Result>

export const perform: { readonly [verb in Exclude<Verb, 'watch'>]: Perform } = {
  async get(ready, { kind, namespace, name, subresource }, { query }) {
    const { resources } = ready()
    const ref = { namespace, name }
    if (query.size === 0 && !subresource)
      return { type: 'document', code: 200, document: await resources.get(kind, ref) }
    const resourceVersion = query.get('resourceVersion')
    const options = { ...(resourceVersion ? { resourceVersion } : {}), ...(subresource ? { subresource } : {}) }
    return { type: 'document', code: 200, document: await resources.get(kind, ref, options) }
  },

  async list(ready, { kind, namespace }, exchange) {
    const { query } = exchange
    const { resources, selection } = ready()
    if (query.has('sendInitialEvents')) throw sendInitialEventsOnList()
    return {
      type: 'list',
      list: await resources.list(kind, {
        ...listOptions(query, namespace),
        ...selection,
        warn: text => exchange.warn(text),
      }),
    }
  },

  async create(ready, { kind, namespace, name, subresource }, exchange) {
    const options = { fieldManager: agentOf(exchange), ...writeOptions(exchange, 'CreateOptions', '') }
    const { value, duplicates } = await readObject(exchange, kind.kind, kind.group.endsWith('.k8s.io'))
    const { resources } = ready()
    if (subresource) refuseDuplicates(duplicates)
    if (subresource)
      return {
        type: 'document',
        code: 201,
        document: await resources.act(kind, { namespace, name }, subresource, value, options),
      }
    return {
      type: 'document',
      code: 201,
      document: await resources.create(kind, namespace, given(value, kind.kind), { ...options, duplicates }),
    }
  },

  async update(ready, { kind, namespace, name, subresource }, exchange) {
    const options = { fieldManager: agentOf(exchange), ...writeOptions(exchange, 'UpdateOptions', subresource) }
    const { value, duplicates } = await readObject(exchange, kind.kind, kind.group.endsWith('.k8s.io'))
    const { resources } = ready()
    const document = await resources.update(kind, { namespace, name }, given(value, kind.kind), {
      ...options,
      duplicates,
    })
    return { type: 'document', code: 200, document }
  },

  async patch(ready, { kind, namespace, name, subresource }, exchange) {
    const options = writeOptions(exchange, 'PatchOptions', subresource)
    const { patch, duplicates } = await readPatch(exchange, kind)
    const { resources } = ready()
    const manager = patch.type === 'apply' ? {} : { fieldManager: agentOf(exchange) }
    const document = await resources.patch(kind, { namespace, name }, patch, { ...manager, ...options, duplicates })
    return { type: 'document', code: document.created ? 201 : 200, document }
  },

  async delete(ready, { kind, namespace, name }, exchange) {
    const value = await readOnce(exchange, 'DeleteOptions', false)
    const { resources } = ready()
    const deleted = await resources.delete(kind, { namespace, name }, deleteOptions(exchange.query, value))
    return 'status' in deleted
      ? { type: 'status', status: deleted.status }
      : { type: 'document', code: 200, document: deleted.document }
  },

  async deletecollection(ready, { kind, namespace }, exchange) {
    const value = await readOnce(exchange, 'DeleteOptions', false)
    const { resources, selection: only } = ready()
    const selection = { ...listOptions(exchange.query, namespace), ...only }
    return {
      type: 'list',
      list: await resources.deleteCollection(kind, selection, deleteOptions(exchange.query, value)),
    }
  },
}

export type OpenWatch = {
  readonly watch: Watch
  readonly timeoutSeconds: number | undefined
  readonly bookmarks: boolean
}

export async function openWatch(
  resources: Resources,
  { kind, namespace, watchedName, name, subresource }: ResourceInfo,
  { query }: Exchange,
  selection: Pick<Selection, 'only' | 'among' | 'refilter'>,
): Promise<OpenWatch> {
  const { timeoutSeconds, ...options } = watchOptions(query, namespace, watchedName)
  const of = subresource ? { of: { name, subresource } } : {}
  const watch = await resources.watch(kind, { ...options, ...selection, ...of })
  return { watch, timeoutSeconds, bookmarks: options.allowWatchBookmarks === true }
}

/** Options that stand twice are not guessed: a precondition or a dry run may be among them. */
async function readOnce(...asked: Parameters<typeof readObject>): Promise<Json | undefined> {
  const { value, duplicates } = await readObject(...asked)
  refuseDuplicates(duplicates)
  return value
}

function refuseDuplicates(duplicates: readonly string[]): void {
  if (duplicates.length) throw badRequest(`strict decoding error: ${duplicates.join(', ')}`)
}

function given(value: Json | undefined, kind: string): Json {
  if (value === undefined)
    throw badRequest(`the object provided is unrecognized (must be of type ${kind}): the body is empty`)
  return value
}

const patchTypes = {
  'application/json-patch+json': 'json',
  'application/merge-patch+json': 'merge',
  'application/apply-patch+yaml': 'apply',
  'application/strategic-merge-patch+json': 'strategic',
} as const
const maxOperations = 10_000
/** Walking along pointers is what a patch costs (D72). */
const maxSegments = 60_000

/** Strategic merge works for the kinds that kubectl treats as built in; for others it is 415 (D5). */
function patchTypeOf(request: Exchange['request'], kind: Kind): PatchBody['type'] {
  const isBuiltIn = kind.group.endsWith('.k8s.io')
  const accepted = Object.keys(patchTypes).filter(
    type => isBuiltIn || patchTypes[type as keyof typeof patchTypes] !== 'strategic',
  )
  const type = mediaType(request)
  if (!accepted.includes(type)) throw unsupportedMediaType(accepted)
  return patchTypes[type as keyof typeof patchTypes]
}

async function readPatch(exchange: Exchange, kind: Kind): Promise<{ patch: PatchBody; duplicates: readonly string[] }> {
  const type = patchTypeOf(exchange.request, kind)
  if (type !== 'apply' && exchange.query.has('force')) throw forceForbidden()
  const { value, duplicates } = await readParsed(exchange, type === 'apply' ? 'yaml' : 'json', kind.kind)
  const body = given(value, kind.kind)
  if (exchange.auditContext) {
    exchange.auditContext.sent = body
    if (type === 'json') exchange.auditContext.sentAs = 'json-patch'
  }
  if (type === 'apply') return { patch: { type, body, force: isSet(exchange.query, 'force') }, duplicates }
  if (type === 'json' && patchOperations(body) > maxOperations)
    throw tooLarge(`The allowed maximum operations in a JSON patch is ${maxOperations}, got ${patchOperations(body)}`)
  if (type === 'json' && hasMoreSegments(body, maxSegments))
    throw tooLarge(`The allowed maximum of path segments in a JSON patch is ${maxSegments}`)
  return { patch: { type, body }, duplicates }
}
