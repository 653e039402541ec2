// Asks the server for a preview of patches, in the form of a local one (D70).

import type { JsonObject, Resource } from '../../api/object.ts'
import type { Io } from '../../host/command.ts'
import { plain } from '../../host/sanitize.ts'
import { PatchPreview } from '../../kinds/patch-preview.ts'
import type { Config } from '../../vcluster/config/config.ts'
import type { Preview } from '../../vcluster/patch/preview.ts'
import type { RoundTrip } from '../../vcluster/patch/round-trip.ts'
import { openSession } from '../session.ts'

type Given = {
  readonly flags: {
    readonly context: string | undefined
    readonly name: string
    readonly namespace: string
    readonly reverse: boolean
    readonly 'sync-references': readonly string[]
  }
  readonly config: Config
  readonly object: JsonObject
  readonly host: JsonObject | null
  readonly virtual: JsonObject | null
}

type Status = {
  readonly object?: JsonObject
  readonly plain?: JsonObject
  readonly problem?: { readonly message?: string; readonly patch?: number; readonly path?: string }
  readonly trace?: readonly ServerStep[]
  readonly referencedObjects?: Preview['referencedObjects']
  readonly notes?: readonly string[]
  readonly roundTrip?: { readonly values?: readonly (Omit<RoundTrip, 'index'> & { readonly patch: number })[] }
}
type ServerStep = Omit<Preview['trace'][number], 'index' | 'isUnmatched' | 'ms'> & {
  readonly patch: number
  readonly unmatched: boolean
  readonly milliseconds: number
}

export async function askServer(
  { flags, config, object, host, virtual }: Given,
  io: Io,
): Promise<{ readonly preview: Preview; readonly trips: readonly RoundTrip[] }> {
  const spec = {
    object,
    direction: flags.reverse ? 'toVirtual' : 'toHost',
    vcluster: { name: flags.name, namespace: flags.namespace },
    ...(host ? { hostObject: host } : {}),
    ...(virtual ? { virtualObject: virtual } : {}),
    config: config as unknown as JsonObject,
    syncReferences: [...flags['sync-references']],
  }
  const session = await openSession(io, { context: flags.context })
  try {
    const { object: answer } = await session.resources.create(PatchPreview, '', { spec })
    return previewOf(answer, object)
  } finally {
    session.close()
  }
}

function previewOf({ status = {} }: Resource, given: JsonObject) {
  const { object = given, problem, trace = [], referencedObjects = [], notes = [], roundTrip } = status as Status
  const preview: Preview = {
    object,
    plain: (status as Status).plain ?? given,
    trace: trace.map(({ patch: index, unmatched: isUnmatched, milliseconds: ms, ...step }) => ({
      ...step,
      index,
      isUnmatched,
      ms,
    })),
    referencedObjects,
    // A server is not trusted to write control characters to the terminal.
    notes: notes.map(plain),
    ...(problem ? { problem: plain(problem.message ?? '') } : {}),
    ...(problem?.patch === undefined
      ? {}
      : { failure: { index: problem.patch, path: problem.path ?? '', message: problem.message ?? '' } }),
  }
  const trips = (roundTrip?.values ?? []).map(({ patch: index, ...trip }) => ({ ...trip, index }))
  return { preview, trips }
}
