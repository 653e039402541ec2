// Describes a finished request for its trace: a template of the path, the verb and the resource.

import { prefix } from '../api/paths.ts'
import type { Exchange } from '../serving/exchange.ts'
import { httpOutcome } from '../serving/tracing/http-attributes.ts'
import type { Outcome } from '../serving/tracing/tracing.ts'
import type { RequestInfo, ResourceInfo } from './request-info.ts'

type Finished = { readonly exchange: Exchange; readonly info: RequestInfo | undefined; readonly code: number }

/** Names of objects are not in it: `/apis/…/sharedsecrets/{name}`. */
export function outcomeOf({ exchange, info, code }: Finished): Outcome {
  if (info?.type !== 'resource') {
    // Only a path that exists, because clients choose the others.
    const route = info && code < 400 ? `${prefix}${info.path}` : undefined
    return httpOutcome(exchange, { route, code, attributes: {} })
  }
  const { verb, kind } = info
  const attributes = {
    'platform.verb': verb,
    'platform.resource': kind.plural,
    'platform.subresource': partOf(info) || undefined,
  }
  return httpOutcome(exchange, { route: routeOf(info), code, attributes })
}

const partOf = ({ subresource }: ResourceInfo) => subresource.split('/')[0] ?? ''

const routes = new WeakMap<object, Map<string, string>>()

/** A cache: a kind has few of them. */
function routeOf(info: ResourceInfo): string {
  const { kind, namespace, name } = info
  const shape = `${namespace ? 'n' : ''}${name ? 'o' : ''} ${info.subresource.includes('/') ? `${partOf(info)}/` : partOf(info)}`
  const known = routes.get(kind) ?? new Map<string, string>()
  routes.set(kind, known)
  const route = known.get(shape) ?? templateOf(info)
  known.set(shape, route)
  return route
}

function templateOf(info: ResourceInfo): string {
  const { kind, namespace, name, subresource } = info
  const base = kind.group ? `/apis/${kind.group}/${kind.version}` : `/api/${kind.version}`
  const hasParts = subresource.includes('/')
  const parts = [
    ...(namespace ? ['namespaces', '{namespace}'] : []),
    kind.plural,
    ...(name ? ['{name}'] : []),
    ...(subresource ? [partOf(info)] : []),
    ...(hasParts ? ['{part}'] : []),
  ]
  return `${prefix}${base}/${parts.join('/')}`
}
