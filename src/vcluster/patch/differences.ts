// Finds the paths at which two JSON values differ.

import { isObject, type Json } from '../../api/object.ts'
import { isSame } from './edit.ts'
import { type ConcretePath, showPath } from './path.ts'

/** An absent `before` or `after`: the path does not exist there. */
export type Difference = { readonly path: string; readonly before?: Json; readonly after?: Json }

const maxDifferences = 100

export function differencesOf(before: Json | undefined, after: Json | undefined): readonly Difference[] {
  const found: Difference[] = []
  const compare = (one: Json | undefined, other: Json | undefined, path: ConcretePath): void => {
    if (found.length >= maxDifferences || one === other) return
    if (one !== undefined && other !== undefined && isSame(one, other)) return
    const lists = Array.isArray(one) && Array.isArray(other)
    if (lists || (isObject(one) && isObject(other))) {
      const keys = new Set([...Object.keys(one as object), ...Object.keys(other as object)])
      for (const key of keys)
        compare(at(one as Json, key), at(other as Json, key), [...path, lists ? Number(key) : key])
      return
    }
    found.push({
      path: showPath(path),
      ...(one === undefined ? {} : { before: one }),
      ...(other === undefined ? {} : { after: other }),
    })
  }
  compare(before, after, [])
  return found
}

const at = (value: Json, key: string): Json | undefined =>
  Object.hasOwn(value as object, key) ? (value as { readonly [key: string]: Json })[key] : undefined

/** Whether one path is the other, or contains it. */
export const overlap = (one: string, other: string): boolean => isWithin(one, other) || isWithin(other, one)

const isWithin = (inner: string, outer: string) =>
  outer === '' || inner === outer || (inner.startsWith(outer) && /[.[]/.test(inner[outer.length] ?? ''))
