// What a reference patch does with a value: the name of another object, or a label selector, said for the other side. Pure.

import { isObject, type Json, type JsonObject } from '../../api/object.ts'
import { hostName, shortName } from '../sync/names.ts'
import { cloneJson, readAt, writeAt } from './edit.ts'
import type { Reference } from './patch.ts'
import { type ConcretePath, matchPath, parsePath, showPath } from './path.ts'

export type Direction = 'toHost' | 'toVirtual'

/** How namespaces are called on the other side, in multi-namespace mode; undefined: it is not synced. */
export type NamespaceMapping = {
  readonly toHost: (namespace: string) => string | undefined
  readonly toVirtual: (namespace: string) => string | undefined
}

/** An object that a synced one speaks of, on both sides: the syncer pushes or imports it. */
export type Referent = {
  readonly apiVersion: string
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly hostNamespace: string
  readonly hostName: string
  /** Where it is spoken of. */
  readonly path: string
}

export type Naming = {
  readonly vcluster: { readonly name: string; readonly namespace: string }
  readonly multiNamespace?: NamespaceMapping
  /** The namespace of the object itself, in the virtual cluster. */
  readonly namespace: string
}

export type Rewritten = { readonly value: Json; readonly referent?: Referent } | { readonly skipped: string }

export type RewriteOptions = Naming & {
  readonly reference: Reference
  readonly direction: Direction
  readonly path: ConcretePath
  /** What the virtual object has at the same place: a generated name tells nothing about what it was made from. */
  readonly virtualValue: Json | undefined
}

/** These are on the host under their long name already; every other kind gets the short one (SPEC §2.10). */
const longNamed = ['v1/Endpoints', 'v1/Service', 'v1/Pod']

export function rewriteReference(value: Json, options: RewriteOptions): Rewritten {
  const { reference, direction } = options
  const holder: JsonObject = { value }
  const at = (path: string | undefined): ConcretePath | undefined => {
    const [match] = path === undefined ? [] : matchPath(holder, [{ key: 'value' }, ...parsePath(path)]).matches
    return match?.path
  }
  const text = (path: string | undefined) => {
    const place = at(path)
    const found = place && readAt(holder, place)
    return typeof found === 'string' && found !== '' ? found : undefined
  }
  const name = text(reference.namePath ?? '')
  if (name === undefined) return { skipped: missingName(value, reference.namePath) }
  const apiVersion = text(reference.apiVersionPath) ?? reference.apiVersion ?? ''
  const kind = text(reference.kindPath) ?? reference.kind ?? ''
  const spoken = { apiVersion, kind, name, namespace: text(reference.namespacePath), path: showPath(options.path) }
  const referent = direction === 'toHost' ? referentFromVirtual(spoken, options) : referentFromHost(spoken, options)
  if (typeof referent === 'string') return { skipped: referent }

  const next = cloneJson(holder)
  const isHost = direction === 'toHost'
  writeAt(next, at(reference.namePath ?? '') as ConcretePath, isHost ? referent.hostName : referent.name)
  const place = at(reference.namespacePath)
  if (spoken.namespace !== undefined && place)
    writeAt(next, place, isHost ? referent.hostNamespace : referent.namespace)
  return { value: next['value'] as Json, referent }
}

type Spoken = {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly namespace: string | undefined
  readonly path: string
}

function referentFromVirtual(spoken: Spoken, { vcluster, multiNamespace, ...own }: RewriteOptions): Referent | string {
  const namespace = spoken.namespace ?? own.namespace
  const host = multiNamespace ? multiNamespace.toHost(namespace) : vcluster.namespace
  if (host === undefined) return `namespace ${JSON.stringify(namespace)} is not synced`
  const name = multiNamespace ? spoken.name : generatedName(spoken, spoken.name, namespace, vcluster.name)
  return { ...spoken, namespace, hostNamespace: host, hostName: name }
}

function referentFromHost(spoken: Spoken, options: RewriteOptions): Referent | string {
  const { vcluster, multiNamespace, reference, virtualValue } = options
  if (multiNamespace) {
    const namespace = spoken.namespace === undefined ? options.namespace : multiNamespace.toVirtual(spoken.namespace)
    if (namespace === undefined) return `host namespace ${JSON.stringify(spoken.namespace)} is not synced`
    const host = spoken.namespace ?? multiNamespace.toHost(namespace) ?? ''
    return { ...spoken, namespace, hostNamespace: host, hostName: spoken.name }
  }
  const read = (path: string | undefined): string | undefined => {
    if (path === undefined || virtualValue === undefined) return undefined
    const [match] = matchPath({ value: virtualValue }, [{ key: 'value' }, ...parsePath(path)]).matches
    return typeof match?.value === 'string' ? match.value : undefined
  }
  const namespace = read(reference.namespacePath) ?? options.namespace
  const before = read(reference.namePath ?? '')
  const known = { ...spoken, namespace, hostNamespace: vcluster.namespace, hostName: spoken.name }
  if (before !== undefined && generatedName(spoken, before, namespace, vcluster.name) === spoken.name)
    return { ...known, name: before }
  const ending = `-x-${namespace}-x-${vcluster.name}`
  if (isLongNamed(spoken) && spoken.name.endsWith(ending) && spoken.name.length > ending.length)
    return { ...known, name: spoken.name.slice(0, -ending.length) }
  return `${JSON.stringify(spoken.name)} is no name that this virtual cluster gave`
}

function isLongNamed({ apiVersion, kind }: Spoken): boolean {
  return longNamed.includes(`${apiVersion}/${kind}`)
}

function generatedName(spoken: Spoken, name: string, namespace: string, vcluster: string): string {
  return (isLongNamed(spoken) ? hostName : shortName)(name, namespace, vcluster)
}

function missingName(value: Json, namePath: string | undefined): string {
  if (namePath !== undefined) return isObject(value) ? `has no name at ${namePath}` : 'is no map, and namePath is set'
  return value === '' ? 'is an empty text' : 'is no text; set namePath if the name is inside'
}
