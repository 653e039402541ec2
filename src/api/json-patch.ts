// Applies JSON Patch (RFC 6902) without changing the document (D5).
import { formatPointer, parsePointer } from './json-pointer.ts'
import { type Draft, emptyMap, isObject, type Json } from './object.ts'

export type PatchOp = 'add' | 'remove' | 'replace' | 'move' | 'copy' | 'test'

export type PatchOptions = {
  /** The maximum size of all copies, in bytes of JSON. */
  readonly maxCopiedBytes?: number
  /** The maximum depth of the result (D7). */
  readonly maxDepth?: number
  /** Called before each operation, also for `from`. `refuse` throws a PatchError with the operation. */
  readonly guard?: (op: PatchOp, pointer: readonly string[], refuse: (problem: string) => never) => void
}

/** `malformed`: not a valid patch. `failed`: operation `index` could not be applied. */
export class PatchError extends Error {
  override readonly name = 'PatchError'
  readonly kind: 'malformed' | 'failed'
  readonly index: number
  readonly pointer: string
  readonly problem: string

  constructor(kind: 'malformed' | 'failed', index: number, pointer: string, problem: string) {
    const shown = pointer.length > 256 ? `${pointer.slice(0, 256)}…` : pointer
    super(index < 0 ? problem : `operation ${index} at "${shown}": ${problem}`)
    this.kind = kind
    this.index = index
    this.pointer = shown
    this.problem = problem
  }
}

type Container = Draft | Json[]
type Operation = { op: PatchOp; path: string[]; from: string[]; value: Json | undefined; pointer: string }
type Run = {
  root: Json
  /** Containers created by this patch, which it may change in place. So each container is copied at most once. */
  readonly own: Set<Container>
  bytesLeft: number
  workLeft: number
  readonly maxDepth: number
  index: number
  pointer: string
}

const OPS: readonly string[] = ['add', 'remove', 'replace', 'move', 'copy', 'test']
const MEMBERS: readonly string[] = ['op', 'path', 'from', 'value']
const NO_PARENT = 'the parent is neither a map nor a list'
const MAX_COPIED = 3 * 1024 * 1024
/** The fixed cost of a value, because many small copies cost more than their bytes of JSON. */
const NODE = 64
/** Allows some tens of milliseconds. Without it, long lists and wide maps would let a small patch run for minutes. */
const MAX_WORK = 4_000_000

/** Counts the operations, so that the server can reject too many before it applies them (D7). */
export function patchOperations(patch: Json): number {
  return Array.isArray(patch) ? patch.length : 0
}

/** Members unknown to RFC 6902, formatted for strict field validation: `[0].foo`. At most 100. */
export function unknownMembers(patch: Json): string[] {
  const unknown: string[] = []
  if (!Array.isArray(patch)) return unknown
  for (const [index, operation] of patch.entries()) {
    if (!isObject(operation)) continue
    for (const key of Object.keys(operation)) if (!MEMBERS.includes(key)) unknown.push(`[${index}].${key}`)
    if (unknown.length >= 100) return unknown.slice(0, 100)
  }
  return unknown
}

/** Returns a new document that shares unchanged parts with the arguments. Throws PatchError. */
export function applyJsonPatch(document: Json, patch: Json, options: PatchOptions = {}): Json {
  if (!Array.isArray(patch)) throw new PatchError('malformed', -1, '', 'a JSON Patch is an array of operations')
  const run: Run = {
    root: document,
    own: new Set(),
    bytesLeft: options.maxCopiedBytes ?? MAX_COPIED,
    workLeft: MAX_WORK,
    maxDepth: options.maxDepth ?? 100,
    index: 0,
    pointer: '',
  }
  for (const [index, entry] of (patch as readonly Json[]).entries()) {
    const operation = readOperation(entry, index)
    run.index = index
    run.pointer = operation.pointer
    const refuse = (problem: string): never => fail(run, problem)
    if (operation.op === 'move' || operation.op === 'copy') options.guard?.(operation.op, operation.from, refuse)
    options.guard?.(operation.op, operation.path, refuse)
    perform[operation.op](run, operation)
  }
  if (isDeeper(run.root, run.maxDepth)) fail(run, `the result nests deeper than ${run.maxDepth}`)
  return run.root
}

const perform: { readonly [op in PatchOp]: (run: Run, operation: Operation) => void } = {
  add: (run, { path, value }) => add(run, path, wanted(run, value)),
  remove: (run, { path }) => remove(run, path),
  replace: (run, { path, value }) => replace(run, path, wanted(run, value)),
  move: (run, { path, from }) => move(run, from, path),
  copy: (run, { path, from }) => add(run, path, clone(run, find(run, from), 0)),
  test: (run, { path, value }) => {
    if (!isEqual(run, find(run, path), wanted(run, value))) fail(run, 'the value is different')
  },
}

function fail(run: Run, problem: string): never {
  throw new PatchError('failed', run.index, run.pointer, problem)
}

function wanted(run: Run, value: Json | undefined): Json {
  return value === undefined ? fail(run, "the member 'value' is missing") : value
}

function spend(run: Run, units: number): void {
  run.workLeft -= units
  if (run.workLeft < 0) fail(run, 'the patch is too expensive: replace the whole list or map instead')
}

function find(run: Run, steps: readonly string[]): Json {
  return steps.reduce((parent, _, depth) => child(run, parent, steps, depth), run.root)
}

/** The value at `steps[depth]` of a container. `adds`: the operation adds a value below it. */
function child(run: Run, parent: Json, steps: readonly string[], depth: number, adds = false): Json {
  const step = steps[depth] as string
  if (Array.isArray(parent)) return (parent as readonly Json[])[position(run, parent.length - 1, step)] as Json
  if (!isObject(parent)) return fail(run, NO_PARENT)
  if (Object.hasOwn(parent, step)) return parent[step] as Json
  return fail(run, depth === steps.length - 1 ? 'the path does not exist' : missingParent(steps, depth, adds))
}

const MAX_SHOWN = 256

/** RFC 6902 does not create parents, so the message names the operation that does. */
function missingParent(steps: readonly string[], depth: number, adds: boolean): string {
  const path = formatPointer(steps.slice(0, depth + 1))
  if (path.length > MAX_SHOWN) return 'a parent of the path does not exist'
  const problem = `the parent ${JSON.stringify(path)} does not exist`
  if (!adds) return problem
  const value = /^(?:0|-)$/.test(steps[depth + 1] ?? '') ? [] : {}
  return `${problem}; add it first with ${JSON.stringify({ op: 'add', path, value })}`
}

function position(run: Run, last: number, step: string): number {
  if (!/^(?:0|[1-9]\d{0,9})$/.test(step)) {
    fail(run, "a list index is 0 or a number without sign or leading zero ('-' only to add)")
  }
  const index = Number(step)
  return index <= last ? index : fail(run, 'the index is beyond the end of the list')
}

/** Returns the container if the patch created it, else a copy. */
function owned(run: Run, value: Json): Container {
  if (typeof value !== 'object' || value === null) return fail(run, NO_PARENT)
  if (run.own.has(value as Container)) return value as Container
  return claim(run, Array.isArray(value) ? [...value] : Object.assign(emptyMap(), value))
}

function claim<T extends Container>(run: Run, container: T): T {
  run.own.add(container)
  return container
}

/** The parent of the last step. Copies it and its ancestors if needed. */
function ownedParent(run: Run, steps: readonly string[], adds = false): Container {
  let container = owned(run, run.root)
  run.root = container
  for (const [depth, step] of steps.slice(0, -1).entries()) {
    const next = owned(run, child(run, container, steps, depth, adds))
    ;(container as Draft)[step] = next
    container = next
  }
  return container
}

function add(run: Run, steps: readonly string[], value: Json): void {
  const step = steps.at(-1)
  if (step === undefined) {
    run.root = value
    return
  }
  const parent = ownedParent(run, steps, true)
  if (!Array.isArray(parent)) parent[step] = value
  else {
    const index = step === '-' ? parent.length : position(run, parent.length, step)
    spend(run, (parent.length - index) / 16)
    parent.splice(index, 0, value)
  }
}

function remove(run: Run, steps: readonly string[]): void {
  const step = steps.at(-1)
  if (step === undefined) fail(run, 'the whole document cannot be removed')
  const parent = ownedParent(run, steps)
  child(run, parent, steps, steps.length - 1)
  if (!Array.isArray(parent)) delete parent[step]
  else {
    spend(run, (parent.length - Number(step)) / 16)
    parent.splice(Number(step), 1)
  }
}

function replace(run: Run, steps: readonly string[], value: Json): void {
  const step = steps.at(-1)
  if (step === undefined) {
    run.root = value
    return
  }
  const parent = ownedParent(run, steps)
  child(run, parent, steps, steps.length - 1)
  ;(parent as Draft)[step] = value
}

function move(run: Run, from: readonly string[], to: readonly string[]): void {
  const value = find(run, from)
  if (from.every((step, depth) => step === to[depth])) {
    if (from.length < to.length) fail(run, 'a value cannot be moved into itself')
    return
  }
  remove(run, from)
  add(run, to, value)
}

/** Copies are deep, so that every owned container has one parent. The byte budget limits the work. */
function clone(run: Run, value: Json, depth: number): Json {
  run.bytesLeft -= typeof value === 'string' ? utf8Length(value) + NODE : NODE
  if (run.bytesLeft < 0) fail(run, 'the copies are too large')
  if (typeof value !== 'object' || value === null) return value
  if (depth >= run.maxDepth) fail(run, `nested deeper than ${run.maxDepth}`)
  if (!isObject(value))
    return claim(
      run,
      value.map(element => clone(run, element, depth + 1)),
    )
  const copy: Draft = emptyMap()
  for (const key of Object.keys(value)) {
    run.bytesLeft -= utf8Length(key) + 3
    copy[key] = clone(run, value[key] as Json, depth + 1)
  }
  return claim(run, copy)
}

function isEqual(run: Run, a: Json, b: Json): boolean {
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return a === b
  if (isObject(a) && isObject(b)) {
    for (const key of Object.keys(b)) {
      if (!Object.hasOwn(a, key) || !isEqual(run, a[key] as Json, b[key] as Json)) return false
    }
    const width = Object.keys(a).length
    spend(run, width)
    return width === Object.keys(b).length
  }
  if (isObject(a) || isObject(b) || a.length !== b.length) return false
  return a.every((element, index) => isEqual(run, element, b[index] as Json))
}

function readOperation(entry: Json, index: number): Operation {
  if (!isObject(entry)) throw new PatchError('malformed', index, '', 'an operation is an object')
  const member = (name: string): Json | undefined => (Object.hasOwn(entry, name) ? entry[name] : undefined)
  const pointer = member('path')
  const fail = (problem: string): never => {
    throw new PatchError('failed', index, typeof pointer === 'string' ? pointer : '', problem)
  }
  const steps = (name: string): string[] => {
    const text = member(name)
    if (typeof text !== 'string') return fail(`the member '${name}' is missing or not a string`)
    return (
      parsePointer(text) ??
      fail(`'${name}' is not a JSON Pointer: it is empty or begins with '/', and has '~' only as ~0 or ~1`)
    )
  }
  const op = member('op')
  if (typeof op !== 'string' || !OPS.includes(op)) fail(`the member 'op' must be one of ${OPS.join(', ')}`)
  const from = op === 'move' || op === 'copy' ? steps('from') : []
  return { op: op as PatchOp, path: steps('path'), from, value: member('value'), pointer: String(pointer) }
}

function isDeeper(value: Json, limit: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (limit === 0) return true
  for (const key of Object.keys(value)) if (isDeeper((value as Draft)[key] as Json, limit - 1)) return true
  return false
}

function utf8Length(text: string): number {
  let length = text.length
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    // A surrogate pair has four bytes in total.
    if (code > 0x7f) length += code > 0x7ff && (code < 0xd800 || code > 0xdfff) ? 2 : 1
  }
  return length
}
