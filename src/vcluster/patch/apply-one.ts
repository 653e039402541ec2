// Applies one patch to one object: matches the path, computes the values and writes them.

import { type Draft, isObject, type Json, type JsonObject } from '../../api/object.ts'
import { METADATA_PREFIX } from '../sync/names.ts'
import { cloneJson, cloneValue, isSame, readAt, removeAll, writeAt } from './edit.ts'
import { parseExpression } from './expression.ts'
import { rewriteSelector } from './label-selector.ts'
import type { Patch, Reference } from './patch.ts'
import { type ConcretePath, type Match, matchPath, type Path, parsePath, showPath } from './path.ts'
import { isProtected, mayHoldProtected, restoreProtected } from './protected-paths.ts'
import { type Direction, type NamespaceMapping, type ReferencedObject, rewriteReference } from './reference.ts'
import { type HostChanges, notReversed } from './reverse-scope.ts'
import type { Batch, Evaluated, Sandbox } from './sandbox.ts'
import { edited, type TranslatedPods, translatedPod } from './translated-pod.ts'

export type PatchEnvironment = {
  readonly vcluster: { readonly name: string; readonly namespace: string; readonly config: JsonObject }
  /** Absent in single-namespace mode. */
  readonly multiNamespace?: NamespaceMapping
  readonly sandbox: Sandbox
  /** Whether a name means the host's object of that name; default: never. */
  readonly isImportedByName?: (referenced: ReferencedObject) => Promise<boolean>
}

export type PatchInput = {
  readonly virtualObject: JsonObject | null
  readonly hostObject: JsonObject | null
  /** The object without patches. Not modified. */
  readonly object: JsonObject
  /** From the host: what a reverse patch may change; default: every label and annotation. */
  readonly changes?: HostChanges
  /** To the host: Pods whose names `object` already has in translated form. */
  readonly translatedPods?: TranslatedPods
}

/** The trace of one patch. */
export type Step = {
  readonly index: number
  readonly path: string
  readonly changes: readonly { readonly path: string; readonly before: Json; readonly after?: Json }[]
  /** Matched paths whose value did not change. */
  readonly unchanged: readonly string[]
  readonly skipped: readonly { readonly path: string; readonly reason: string }[]
  /** The patch applies to this direction but matches nothing. */
  readonly isUnmatched: boolean
  readonly ms: number
}

export type PreparedPatch = {
  readonly index: number
  readonly path: Path
  readonly shown: string
  readonly expressions: { readonly [D in Direction]?: { readonly text: string; readonly names: ReadonlySet<string> } }
  readonly reference?: Reference
  readonly isSelector: boolean
}

export const protectedReason = 'is protected'

/** The new value of a match; `null` removes it. */
type Outcome =
  | { readonly value: Json; readonly referenced?: ReferencedObject }
  | { readonly skipped: string; readonly unresolved?: string }
  | { readonly failed: string }

export function prepare(patch: Patch, index: number): PreparedPatch {
  const parsed = (text: string) => ({ text, names: parseExpression(text).names })
  const path = parsePath(patch.path)
  const isSelector = patch.labels !== undefined || patch.reference?.labels !== undefined
  return {
    index,
    path,
    shown: showPath(path),
    expressions: {
      ...(patch.expression !== undefined && { toHost: parsed(patch.expression) }),
      ...(patch.reverseExpression !== undefined && { toVirtual: parsed(patch.reverseExpression) }),
    },
    ...(patch.reference && !isSelector && { reference: patch.reference }),
    isSelector,
  }
}

type One = {
  readonly patch: PreparedPatch
  readonly direction: Direction
  readonly input: PatchInput
  readonly object: JsonObject
  readonly options: PatchEnvironment
}
type Done = Pick<Step, 'changes' | 'unchanged' | 'skipped'> & {
  readonly isUnmatched?: boolean
  readonly object: JsonObject
  readonly referencedObjects: readonly ReferencedObject[]
  /** References whose namespace is not synced, as messages for the tenant. */
  readonly unresolvedReferences?: readonly string[]
  readonly problem?: { readonly path: string; readonly message: string }
}

export async function applyOne(one: One): Promise<Done> {
  const { patch, direction, object } = one
  const isIdle = !patch.reference && !patch.isSelector && !patch.expressions[direction]
  const nothing = { object, changes: [], unchanged: [], referencedObjects: [] }
  if (isIdle) return { ...nothing, skipped: [{ path: patch.shown, reason: 'has nothing for this direction' }] }
  const { matches, misses } = matchPath(object, patch.path)
  const skipped = misses.map(({ path, reason }) => ({ path: showPath(path), reason }))
  const writable: Match[] = []
  let isUnmatched = true
  for (const match of matches) {
    const isFree = !isProtected(match.path)
    const kept = direction === 'toVirtual' ? notReversed(match.path, one.input.changes) : undefined
    const reason = isFree ? kept : protectedReason
    if (isFree) isUnmatched = false
    if (reason === undefined) writable.push(match)
    else skipped.push({ path: showPath(match.path), reason })
  }
  if (writable.length === 0) return { ...nothing, skipped, isUnmatched }
  const outcomes = await outcomesOf(one, writable)
  const failed = outcomes.findIndex(outcome => 'failed' in outcome)
  const reason = outcomes[failed]
  if (reason && 'failed' in reason)
    return { ...nothing, skipped, problem: { path: showPath(writable[failed]?.path ?? []), message: reason.failed } }
  return write(one, writable, outcomes, skipped)
}

async function outcomesOf(one: One, matches: readonly Match[]): Promise<Outcome[]> {
  const { patch, direction, input, options } = one
  const expression = patch.expressions[direction]
  if (expression) return evaluate(one, expression, matches)
  const naming = {
    vcluster: options.vcluster,
    ...(options.multiNamespace && { multiNamespace: options.multiNamespace }),
    namespace: namespaceOf(input),
    direction,
  }
  const outcomes: Outcome[] = []
  for (const { path, value } of matches) {
    const virtualValue = readAt(input.virtualObject ?? undefined, path)
    const { reference } = patch
    if (!reference) {
      outcomes.push(rewriteSelector(value, { ...naming, virtualValue }))
      continue
    }
    const pods = direction === 'toHost' ? input.translatedPods : undefined
    const translated = pods && translatedPod(one.object, path, reference, pods)
    if (translated === edited) {
      outcomes.push({ skipped: 'is already translated, and another patch edited the name' })
      continue
    }
    const how = { ...naming, reference, path, virtualValue, translated }
    const rewritten = rewriteReference(value, how)
    const { referenced } = 'value' in rewritten ? rewritten : {}
    const isImport = direction === 'toHost' && referenced && (await options.isImportedByName?.(referenced))
    outcomes.push(isImport ? rewriteReference(value, { ...how, isImport }) : rewritten)
  }
  return outcomes
}

function namespaceOf({ virtualObject, hostObject, object }: PatchInput): string {
  const noted = readAt(hostObject ?? undefined, ['metadata', 'annotations', `${METADATA_PREFIX}object-namespace`])
  const own = readAt(virtualObject ?? undefined, ['metadata', 'namespace']) ?? noted
  const found = own ?? readAt(object, ['metadata', 'namespace'])
  return typeof found === 'string' ? found : ''
}

async function evaluate(
  { input, options }: One,
  { text, names }: { readonly text: string; readonly names: ReadonlySet<string> },
  matches: readonly Match[],
): Promise<Outcome[]> {
  if (!matches.length) return []
  const { vcluster, multiNamespace } = options
  const { virtualObject, hostObject } = input
  const batch: Batch = {
    expression: text,
    values: matches.map(({ value }) => value),
    ...(names.has('context') && {
      context: { vcluster, virtualObject, hostObject },
      paths: matches.map(({ path }) => showPath(path)),
    }),
    ...(names.has('virtualToHostDNS') && !multiNamespace && { dns: dnsOf(vcluster) }),
  }
  return (await options.sandbox.evaluate(batch)).map(outcomeOf)
}

const outcomeOf = (result: Evaluated): Outcome =>
  'value' in result ? { value: cloneValue(result.value) } : { failed: result.message }

function dnsOf({ name, namespace, config }: PatchEnvironment['vcluster']): NonNullable<Batch['dns']> {
  const domain = readAt(config, ['networking', 'advanced', 'clusterDomain'])
  return { vcluster: name, namespace, clusterDomain: typeof domain === 'string' && domain ? domain : 'cluster.local' }
}

function write(
  { patch, object }: One,
  matches: readonly Match[],
  outcomes: readonly Outcome[],
  skips: Done['skipped'],
): Done {
  const skipped = [...skips]
  const changes: Step['changes'][number][] = []
  const unchanged: string[] = []
  const referencedObjects: ReferencedObject[] = []
  const nothing = { object, changes: [], unchanged: [], skipped, referencedObjects: [] }
  const removed: ConcretePath[] = []
  const unresolvedReferences: string[] = []
  let next: Draft = cloneJson(object)
  for (const [index, { path, value: before }] of matches.entries()) {
    const outcome = outcomes[index]
    const shown = showPath(path)
    if (!outcome || 'failed' in outcome) continue
    if ('skipped' in outcome) {
      skipped.push({ path: shown, reason: outcome.skipped })
      if (outcome.unresolved !== undefined) unresolvedReferences.push(outcome.unresolved)
      continue
    }
    const { value: after, referenced } = outcome
    if (referenced) referencedObjects.push(referenced)
    if (after !== null && isSame(before, after)) {
      unchanged.push(shown)
      continue
    }
    changes.push({ path: shown, before, ...(after !== null && { after }) })
    if (path.length === 0) {
      if (!isObject(after)) return { ...nothing, problem: notAnObject(after) }
      next = after as Draft
    } else if (after === null) removed.push(path)
    else writeAt(next, path, after)
  }
  removeAll(next, removed)
  const message = mayHoldProtected(patch.path) ? restoreProtected(next, object) : undefined
  if (message !== undefined) return { ...nothing, problem: { path: patch.shown, message } }
  return { object: next, changes, unchanged, skipped, referencedObjects, unresolvedReferences }
}

function notAnObject(after: Json): NonNullable<Done['problem']> {
  const found = after === null ? 'nothing' : Array.isArray(after) ? 'a list' : `a ${typeof after}`
  return { path: '', message: `the whole object must stay a map; the expression returned ${found}` }
}
