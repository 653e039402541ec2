// Finds the target and the action of a request from its path, before authentication (D33).

import { ApiError, badRequest } from '../../api/errors.ts'
import type { Question } from '../../api/kind.ts'
import { isTargetName } from '../../api/names.ts'
import { parsePath } from '../../api/paths.ts'
import { type Act, streams, type Target } from '../../auth/authz/scope-rules.ts'
import { type Exchange, isSet, type Query, type Request } from '../../serving/exchange.ts'

export type Route = {
  readonly target: Exclude<Target, { target: 'Management' }>
  /** The path after the target, as sent; at least `/`. */
  readonly path: string
  /** With the question mark; '' if absent. */
  readonly query: string
  readonly act: Act
  /** Whether it is long-running: watches, followed logs, exec and the like. */
  readonly isLong: boolean
}

const root = /^\/kubernetes\/(?:cluster|project)\//
const shape =
  /^\/kubernetes\/(?:cluster\/([^/]+)|project\/([^/]+)\/virtualcluster\/([^/]+)|project\/([^/]+)\/space\/([^/]+))(\/.*)?$/
/** Characters that servers interpret differently: encoded slashes, backslashes and dots, non-printable or non-ASCII characters, a fragment. */
const ambiguous = /%(?:2f|5c|2e|[01][0-9a-f]|7f)|[^\x21-\x7e]|[\\#]/i
const escapes = /%(?![0-9a-f]{2})/i
const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** The path may lack the target, or have a typo in it. */
export const unknownRoute = (before = '') =>
  new ApiError(
    404,
    'NotFound',
    `${before}a gateway serves only /kubernetes/cluster/<cluster>/…, /kubernetes/project/<project>/virtualcluster/<name>/… and /kubernetes/project/<project>/space/<name>/…`,
    { details: {} },
  )

/** For a listener that also has other paths. */
export const isGatewayPath = (url: string | undefined): boolean => root.test(url ?? '')

/** Throws 400 for an ambiguous path, 404 for an unknown target. */
export function routeOf({ request, path, query, method }: Exchange): Route {
  checkSpelling(request, path)
  const found = shape.exec(path)
  if (!found) throw unknownRoute()
  const [, cluster, project, virtualCluster, itsProject, space, rest = '/'] = found
  for (const one of [cluster, project, virtualCluster, itsProject, space])
    if (one !== undefined && !isTargetName(one))
      throw badRequest(`the path contains "${one}", which is not a valid name`)
  const target: Route['target'] =
    cluster !== undefined
      ? { target: 'Cluster', cluster }
      : virtualCluster !== undefined
        ? { target: 'ProjectVirtualCluster', project: project ?? '', virtualCluster }
        : { target: 'ProjectSpace', project: itsProject ?? '', space: space ?? '' }
  const mark = request.url?.indexOf('?') ?? -1
  const asked = actOf(method, rest, query)
  // Watches and logs also come through WebSockets. Nothing is sent to the cluster there.
  const isRead = asked.verb === 'watch' || ('resource' in asked && asked.subresource === 'log')
  const act = request.headers.upgrade === undefined || isRead ? asked : { ...asked, upgrades: true }
  return {
    target,
    path: rest,
    query: mark === -1 ? '' : (request.url ?? '').slice(mark),
    act,
    isLong: isLong(act, query),
  }
}

function checkSpelling({ url = '', method = '', rawHeaders, httpVersionMajor }: Request, path: string): void {
  // TRACE would return the gateway's own credentials. Clusters do not use the other methods.
  if (!methods.has(method))
    throw new ApiError(405, 'MethodNotAllowed', `the gateway does not forward ${method} requests`)
  if (!url.startsWith('/')) throw badRequest('the request target must be a path, not a URL (absolute-form)')
  if (ambiguous.test(path) || escapes.test(path) || /[^\x21-\x7e]/.test(url))
    throw badRequest('the path has encoded slashes, dots or control characters, or non-ASCII characters')
  if (path.includes('%') && !isDecodable(path)) throw badRequest('percent-encoded bytes in the path must be UTF-8')
  // Some servers cut a segment at a semicolon, so `..;` is `..` for them.
  if (/;|%3b/i.test(path)) throw badRequest('the path has a semicolon')
  if (path.includes('//') || /\/\.\.?(\/|$)/.test(path))
    throw badRequest('the path has an empty, "." or ".." segment: send the normalized path')
  if (url.length > path.length) checkQuery(url.slice(path.length))
  if (httpVersionMajor === 1 && countOf(rawHeaders, 'host') !== 1)
    throw badRequest('the request must have one Host header')
}

/** A cluster ignores pairs with a semicolon or a wrong escape, and may use another one of two equal keys. */
function checkQuery(query: string): void {
  if (query.includes(';') || !isDecodable(query || '?'))
    throw badRequest('the query has a semicolon, or percent-encoded bytes that are not UTF-8')
  const names = new URLSearchParams(query)
  for (const name of ['fieldSelector', 'labelSelector', 'watch'])
    if (names.getAll(name).length > 1) throw badRequest(`the query has more than one ${name}`)
}

function isDecodable(path: string): boolean {
  try {
    return decodeURIComponent(path) !== ''
  } catch {
    return false
  }
}

function countOf(rawHeaders: readonly string[], wanted: string): number {
  let found = 0
  for (let index = 0; index < rawHeaders.length; index += 2) if (rawHeaders[index]?.toLowerCase() === wanted) found++
  return found
}

const verbs: { readonly [method: string]: readonly [named: string, all: string] } = {
  GET: ['get', 'list'],
  POST: ['create', 'create'],
  PUT: ['update', 'update'],
  PATCH: ['patch', 'patch'],
  DELETE: ['delete', 'deletecollection'],
}
/** Subresources of the namespace itself, although their paths look like resources in it. */
const ofNamespaces = new Set(['status', 'finalize'])

/** Parses a path like Kubernetes. Everything that is not a resource is a path. */
function actOf(method: string, path: string, query: Query): Act {
  const address = parsePath(path)
  const lower = method.toLowerCase()
  if (address?.type !== 'resource') return { verb: lower, path: address?.path ?? path }
  const { group, resource, namespace, name, subresource, watch } = address
  if (group === '' && namespace && !name && ofNamespaces.has(resource))
    return {
      verb: verbs[method]?.[0] ?? lower,
      group,
      resource: 'namespaces',
      subresource: resource,
      namespace,
      name: namespace,
    }
  const isWatch = method === 'GET' && (watch || (!name && isSet(query, 'watch')))
  const verb = isWatch ? 'watch' : (verbs[method]?.[name ? 0 : 1] ?? lower)
  const meant = name || (verb === 'list' || verb === 'watch' ? selected(query) : '')
  return {
    verb,
    group,
    resource,
    namespace,
    ...(meant ? { name: meant } : {}),
    ...(subresource ? { subresource } : {}),
  }
}

/** A list or watch that selects one name is about that name. */
const selected = (query: Query): string =>
  /(?:^|,)metadata\.name==?([^,!=]+)(?:,|$)/.exec(query.get('fieldSelector') ?? '')?.[1] ?? ''

function isLong(act: Act, query: Query): boolean {
  if (act.verb === 'watch') return true
  if (!('resource' in act)) return false
  return streams.has(act.subresource ?? '') || (act.subresource === 'log' && isSet(query, 'follow'))
}

/** The same for the audit log. */
export function questionOf({ act, path }: Pick<Route, 'act' | 'path'>): Question {
  if (!('resource' in act)) return { verb: act.verb, path }
  const { verb, upgrades: _, ...target } = act
  return { verb, target }
}

/** The target as text. */
export function describeTarget(target: Route['target']): string {
  if (target.target === 'Cluster') return `cluster ${target.cluster}`
  return target.target === 'ProjectSpace'
    ? `space ${target.space} of project ${target.project}`
    : `virtual cluster ${target.virtualCluster} of project ${target.project}`
}
