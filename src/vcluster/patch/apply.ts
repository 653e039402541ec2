// Applies a list of patches to an object on its way to the other side. The syncer and the preview call it.

import type { JsonObject } from '../../api/object.ts'
import { applyOne, type PatchInput, prepare, type Ready, type Step, type Surroundings } from './apply-one.ts'
import { cloneJson } from './edit.ts'
import { checkPatches, type Patch } from './patch.ts'
import type { Problem } from './problem.ts'
import type { Direction, Referent } from './reference.ts'

export type PatcherOptions = Surroundings & {
  readonly patches: readonly Patch[]
  /** What is wrong with an object by its schema; nothing: fine. */
  readonly validate?: (object: JsonObject) => readonly string[]
  readonly now?: () => number
}

export type { PatchInput, Step }

/** With a problem the object is not to be written; `object` is what there was before the patch that failed. */
export type Patched = {
  readonly object: JsonObject
  readonly trace: readonly Step[]
  readonly referents: readonly Referent[]
  readonly problem?: Problem
}

export type Patcher = {
  toHost(input: PatchInput): Promise<Patched>
  toVirtual(input: PatchInput): Promise<Patched>
  /** Closes the sandbox with it. */
  close(): Promise<void>
}

const expressionOf = (patch: Ready | undefined, direction: Direction): Pick<Problem, 'expression'> =>
  patch?.expressions[direction] ? { expression: direction === 'toHost' ? 'expression' : 'reverseExpression' } : {}

export function openPatcher(options: PatcherOptions): Patcher {
  const { sandbox, validate, now = () => performance.now() } = options
  const [wrong] = checkPatches(options.patches)
  if (wrong) throw new Error(`patches.${wrong.at.join('.')}: ${wrong.message}`)
  const ready = options.patches.map(prepare)

  async function run(direction: Direction, input: PatchInput, validateEach: boolean): Promise<Patched> {
    const trace: Step[] = []
    const referents: Referent[] = []
    let object: JsonObject = cloneJson(input.object)
    for (const patch of ready) {
      const start = now()
      const done = await applyOne({ patch, direction, input, object, options })
      const { index, shown: path } = patch
      const { changes, unchanged, skipped, isUnmatched = false } = done
      trace.push({ index, path, changes, unchanged, skipped, isUnmatched, ms: now() - start })
      const by = { index, ...expressionOf(patch, direction) }
      if (done.problem) return { object, trace, referents, problem: { ...by, ...done.problem } }
      const [refused] = validateEach && done.changes.length ? (validate?.(done.object) ?? []) : []
      if (refused !== undefined) return { object, trace, referents, problem: { ...by, path, message: refused } }
      referents.push(...done.referents)
      object = done.object
    }
    return { object, trace, referents }
  }

  /** Judged at the end, because patches may be right only together; who is to blame is looked for when it is not. */
  async function runAndJudge(direction: Direction, input: PatchInput): Promise<Patched> {
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
    toHost: input => runAndJudge('toHost', input),
    toVirtual: input => runAndJudge('toVirtual', input),
    close: () => sandbox.close(),
  }
}
