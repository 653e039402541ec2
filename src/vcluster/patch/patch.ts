// Schema and validation of patches (SPEC §2.10).

import { didYouMean } from '../../api/did-you-mean.ts'
import { isObject, type JsonObject } from '../../api/object.ts'
import { parseExpression } from './expression.ts'
import { PathError, parsePath, showPath } from './path.ts'

export type Reference = {
  readonly apiVersion?: string
  readonly apiVersionPath?: string
  readonly kind?: string
  readonly kindPath?: string
  readonly namePath?: string
  readonly namespacePath?: string
  /** If present, the value is a label selector. */
  readonly labels?: JsonObject
}

export type Patch = {
  readonly path: string
  readonly expression?: string
  readonly reverseExpression?: string
  readonly reference?: Reference
  readonly labels?: JsonObject
}

/** `at` is the path in the list, such as `[0, 'expression']`; `offset` is the position in that string. */
export type PatchProblem = {
  readonly at: readonly (string | number)[]
  readonly offset?: number
  readonly message: string
}

type ValuePath = readonly (string | number)[]

const patchKeys: readonly (keyof Patch)[] = ['path', 'expression', 'reverseExpression', 'reference', 'labels']
const relativePaths = ['apiVersionPath', 'kindPath', 'namePath', 'namespacePath'] as const
const referenceKeys: readonly (keyof Reference)[] = ['apiVersion', 'kind', ...relativePaths, 'labels']
const MAX_PATCHES = 1000

/** Returns all problems. If there are none, the list is a valid `readonly Patch[]`. */
export function checkPatches(raw: unknown): readonly PatchProblem[] {
  if (raw === undefined || raw === null) return []
  if (!Array.isArray(raw)) return [{ at: [], message: `patches must be a list, not ${typeName(raw)}` }]
  if (raw.length > MAX_PATCHES) return [{ at: [], message: `too many patches: ${raw.length}, at most ${MAX_PATCHES}` }]
  return [...raw.flatMap((patch, index) => checkPatch(patch, index)), ...checkDuplicates(raw)]
}

function checkPatch(patch: unknown, index: number): PatchProblem[] {
  if (!isObject(patch)) return [{ at: [index], message: `a patch must be a map, not ${typeName(patch)}` }]
  const has = (key: string) => patch[key] !== undefined
  const expressions = (['expression', 'reverseExpression'] as const).filter(has)
  const references = (['reference', 'labels'] as const).filter(has)
  const problems = [...unknownKeys(patch, patchKeys, [index]), ...checkPatchPath(patch['path'], index)]
  if (!expressions.length && !references.length)
    problems.push({ at: [index], message: 'requires an expression, a reverseExpression or a reference' })
  if (expressions.length && references.length)
    problems.push({
      at: [index, references[0] as string],
      message: `${references[0]} and ${expressions[0]} cannot be combined: use two patches`,
    })
  for (const key of expressions) problems.push(...checkExpression(patch[key], [index, key]))
  if (has('reference')) problems.push(...checkReference(patch['reference'], [index, 'reference'], has('labels')))
  if (has('labels')) problems.push(...checkMap(patch['labels'], [index, 'labels']))
  return problems
}

function checkPatchPath(path: unknown, index: number): PatchProblem[] {
  const at: ValuePath = [index, 'path']
  if (path === undefined) return [{ at: [index], message: 'requires a path; "" is the whole object' }]
  const problems = checkPath(path, at)
  if (problems.length || typeof path !== 'string') return problems
  const shown = showPath(parsePath(path))
  if (shown !== 'metadata.name' && shown !== 'metadata.namespace') return []
  return [{ at, message: `${shown} cannot be patched: the syncer sets the names (SPEC §2.10)` }]
}

function checkPath(path: unknown, at: ValuePath): PatchProblem[] {
  if (typeof path !== 'string') return [{ at, message: `must be a string, not ${typeName(path)}` }]
  try {
    parsePath(path)
    return []
  } catch (error) {
    if (!(error instanceof PathError)) throw error
    return [{ at, offset: error.column - 1, message: error.message }]
  }
}

function checkExpression(text: unknown, at: ValuePath): PatchProblem[] {
  if (typeof text !== 'string')
    return [{ at, message: `must be a string, not ${typeName(text)}; quote it: '"a text"' is a string, "42" a number` }]
  return parseExpression(text).problems.map(({ offset, message }) => ({ at, offset, message }))
}

function checkReference(reference: unknown, at: ValuePath, hasLabels: boolean): PatchProblem[] {
  if (!isObject(reference)) return [{ at, message: `must be a map, not ${typeName(reference)}` }]
  const problems = unknownKeys(reference, referenceKeys, at)
  const isSelector = hasLabels || reference['labels'] !== undefined
  for (const key of ['apiVersion', 'kind'] as const) {
    const value = reference[key]
    if (value === undefined && !isSelector) problems.push({ at, message: `requires ${key}` })
    else if (value !== undefined && (typeof value !== 'string' || value.trim() === ''))
      problems.push({ at: [...at, key], message: 'must be a non-empty string' })
  }
  for (const key of relativePaths) {
    if (reference[key] === undefined) continue
    problems.push(...checkPath(reference[key], [...at, key]), ...checkRelative(reference[key], [...at, key]))
  }
  const other = relativePaths.find(key => key !== 'namePath' && reference[key] !== undefined)
  if (other && reference['namePath'] === undefined)
    problems.push({ at, message: `requires namePath, because ${other} is set and the value is an object` })
  if (reference['labels'] !== undefined) problems.push(...checkMap(reference['labels'], [...at, 'labels']))
  return problems
}

/** A relative path must select one field, because the new name is written to the same field. */
function checkRelative(path: unknown, at: ValuePath): PatchProblem[] {
  if (typeof path !== 'string' || checkPath(path, at).length) return []
  const wild = parsePath(path).findIndex(segment => 'any' in segment)
  return wild < 0 ? [] : [{ at, message: 'must select one field; put the wildcard into path' }]
}

function checkMap(value: unknown, at: ValuePath): PatchProblem[] {
  return isObject(value) ? [] : [{ at, message: `must be a map, not ${typeName(value)}; write {}` }]
}

function checkDuplicates(list: readonly unknown[]): PatchProblem[] {
  const seen = new Map<string, number>()
  return list.flatMap((patch, index) => {
    const path = isObject(patch) ? patch['path'] : undefined
    if (typeof path !== 'string' || checkPath(path, []).length) return []
    const shown = showPath(parsePath(path))
    const first = seen.get(shown)
    if (first === undefined) seen.set(shown, index)
    return first === undefined ? [] : [{ at: [index, 'path'], message: duplicate(shown, first) }]
  })
}

function duplicate(path: string, first: number): string {
  return `${path || 'the whole object'} is already patched by entry ${first}: put both into one expression`
}

function unknownKeys(map: JsonObject, known: readonly string[], at: ValuePath): PatchProblem[] {
  return Object.keys(map)
    .filter(key => !known.includes(key))
    .map(key => {
      const hint = didYouMean(key, known) || `; known keys: ${known.join(', ')}`
      return { at: [...at, key], message: `unknown key ${JSON.stringify(key)}${hint}` }
    })
}

function typeName(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'a list' : isObject(value) ? 'a map' : `a ${typeof value}`
}
