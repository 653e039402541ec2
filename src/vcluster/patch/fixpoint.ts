// Applies both directions of the sync again and again, and finds the rules that never settle.

import type { Json, JsonObject } from '../../api/object.ts'
import type { SyncedObject } from '../sync/kinds.ts'
import { differencesOf, overlap } from './differences.ts'
import { matchPath, parsePath } from './path.ts'
import { keyPolicyOf, type Preview, type PreviewOptions, previewToHost, previewToVirtual } from './preview.ts'
import { stripSyncMetadata } from './strip-sync-metadata.ts'

export type ChangingValue = {
  readonly side: 'host' | 'virtual'
  readonly path: string
  /** Indexes of the patches that change it. */
  readonly patches: readonly number[]
  /** Its last values, newest last. */
  readonly values: readonly Json[]
}

export type Fixpoint = {
  readonly settled: boolean
  readonly rounds: number
  readonly changing: readonly ChangingValue[]
  /** The problem that ended the run. */
  readonly failed?: Preview
}

export type FixpointOptions = PreviewOptions & { readonly maxRounds: number; readonly isLate: () => boolean }

type Round = { readonly host: JsonObject; readonly virtual: JsonObject; readonly steps: readonly Preview[] }

const maxValues = 5
const maxChanging = 20

/** A round syncs to the host and back. It settles once a round changes neither side. */
export async function runToFixpoint(
  first: { readonly virtualObject: JsonObject; readonly hostObject: JsonObject | null },
  options: FixpointOptions,
): Promise<Fixpoint> {
  const history: Round[] = []
  let { virtualObject: virtual, hostObject: host } = first
  let rounds = 0
  while (rounds < options.maxRounds && !options.isLate()) {
    rounds++
    const there = await previewToHost({ virtualObject: virtual, hostObject: host }, options)
    if (there.problem !== undefined) return { settled: false, rounds, changing: [], failed: there }
    const back = await previewToVirtual({ virtualObject: virtual, hostObject: there.object }, options)
    if (back.problem !== undefined) return { settled: false, rounds, changing: [], failed: back }
    const next = withUnsynced(back.object, virtual, options)
    const isSettled = host !== null && isSame(host, there.object) && isSame(virtual, next)
    host = there.object
    virtual = next
    history.push({ host, virtual, steps: [there, back] })
    if (isSettled) return { settled: true, rounds, changing: [] }
    // Only the last rounds are shown.
    if (history.length > maxValues + 1) history.shift()
  }
  return { settled: false, rounds, changing: changingIn(history) }
}

const isSame = (one: JsonObject, other: JsonObject) =>
  differencesOf(stripSyncMetadata(one), stripSyncMetadata(other)).length === 0

/** The syncer leaves labels and annotations alone that it does not sync. */
function withUnsynced(next: JsonObject, old: JsonObject, { config }: PreviewOptions): JsonObject {
  const isSynced = keyPolicyOf(config)
  const [to, from] = [next, old].map(one => (one as unknown as SyncedObject).metadata)
  const maps = (['labels', 'annotations'] as const).flatMap(part => {
    const kept = Object.entries(from?.[part] ?? {}).filter(([key]) => !isSynced(key))
    const merged = { ...Object.fromEntries(kept), ...to?.[part] }
    return Object.keys(merged).length ? [[part, merged] as const] : []
  })
  return { ...next, metadata: { ...(next['metadata'] as JsonObject), ...Object.fromEntries(maps) } }
}

function changingIn(history: readonly Round[]): ChangingValue[] {
  const [last, before] = [history.at(-1), history.at(-2)]
  if (!last || !before) return []
  return (['virtual', 'host'] as const)
    .flatMap(side =>
      differencesOf(stripSyncMetadata(before[side]), stripSyncMetadata(last[side])).map(({ path }) => ({
        side,
        path,
        patches: patchesAt(path, last.steps),
        values: history.slice(-maxValues).map(round => shortValue(valueAt(stripSyncMetadata(round[side]), path))),
      })),
    )
    .slice(0, maxChanging)
}

const patchesAt = (path: string, steps: readonly Preview[]): number[] => {
  const found = steps.flatMap(({ trace }) =>
    trace.flatMap(({ index, changes }) => (changes.some(one => overlap(one.path, path)) ? [index] : [])),
  )
  return [...new Set(found)].toSorted((one, other) => one - other)
}

const valueAt = (object: JsonObject, path: string): Json => matchPath(object, parsePath(path)).matches[0]?.value ?? null

const maxCharacters = 1000

const shortValue = (value: Json): Json => {
  const text = JSON.stringify(value)
  return text.length > maxCharacters ? `${text.slice(0, maxCharacters)}…` : value
}
