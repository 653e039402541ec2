// Sets of field paths as trees, with union, difference and intersection.

import { type PathElement, sortElements } from './path-element.ts'

/**
 * A set of paths. `owned`: the path up to this node is in the set. The root never is. Immutable, and without empty
 * nodes below the root. Operations that change nothing return their input, so that its cached encoding stays usable.
 */
export type FieldSet = { readonly owned: boolean; readonly children: ReadonlyMap<PathElement, FieldSet> }

export type FieldPath = readonly PathElement[]

/** The same, while `insert` fills it. */
export type FieldSetDraft = { owned: boolean; children: ReadonlyMap<PathElement, FieldSet> }

const NO_CHILDREN: ReadonlyMap<PathElement, FieldSet> = new Map()
export const NO_FIELDS: FieldSet = { owned: false, children: NO_CHILDREN }
/** The end of a path. */
export const LEAF: FieldSet = { owned: true, children: NO_CHILDREN }

export function draftFieldSet(): FieldSetDraft {
  return { owned: false, children: NO_CHILDREN }
}

/** Adds one path without its parents. The empty path is the whole object, which nobody can own. */
export function insert(set: FieldSetDraft, path: FieldPath): void {
  if (path.length === 0) return
  let node = set
  for (const element of path) {
    let next = node.children.get(element) as FieldSetDraft | undefined
    if (next === undefined) {
      next = draftFieldSet()
      // Most nodes are leaves and need no map.
      if (node.children === NO_CHILDREN) node.children = new Map()
      ;(node.children as Map<PathElement, FieldSet>).set(element, next)
    }
    node = next
  }
  node.owned = true
}

export function fieldSetOf(paths: Iterable<FieldPath>): FieldSet {
  const set = draftFieldSet()
  for (const path of paths) insert(set, path)
  return set
}

export function isEmpty(set: FieldSet): boolean {
  return !set.owned && set.children.size === 0
}

export function has(set: FieldSet, path: FieldPath): boolean {
  let node: FieldSet | undefined = set
  for (const element of path) {
    node = node.children.get(element)
    if (node === undefined) return false
  }
  return path.length > 0 && node.owned
}

/** The set below one element. */
export function below(set: FieldSet, element: PathElement): FieldSet {
  return set.children.get(element) ?? NO_FIELDS
}

export function union(a: FieldSet, b: FieldSet): FieldSet {
  if (isEmpty(b) || a === b) return a
  if (isEmpty(a)) return b
  const children = new Map(a.children)
  for (const [element, theirs] of b.children) {
    const ours = children.get(element)
    children.set(element, ours === undefined ? theirs : union(ours, theirs))
  }
  return { owned: a.owned || b.owned, children }
}

export function intersection(a: FieldSet, b: FieldSet): FieldSet {
  if (a === b) return a
  const children = new Map<PathElement, FieldSet>()
  for (const [element, ours] of a.children) {
    const theirs = b.children.get(element)
    const both = theirs === undefined ? NO_FIELDS : intersection(ours, theirs)
    if (!isEmpty(both)) children.set(element, both)
  }
  return { owned: a.owned && b.owned, children }
}

/** The paths of `a` that are not in `b`. A path of `b` removes only itself, not its parents or children. */
export function difference(a: FieldSet, b: FieldSet): FieldSet {
  if (isEmpty(b)) return a
  return rebuild(a, a.owned && !b.owned, (element, ours) => {
    const theirs = b.children.get(element)
    return theirs === undefined ? ours : difference(ours, theirs)
  })
}

/** The paths without longer paths in the set. */
export function leaves(set: FieldSet): FieldSet {
  return rebuild(set, set.owned && set.children.size === 0, (_, child) => leaves(child))
}

export function isSameSet(a: FieldSet, b: FieldSet): boolean {
  if (a === b) return true
  if (a.owned !== b.owned || a.children.size !== b.children.size) return false
  for (const [element, ours] of a.children) {
    const theirs = b.children.get(element)
    if (theirs === undefined || !isSameSet(ours, theirs)) return false
  }
  return true
}

/** All paths in a fixed order: at each level, leaves first, then nested paths. */
export function pathsOf(set: FieldSet, prefix: FieldPath = []): FieldPath[] {
  const elements = sortElements(set.children.keys())
  const ending = elements.filter(element => below(set, element).owned).map(element => [...prefix, element])
  return ending.concat(
    elements.flatMap(element => pathsOf(below(set, element), [...prefix, element]) as PathElement[][]),
  )
}

/** Replaces every child and drops empty ones. Returns the same set if no child changes. */
export function rebuild(
  set: FieldSet,
  owned: boolean,
  replace: (element: PathElement, child: FieldSet) => FieldSet,
): FieldSet {
  let children: Map<PathElement, FieldSet> | undefined
  for (const [element, child] of set.children) {
    const next = replace(element, child)
    if (next === child) continue
    children ??= new Map(set.children)
    if (isEmpty(next)) children.delete(element)
    else children.set(element, next)
  }
  return children === undefined && owned === set.owned ? set : { owned, children: children ?? set.children }
}
