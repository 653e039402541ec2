// Validates values against their schema, and finds their fields and the identity of list items.

import { cut, isEnough, maxErrors } from '../api/errors.ts'
import { emptyMap, isObject, type Json, type JsonObject } from '../api/object.ts'
import { draftFieldSet, type FieldSet, type FieldSetDraft, insert } from './field-set.ts'
import { printGo, printGoSyntax, printGoType } from './go-format.ts'
import { keyElement, type PathElement, printElement, printPath, valueElement } from './path-element.ts'
import { elementAt, formOf, type ListShape, type MapShape, type Scalar, type Shape, shapeAt } from './schema.ts'

/** A value does not match its schema, or managedFields are invalid. A client error: 400 or 422. */
export class TypedError extends Error {
  readonly problems: readonly string[]
  /** The invalid value: the request or the stored object. */
  readonly subject: 'patch' | 'live'
  constructor(problems: readonly string[], subject: 'patch' | 'live' = 'patch') {
    const [first] = problems
    super(
      first !== undefined && problems.length === 1
        ? first
        : ['errors:', ...problems.map(each => `  ${each}`)].join('\n'),
    )
    this.name = 'TypedError'
    this.problems = problems
    this.subject = subject
  }
}

/**
 * All errors of a value, each with its path. Stored objects may have duplicate items, applied configurations may not.
 */
export function problemsOf(shape: Shape, value: Json, options: { readonly repeats: boolean }): string[] {
  const problems: string[] = []
  check(shape, value, [], { problems, repeats: options.repeats })
  return problems
}

type Check = { readonly problems: string[]; readonly repeats: boolean }

function check(shape: Shape, value: Json, path: PathElement[], to: Check): void {
  const form = formOf(shape, value)
  const problem =
    form === 'map'
      ? checkMap(shape.map!, value, path, to)
      : form === 'list'
        ? checkList(shape.list!, value, path, to)
        : problemOfScalar(shape.scalar!, value)
  if (problem !== undefined) report(path, problem, to)
}

function report(path: readonly PathElement[], problem: string, to: Check): void {
  if (isEnough(to.problems)) return
  const text = cut(path.length === 0 ? problem : `${printPath(path)}: ${problem}`)
  to.problems.push(to.problems.length === maxErrors ? `and more than ${maxErrors} errors` : text)
}

function problemOfScalar(scalar: Scalar, value: Json): string | undefined {
  if (value === null) return undefined
  switch (scalar) {
    case 'numeric':
      return typeof value === 'number' ? undefined : `expected numeric (int or float), got ${printGoType(value)}`
    case 'string':
      return typeof value === 'string' ? undefined : `expected string, got ${printGoSyntax(value)}`
    case 'boolean':
      return typeof value === 'boolean' ? undefined : `expected boolean, got ${printGo(value)}`
    default:
      return typeof value === 'object' ? `expected any scalar, got ${printGo(value)}` : undefined
  }
}

/** Reports errors inside the map, and returns the error of the map itself. */
function checkMap(map: MapShape, value: Json, path: PathElement[], to: Check): string | undefined {
  if (value === null) return undefined
  if (!isObject(value)) return `expected map, got ${printGo(value)}`
  for (const key of Object.keys(value)) {
    if (isEnough(to.problems)) return undefined
    const child = value[key]
    if (child === undefined) continue
    const shape = map.fields.get(key) ?? map.rest
    path.push(elementAt(map, key))
    if (shape === undefined) report(path, 'field not declared in schema', to)
    else check(shape, child, path, to)
    path.pop()
  }
  return undefined
}

function checkList(list: ListShape, value: Json, path: PathElement[], to: Check): string | undefined {
  if (value === null) return undefined
  if (!Array.isArray(value)) return `expected list, got ${printGo(value)}`
  const items: readonly Json[] = value
  const seen = to.repeats || list.atomic ? undefined : new Set<PathElement>()
  for (let index = 0; index < items.length; index++) {
    if (isEnough(to.problems)) return undefined
    const item = items[index]!
    const problem = list.atomic ? undefined : problemOfItem(list, item)
    // An item without identity has no path, so errors inside it cannot be reported.
    if (problem !== undefined) return `element ${index}: ${problem}`
    const element = list.atomic ? `i:${index}` : elementOf(list, item)
    if (seen?.has(element)) report(path, `duplicate entries for key ${printElement(element)}`, to)
    seen?.add(element)
    path.push(element)
    check(list.item, item, path, to)
    path.pop()
  }
  return undefined
}

function problemOfItem(list: ListShape, item: Json): string | undefined {
  if (list.keys.length === 0) {
    if (item === null) return "associative list without keys has an element that's an explicit null"
    if (Array.isArray(item)) return 'not supported: associative list with lists as elements'
    return isObject(item) ? "associative list without keys has an element that's a map type" : undefined
  }
  if (item === null) return 'associative list with keys may not have a null element'
  if (!isObject(item)) return 'associative list with keys may not have non-map elements'
  if (list.keys.some(key => keyOf(list, item, key) !== undefined)) return undefined
  const names = list.keys.map(key => JSON.stringify(key)).join(' ')
  return `associative list with keys has an element that omits all key fields [${names}] (and doesn't have default values for any key fields)`
}

function keyOf(list: ListShape, item: JsonObject, key: string): Json | undefined {
  const own = Object.hasOwn(item, key) ? item[key] : undefined
  return own === undefined ? list.item.map?.fields.get(key)?.fallback : own
}

/** The identity of an item in a set or map list. The item is valid. */
export function elementOf(list: ListShape, item: Json): PathElement {
  if (list.keys.length === 0 || !isObject(item)) return valueElement(item)
  const keys = emptyMap()
  for (const key of list.keys) {
    const value = keyOf(list, item, key)
    if (value !== undefined) keys[key] = value
  }
  return keyElement(keys)
}

/** All leaves and items of a value, which its applier will own. Excludes declared fields that only contain others. */
export function fieldsOf(shape: Shape, value: Json): FieldSet {
  const set = draftFieldSet()
  collect(shape, value, [], set)
  return set
}

function collect(shape: Shape, value: Json, path: PathElement[], set: FieldSetDraft): void {
  const form = formOf(shape, value)
  if (form === 'scalar' || shape[form]!.atomic) insert(set, path)
  else if (form === 'map' && isObject(value)) collectMap(shape.map!, value, path, set)
  else if (form === 'list' && Array.isArray(value)) collectItems(shape.list!, value, path, set)
}

function collectMap(map: MapShape, value: JsonObject, path: PathElement[], set: FieldSetDraft): void {
  for (const key of Object.keys(value)) {
    const child = value[key]
    if (child === undefined) continue
    path.push(elementAt(map, key))
    collect(shapeAt(map, key), child, path, set)
    if (isHollow(child) || !map.fields.has(key)) insert(set, path)
    path.pop()
  }
}

function isHollow(value: Json): boolean {
  return value === null || (isObject(value) && Object.keys(value).length === 0)
}

function collectItems(list: ListShape, items: readonly Json[], path: PathElement[], set: FieldSetDraft): void {
  for (const [element, same] of groupItems(list, items)) {
    path.push(element)
    // Duplicate items count as one, because the owner of a field inside them is ambiguous.
    if (same.length === 1) collect(list.item, same[0]!, path, set)
    insert(set, path)
    path.pop()
  }
}

/** Items by identity, in order of first appearance. */
export function groupItems(list: ListShape, items: readonly Json[]): Map<PathElement, Json[]> {
  const groups = new Map<PathElement, Json[]>()
  for (const item of items) {
    const element = elementOf(list, item)
    const same = groups.get(element)
    if (same === undefined) groups.set(element, [item])
    else same.push(item)
  }
  return groups
}
