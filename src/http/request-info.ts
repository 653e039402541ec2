// Parses a request into verb, kind, namespace and name, before authentication.

import { badRequest, methodNotAllowed, unknownPath } from '../api/errors.ts'
import type { Kind, Question, Verb } from '../api/kind.ts'
import { type Address, belowPrefix, parsePath } from '../api/paths.ts'
import { type Exchange, isSet, type Query } from '../serving/exchange.ts'

export type ResourceInfo = {
  readonly type: 'resource'
  readonly verb: Verb
  readonly kind: Kind
  readonly namespace: string
  readonly name: string
  /** With the part of it that is meant, where it has parts: `history/3`. */
  readonly subresource: string
  /** The one object that a watch of the old `/watch/…/<name>` form is about; '' for all. */
  readonly watchedName: string
}

export type RequestInfo = ResourceInfo | { readonly type: 'path'; readonly path: string; readonly method: string }

/** The meaning of a path. An invalid path throws only after authorization. */
export type ParsedRequest = { readonly question: Question; readonly info: () => RequestInfo }

export type KindFinder = (group: string, version: string, plural: string) => Kind | undefined

export function kindFinder(kinds: readonly Kind[]): KindFinder {
  const served = Map.groupBy(
    kinds.filter(kind => kind.served),
    kind => kind.plural,
  )
  return (group, version, plural) => served.get(plural)?.find(kind => kind.group === group && kind.version === version)
}

/** undefined: it is not below the prefix. The question is put first; only then is `info` looked at, so that a 403 hides a 404. */
export type ReadRequest = (exchange: Exchange) => ParsedRequest | undefined

export function requestReader(find: KindFinder): ReadRequest {
  // Clients request the same few objects all day, so parsed paths are cached. Clients cannot exceed the bounds of the cache.
  const known = new Map<string, ParsedRequest>()
  return ({ method, query, path }) => {
    const isPlain = method === 'GET' && query.size === 0
    const there = isPlain ? known.get(path) : undefined
    if (there) return there
    const below = belowPrefix(path)
    if (below === undefined) return undefined
    const made = read(method, query, below, find)
    if (!isPlain || path.length > 256) return made
    if (known.size >= 4096) known.clear()
    known.set(path, made)
    return made
  }
}

function read(method: string, query: Query, path: string, find: KindFinder): ParsedRequest {
  const address = addressOf(path)
  if (address?.type !== 'resource') {
    const at = address?.path ?? path
    const info = () => {
      if (!address) throw unknownPath()
      return { type: 'path', path: at, method } as const
    }
    return { question: { verb: method.toLowerCase(), path: at }, info }
  }
  const { group, version, resource, namespace, subresource, rest } = address
  const isFollowed = subresource !== '' && query.has('watch') && isWatched(find(group, version, resource), subresource)
  const watching = method === 'GET' && (address.watch || ((!address.name || isFollowed) && isSet(query, 'watch')))
  const byName = watching && address.watch && address.name !== ''
  const verb = watching ? 'watch' : verbOf(method, address.name !== '')
  const selects = verb === 'list' || verb === 'watch'
  const name = address.name || (selects ? nameSelected(query) : '')
  const target = { group, resource, namespace, ...(name ? { name } : {}), ...(subresource ? { subresource } : {}) }
  let made: ResourceInfo | undefined
  return {
    question: { verb: verb ?? method.toLowerCase(), target },
    info: () => {
      if (made) return made
      const kind = find(group, version, resource)
      const hasPart = rest.length === 1 && kind && subresourceOf(kind, subresource)?.hasParts
      if (!kind || (rest.length && !hasPart)) throw unknownPath()
      const info = {
        type: 'resource',
        verb: verb as Verb,
        kind,
        namespace,
        name: byName ? '' : address.name,
        subresource: [subresource, ...rest].join('/'),
        watchedName: byName ? address.name : '',
      } as const
      check(info, method)
      made = info
      return info
    },
  }
}

const addresses = new Map<string, Address | undefined>()

/** The same for collections with their queries, and for writes. */
function addressOf(path: string): Address | undefined {
  const known = addresses.get(path)
  if (known) return known
  const address = parsePath(path)
  if (path.length > 256) return address
  if (addresses.size >= 4096) addresses.clear()
  addresses.set(path, address)
  return address
}

function verbOf(method: string, named: boolean): Verb | undefined {
  switch (method) {
    case 'GET':
      return named ? 'get' : 'list'
    case 'POST':
      return 'create'
    case 'PUT':
      return 'update'
    case 'PATCH':
      return 'patch'
    case 'DELETE':
      return named ? 'delete' : 'deletecollection'
    default:
      return undefined
  }
}

/** A list or watch of one name counts as one of that name to authorization. No other verb does: a create would get its name past it. */
function nameSelected(query: Query): string {
  if (query.size === 0) return ''
  return /(?:^|,)metadata\.name==?([^,!=]+)(?:,|$)/.exec(query.get('fieldSelector') ?? '')?.[1] ?? ''
}

const isWatched = (kind: Kind | undefined, name: string) => (kind && subresourceOf(kind, name)?.isWatched) === true

const subresourceOf = (kind: Kind, name: string) =>
  Object.hasOwn(kind.subresources, name) ? kind.subresources[name] : undefined

/** Whether the kind has such a place and such a verb. */
function check({ verb, kind, namespace, name, subresource }: ResourceInfo, method: string): void {
  const everywhere = kind.namespaced && namespace === ''
  if ((!kind.namespaced && namespace !== '') || (everywhere && name !== '')) throw unknownPath()
  if (verb === undefined) throw methodNotAllowed(method.toLowerCase(), kind)
  if (subresource) {
    const own = subresourceOf(kind, subresource.split('/')[0] as string)
    if (own === undefined && (subresource !== 'status' || !kind.statusSubresource)) throw unknownPath()
    const verbs: readonly string[] = own ? [own.verb, ...(own.isWatched ? ['watch'] : [])] : ['get', 'update', 'patch']
    if (!verbs.includes(verb)) throw methodNotAllowed(verb, kind)
    return
  }
  if (!name && (verb === 'update' || verb === 'patch')) throw badRequest('name must be provided')
  const misplaced =
    (verb === 'create' && name !== '') || (everywhere && (verb === 'create' || verb === 'deletecollection'))
  if (misplaced || !kind.verbs.includes(verb)) throw methodNotAllowed(verb, kind)
}
