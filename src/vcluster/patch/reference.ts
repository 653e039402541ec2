// Rewrites references to other objects between the virtual cluster and the host.

import { isObject, type Json, type JsonObject, type Ref } from '../../api/object.ts'
import { groupKindOf, showKind } from '../config/reference-kinds.ts'
import { hostName, shortName } from '../sync/names.ts'
import { cloneJson, readAt, writeAt } from './edit.ts'
import type { Reference } from './patch.ts'
import { type ConcretePath, matchPath, parsePath, showPath } from './path.ts'

export type Direction = 'toHost' | 'toVirtual'

/** Mapping of namespaces in multi-namespace mode; undefined for namespaces that are not synced. */
export type NamespaceMapping = {
  readonly toHost: (namespace: string) => string | undefined
  readonly toVirtual: (namespace: string) => string | undefined
}

/** An object that a synced object references, with its names on both sides. */
export type ReferencedObject = {
  readonly apiVersion: string
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly hostNamespace: string
  readonly hostName: string
  /** Path of the reference. */
  readonly path: string
  /** The host's object of the same name, which the syncer imports and never writes. */
  readonly isImport?: true
}

export type Naming = {
  readonly vcluster: { readonly name: string; readonly namespace: string }
  readonly multiNamespace?: NamespaceMapping
  /** Namespace of the referencing object in the virtual cluster. */
  readonly namespace: string
}

/** `unresolved` is a message for the tenant. */
export type Rewritten =
  | { readonly value: Json; readonly referenced?: ReferencedObject }
  | { readonly skipped: string; readonly unresolved?: string }

/** Names an object in messages, such as `Ingress.networking.k8s.io default/web`. */
export const showReferenced = (one: Pick<ReferencedObject, 'apiVersion' | 'kind' | 'namespace' | 'name'>): string =>
  `${showKind(groupKindOf(one))} ${one.namespace}/${one.name}`

export type RewriteOptions = Naming & {
  readonly reference: Reference
  readonly direction: Direction
  readonly path: ConcretePath
  /** Value of the virtual object at the same path, because a hashed name cannot be reversed. */
  readonly virtualValue: Json | undefined
  /** The virtual object, if the name and namespace in the value are already those of the host. */
  readonly translated?: Ref | undefined
  /** The name means the host's object of that name. */
  readonly isImport?: boolean
}

/** Kinds with readable host names. All others get the short name (SPEC §2.10). */
const longNamed = ['v1/Endpoints', 'v1/Service', 'v1/Pod']

export function rewriteReference(value: Json, options: RewriteOptions): Rewritten {
  const { reference, direction } = options
  const holder: JsonObject = { value }
  const at = (path: string | undefined): ConcretePath | undefined => {
    const [match] = path === undefined ? [] : matchPath(holder, [{ key: 'value' }, ...parsePath(path)]).matches
    return match?.path
  }
  const text = (path: string | undefined) => {
    const found = at(path)
    const value = found && readAt(holder, found)
    return typeof value === 'string' && value !== '' ? value : undefined
  }
  const name = text(reference.namePath ?? '')
  if (name === undefined) return { skipped: missingName(value, reference.namePath) }
  const apiVersion = text(reference.apiVersionPath) ?? reference.apiVersion ?? ''
  const kind = text(reference.kindPath) ?? reference.kind ?? ''
  const found = { name, namespace: text(reference.namespacePath), ...options.translated }
  const parsed = { apiVersion, kind, ...found, path: showPath(options.path) }
  const referenced = direction === 'toHost' ? fromVirtual(parsed, options) : fromHost(parsed, options)
  if (typeof referenced === 'string') {
    if (direction === 'toVirtual') return { skipped: referenced }
    const named = showReferenced({ ...parsed, namespace: parsed.namespace ?? options.namespace })
    return { skipped: referenced, unresolved: `${named} is not synced to the host: ${referenced}` }
  }

  const next = cloneJson(holder)
  const isHost = direction === 'toHost'
  writeAt(next, at(reference.namePath ?? '') as ConcretePath, isHost ? referenced.hostName : referenced.name)
  const namespacePath = at(reference.namespacePath)
  if (text(reference.namespacePath) !== undefined && namespacePath)
    writeAt(next, namespacePath, isHost ? referenced.hostNamespace : referenced.namespace)
  return { value: next['value'] as Json, referenced }
}

type ParsedReference = {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly namespace: string | undefined
  readonly path: string
}

function fromVirtual(
  parsed: ParsedReference,
  { vcluster, multiNamespace, ...own }: RewriteOptions,
): ReferencedObject | string {
  const namespace = parsed.namespace ?? own.namespace
  const host = multiNamespace ? multiNamespace.toHost(namespace) : vcluster.namespace
  if (host === undefined) return `namespace ${JSON.stringify(namespace)} is not synced`
  const isKept = multiNamespace || own.isImport
  const name = isKept ? parsed.name : generatedName(parsed, parsed.name, namespace, vcluster.name)
  return { ...parsed, namespace, hostNamespace: host, hostName: name, ...(own.isImport && { isImport: true }) }
}

function fromHost(parsed: ParsedReference, options: RewriteOptions): ReferencedObject | string {
  const { vcluster, multiNamespace, reference, virtualValue } = options
  if (multiNamespace) {
    const namespace = parsed.namespace === undefined ? options.namespace : multiNamespace.toVirtual(parsed.namespace)
    if (namespace === undefined) return `host namespace ${JSON.stringify(parsed.namespace)} is not synced`
    const host = parsed.namespace ?? multiNamespace.toHost(namespace) ?? ''
    return { ...parsed, namespace, hostNamespace: host, hostName: parsed.name }
  }
  const read = (path: string | undefined): string | undefined => {
    if (path === undefined || virtualValue === undefined) return undefined
    const [match] = matchPath({ value: virtualValue }, [{ key: 'value' }, ...parsePath(path)]).matches
    return typeof match?.value === 'string' ? match.value : undefined
  }
  const namespace = read(reference.namespacePath) ?? options.namespace
  const before = read(reference.namePath ?? '')
  const known = { ...parsed, namespace, hostNamespace: vcluster.namespace, hostName: parsed.name }
  if (before !== undefined && generatedName(parsed, before, namespace, vcluster.name) === parsed.name)
    return { ...known, name: before }
  const ending = `-x-${namespace}-x-${vcluster.name}`
  if (isLongNamed(parsed) && parsed.name.endsWith(ending) && parsed.name.length > ending.length)
    return { ...known, name: parsed.name.slice(0, -ending.length) }
  return `${JSON.stringify(parsed.name)} is not a name of this virtual cluster`
}

function isLongNamed({ apiVersion, kind }: ParsedReference): boolean {
  return longNamed.includes(`${apiVersion}/${kind}`)
}

function generatedName(parsed: ParsedReference, name: string, namespace: string, vcluster: string): string {
  return (isLongNamed(parsed) ? hostName : shortName)(name, namespace, vcluster)
}

function missingName(value: Json, namePath: string | undefined): string {
  if (namePath !== undefined)
    return isObject(value) ? `has no name at ${namePath}` : 'is not a map, but namePath is set'
  return value === '' ? 'is an empty string' : 'is not a string; set namePath if the name is in a field'
}
