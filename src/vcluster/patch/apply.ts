// Applies a list of patches to an object.

import type { JsonObject } from '../../api/object.ts'
import {
  applyOne,
  type PatchEnvironment,
  type PatchInput,
  type PreparedPatch,
  prepare,
  type Step,
} from './apply-one.ts'
import { cloneJson } from './edit.ts'
import { checkPatches, type Patch } from './patch.ts'
import type { Problem } from './problem.ts'
import type { Direction, ReferencedObject } from './reference.ts'

export type PatcherOptions = PatchEnvironment & {
  readonly patches: readonly Patch[]
  /** Returns the schema problems of an object. */
  readonly validate?: (object: JsonObject) => readonly string[]
  readonly now?: () => number
}

export type { PatchInput, Step }

/** With a problem, the object must not be written, and `object` is the state before the failed patch. */
export type Patched = {
  readonly object: JsonObject
  readonly trace: readonly Step[]
  readonly referencedObjects: readonly ReferencedObject[]
  /** References that cannot have a target, as messages for the tenant. */
  readonly unresolvedReferences?: readonly string[]
  readonly problem?: Problem
}

export type Patcher = {
  toHost(input: PatchInput): Promise<Patched>
  toVirtual(input: PatchInput): Promise<Patched>
  /** Also closes the sandbox. */
  close(): Promise<void>
}

const expressionOf = (patch: PreparedPatch | undefined, direction: Direction): Pick<Problem, 'expression'> =>
  patch?.expressions[direction] ? { expression: direction === 'toHost' ? 'expression' : 'reverseExpression' } : {}

export function openPatcher(options: PatcherOptions): Patcher {
  const { sandbox, validate, now = () => performance.now() } = options
  const [wrong] = checkPatches(options.patches)
  if (wrong) throw new Error(`patches.${wrong.at.join('.')}: ${wrong.message}`)
  const ready = options.patches.map(prepare)
  /** The last patch was applied last, so it is undone first. */
  const reversed = ready.toReversed()

  async function run(direction: Direction, input: PatchInput, validateEach: boolean): Promise<Patched> {
    const trace: Step[] = []
    const referencedObjects: ReferencedObject[] = []
    const unresolvedReferences: string[] = []
    let object: JsonObject = cloneJson(input.object)
    for (const patch of direction === 'toHost' ? ready : reversed) {
      const start = now()
      const done = await applyOne({ patch, direction, input, object, options })
      const { index, shown: path } = patch
      const { changes, unchanged, skipped, isUnmatched = false } = done
      trace.push({ index, path, changes, unchanged, skipped, isUnmatched, ms: now() - start })
      const by = { index, ...expressionOf(patch, direction) }
      if (done.problem) return { object, trace, referencedObjects, problem: { ...by, ...done.problem } }
      const [invalid] = validateEach && done.changes.length ? (validate?.(done.object) ?? []) : []
      if (invalid !== undefined) return { object, trace, referencedObjects, problem: { ...by, path, message: invalid } }
      referencedObjects.push(...done.referencedObjects)
      unresolvedReferences.push(...(done.unresolvedReferences ?? []))
      object = done.object
    }
    return { object, trace, referencedObjects, unresolvedReferences }
  }

  /** Validates only the final object, because an intermediate one may be invalid. If it is invalid, finds the patch that caused it. */
  async function runAndValidate(direction: Direction, input: PatchInput): Promise<Patched> {
    const patched = await run(direction, input, false)
    const [message] = patched.problem || !ready.length ? [] : (validate?.(patched.object) ?? [])
    if (message === undefined) return patched
    const again = await run(direction, input, true)
    if (again.problem) return again
    const last = patched.trace.findLast(step => step.changes.length)
    if (!last) return patched
    const by = expressionOf(ready[last.index], direction)
    return { ...patched, problem: { index: last.index, path: last.path, message, ...by } }
  }

  return {
    toHost: input => runAndValidate('toHost', input),
    toVirtual: input => runAndValidate('toVirtual', input),
    close: () => sandbox.close(),
  }
}
