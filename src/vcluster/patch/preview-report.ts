// Builds the status of a PatchPreview: result, trace, opposite direction, round trip and fixpoint (D70).

import type { Json, JsonObject } from '../../api/object.ts'
import { parseKind } from '../config/reference-kinds.ts'
import type { SyncedObject } from '../sync/kinds.ts'
import type { Step } from './apply.ts'
import { differencesOf } from './differences.ts'
import { runToFixpoint } from './fixpoint.ts'
import type { Patch } from './patch.ts'
import {
  keyPolicyOf,
  missingIdentity,
  type Preview,
  type PreviewOptions,
  previewToHost,
  previewToVirtual,
  syncedKindOf,
} from './preview.ts'
import { inputProblem, patchProblems, previewConfig, type StaticProblem } from './preview-input.ts'
import type { Problem } from './problem.ts'
import { checkRoundTrip, type RoundTrip } from './round-trip.ts'
import type { Sandbox } from './sandbox.ts'

/** The spec of a PatchPreview. */
export type PreviewRequest = {
  readonly object: JsonObject
  readonly patches?: readonly Json[] | undefined
  readonly direction?: string | undefined
  readonly vcluster?: { readonly name?: string | undefined; readonly namespace?: string | undefined } | undefined
  readonly hostObject?: JsonObject | null | undefined
  readonly virtualObject?: JsonObject | null | undefined
  readonly config?: JsonObject | null | undefined
  readonly syncReferences?: readonly string[] | undefined
  readonly maxRounds?: number | undefined
}

export type ReportTools = {
  readonly sandbox: Sandbox
  readonly now: () => number
  /** Whether the time for further checks is over. */
  readonly isLate: () => boolean
}

export async function previewReport(request: PreviewRequest, tools: ReportTools): Promise<object> {
  const { object, direction = 'toHost', syncReferences = [] } = request
  const { name = 'my-vcluster', namespace = 'my-namespace' } = request.vcluster ?? {}
  const invalid = inputProblemOf(request)
  if (invalid !== undefined) return { problem: { reason: 'InvalidObject', message: invalid } }
  const wrong = patchProblems(request.patches ?? [])
  if (wrong.length) return notRun('InvalidPatch', wrong)
  const { config, problems } = previewConfig({
    object,
    config: request.config ?? undefined,
    patches: request.patches,
    syncReferences,
  })
  if (problems.length) return notRun('InvalidConfig', problems)
  const references = syncReferences.flatMap(kind => parseKind(kind) ?? [])
  const options: PreviewOptions = {
    config,
    name,
    namespace,
    syncReferences: references,
    sandbox: tools.sandbox,
    now: tools.now,
  }
  return direction === 'toVirtual' ? fromHost(request, options, tools) : fromVirtual(request, options, tools)
}

function inputProblemOf({ object, hostObject, virtualObject }: PreviewRequest): string | undefined {
  const given = { object, hostObject, virtualObject }
  for (const [key, value] of Object.entries(given)) {
    const problem = value == null ? undefined : inputProblem(value)
    if (problem !== undefined) return `${key}: ${problem}`
  }
  return undefined
}

function notRun(reason: string, problems: readonly StaticProblem[]): object {
  const [first] = problems
  return { problem: { reason, ...first }, problems }
}

async function fromVirtual(request: PreviewRequest, options: PreviewOptions, tools: ReportTools): Promise<object> {
  const { object: virtualObject, hostObject = null } = request
  const main = await previewToHost({ virtualObject, hostObject }, options)
  if (main.problem !== undefined) return resultOf(main)
  const reverse = await previewToVirtual({ virtualObject, hostObject: main.object }, options)
  return whole({ main, reverse, original: virtualObject, start: { virtualObject, hostObject } }, request, {
    ...options,
    ...tools,
  })
}

async function fromHost(request: PreviewRequest, options: PreviewOptions, tools: ReportTools): Promise<object> {
  const { object: hostObject, virtualObject = null } = request
  const nameless = missingIdentity({ virtualObject, hostObject }, options.name)
  if (nameless !== undefined) return { problem: { reason: 'HostObjectForeign', message: nameless } }
  const main = await previewToVirtual({ virtualObject, hostObject }, options)
  if (main.problem !== undefined) return resultOf(main)
  const reverse = await previewToHost({ virtualObject: main.object, hostObject: null }, options)
  const start = { virtualObject: main.object, hostObject: null }
  return whole({ main, reverse, original: hostObject, start }, request, { ...options, ...tools })
}

type Both = {
  readonly main: Preview
  readonly reverse: Preview
  readonly original: JsonObject
  readonly start: { readonly virtualObject: JsonObject; readonly hostObject: JsonObject | null }
}

async function whole(
  { main, reverse, original, start }: Both,
  { maxRounds = 10 }: PreviewRequest,
  options: PreviewOptions & ReportTools,
): Promise<object> {
  const differences = differencesOf(syncedPart(original, options), syncedPart(reverse.object, options))
  const { failed, ...fixpoint } = await runToFixpoint(start, { ...options, maxRounds })
  const values = await roundTrips(original, options)
  return {
    ...resultOf(main),
    reverse: resultOf(reverse),
    roundTrip: { equal: reverse.problem === undefined && differences.length === 0, differences, values },
    fixpoint: { ...fixpoint, ...(failed && { problem: problemOf(failed) }) },
  }
}

/** Only labels and annotations are synced in both directions. */
function syncedPart(object: JsonObject, { config }: PreviewOptions): JsonObject {
  const isSynced = keyPolicyOf(config)
  const { labels = {}, annotations = {} } = (object as unknown as SyncedObject).metadata
  const synced = (map: { readonly [key: string]: string }): JsonObject =>
    Object.fromEntries(Object.entries(map).filter(([key]) => isSynced(key)))
  return { metadata: { labels: synced(labels), annotations: synced(annotations) } }
}

async function roundTrips(object: JsonObject, options: PreviewOptions & ReportTools): Promise<object[]> {
  const { config, name, namespace, sandbox, isLate } = options
  const patches = config.sync.toHost[syncedKindOf(object).setting].patches as readonly Patch[]
  const results: object[] = []
  for (const [index, patch] of patches.entries()) {
    if (isLate()) break
    const [trip] = await checkRoundTrip({
      patches: [patch],
      object,
      sandbox,
      context: { vcluster: { name, namespace, config }, virtualObject: object, hostObject: null },
      dns: { vcluster: name, namespace, clusterDomain: config.networking.advanced.clusterDomain },
    })
    if (trip) results.push(tripOf(trip, index))
  }
  return results
}

const tripOf = ({ index: _, ...trip }: RoundTrip, patch: number) => ({ patch, ...trip })

function resultOf(preview: Preview): object {
  const { object, plain, trace, referencedObjects, notes, failure } = preview
  return {
    object,
    plain,
    ...(preview.problem === undefined ? {} : { problem: problemOf(preview) }),
    trace: trace.map(step => stepOf(step, failure)),
    referencedObjects,
    notes,
  }
}

function problemOf({ problem = '', reason = 'NotSynced', failure }: Preview): object {
  return { reason, message: problem, ...(failure && { patch: failure.index, ...placeOf(failure) }) }
}

const placeOf = ({ path, expression }: Problem) => ({ path, ...(expression ? { field: expression } : {}) })

function stepOf({ index, isUnmatched, ms, ...step }: Step, failure: Problem | undefined): object {
  return {
    patch: index,
    ...step,
    unmatched: isUnmatched,
    milliseconds: Math.round(ms * 10) / 10,
    ...(failure?.index === index ? { error: { message: failure.message, ...placeOf(failure) } } : {}),
  }
}
