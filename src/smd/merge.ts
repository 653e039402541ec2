// Merges an applied configuration into the live value: its fields replace those of the live value, all others stay.

import { emptyMap, isObject, type Json, type JsonObject } from '../api/object.ts'
import type { PathElement } from './path-element.ts'
import { formOf, type ListShape, type MapShape, type Shape, shapeAt } from './schema.ts'
import { elementOf } from './typed.ts'

/** Removes nothing. Copies values that only one side has. */
export function mergeTyped(shape: Shape, live: Json, config: Json): Json {
  switch (formOf(shape, config)) {
    case 'map': {
      const left = isObject(live) ? live : emptyMap()
      const right = isObject(config) ? config : emptyMap()
      if (shape.map!.atomic || Object.keys(left).length + Object.keys(right).length === 0) return config
      return mergeMaps(shape.map!, left, right)
    }
    case 'list': {
      const left = Array.isArray(live) ? (live as readonly Json[]) : []
      const right = Array.isArray(config) ? (config as readonly Json[]) : []
      if (shape.list!.atomic || left.length + right.length === 0) return config
      return mergeItems(shape.list!, left, right)
    }
    default:
      return config
  }
}

function mergeMaps(map: MapShape, live: JsonObject, config: JsonObject): Json {
  const merged = emptyMap()
  for (const key of Object.keys(live)) if (live[key] !== undefined) merged[key] = live[key]
  for (const key of Object.keys(config)) {
    const value = config[key]
    if (value === undefined) continue
    const old = merged[key]
    merged[key] = old === undefined ? value : mergeTyped(shapeAt(map, key), old, value)
  }
  return merged
}

/**
 * Items in both follow the order of the configuration. Other items keep their position relative to the items before
 * them. An applied item replaces its duplicates in the live list.
 */
function mergeItems(list: ListShape, live: readonly Json[], config: readonly Json[]): Json {
  const left = live.map(item => elementOf(list, item))
  const right = config.map(item => elementOf(list, item))
  const old = new Map<PathElement, Json>()
  for (const [index, element] of left.entries()) old.set(element, old.has(element) ? null : live[index]!)
  const applied = new Set(right)
  const shared = right.filter(element => old.has(element))
  const done = new Set<PathElement>()
  const merged: Json[] = []

  const take = (at: number): void => {
    const element = right[at]!
    const before = old.get(element)
    merged.push(before === undefined ? config[at]! : mergeTyped(list.item, before, config[at]!))
    done.add(element)
    if (shared[0] === element) shared.shift()
  }

  let l = 0
  let r = 0
  while (l < left.length || r < right.length) {
    const element = left[l]
    if (element !== undefined && element === right[r]) {
      take(r++)
      l++
    } else if (
      element !== undefined &&
      r < right.length &&
      applied.has(element) &&
      shared.length > 0 &&
      shared[0] !== element
    ) {
      // The item is in both lists, but comes later in the configuration.
      l++
    } else if (element !== undefined && !applied.has(element)) {
      merged.push(live[l++]!)
    } else {
      if (element !== undefined && done.has(element)) l++
      if (r < right.length) take(r++)
    }
  }
  return merged
}
