// Report of `--once`: counts the objects of each side and kind that one sync created, updated, deleted, left unchanged or
// could not sync.

import type { Kind } from '../../api/kind.ts'
import type { Ref, Resource } from '../../api/object.ts'
import type { Resources } from '../../api/resources.ts'
import { isConflict } from './apply-write.ts'
import { SyncFailureError } from './condition.ts'
import type { Side } from './endpoints-controller.ts'
import { EndpointSlice, Endpoints, Event } from './kinds.ts'
import type { Syncer } from './sync.ts'
import { importedAnnotation, virtualRefOf } from './sync-annotations.ts'

type Result = 'created' | 'updated' | 'deleted' | 'unchanged' | 'failed'
const results: readonly Result[] = ['created', 'updated', 'deleted', 'unchanged', 'failed']

export type Counts = { readonly side: Side; readonly kind: string } & { readonly [result in Result]: number }

export type SyncReport = {
  /** Whether the sync ended before its time limit. */
  readonly complete: boolean
  readonly objects: readonly Counts[]
  readonly failures: readonly {
    readonly kind: string
    readonly name: string
    readonly reason?: string
    readonly message: string
  }[]
}

export type ReportRecorder = {
  /** Wraps the client of a side, so that the report includes its writes. */
  observe(side: Side, resources: Resources): Resources
  report(sync: Pick<Syncer, 'failures' | 'hostObjects'> | undefined, complete: boolean): SyncReport
}

const ownKinds: readonly Kind[] = [Endpoints, EndpointSlice]

type Seen = { readonly side: Side; readonly kind: string; result: Result }

export function openReportRecorder(vcluster: string): ReportRecorder {
  const seen = new Map<string, Seen>()
  const note = (side: Side, kind: Kind, { namespace, name }: Ref, result: Result) => {
    // Events are reports of the syncer itself.
    if (kind === Event) return
    const key = `${side} ${kind.group}/${kind.kind} ${namespace}/${name}`
    const before = seen.get(key)
    const isRewritten = before?.result === 'created' && result === 'updated'
    // A copy is read again after it was written.
    if (isRewritten || (before && result === 'unchanged' && before.result !== 'failed')) return
    seen.set(key, { side, kind: kind.kind, result })
  }

  const observe = (side: Side, resources: Resources): Resources => {
    /** A conflict is not a failure: the syncer plans the object again. */
    const write = async <T>(kind: Kind, ref: Ref, result: Result, work: Promise<T>): Promise<T> => {
      try {
        const done = await work
        note(side, kind, ref, result)
        return done
      } catch (error) {
        // The failures of the syncer include its own kinds.
        if (!ownKinds.includes(kind) && !isConflict(error)) note(side, kind, ref, 'failed')
        throw error
      }
    }
    return {
      ...resources,
      get: async (kind, ref, options) => {
        const document = await resources.get(kind, ref, options)
        if (!ownKinds.includes(kind) && isCopy(side, document.object, vcluster)) note(side, kind, ref, 'unchanged')
        return document
      },
      create: (kind, namespace, object, options) => {
        const { name = '' } = (object as { metadata?: { name?: string } }).metadata ?? {}
        return write(kind, { namespace, name }, 'created', resources.create(kind, namespace, object, options))
      },
      update: (kind, ref, object, options) => write(kind, ref, 'updated', resources.update(kind, ref, object, options)),
      delete: (kind, ref, options) => write(kind, ref, 'deleted', resources.delete(kind, ref, options)),
    }
  }

  const report = (sync: Pick<Syncer, 'failures' | 'hostObjects'> | undefined, complete: boolean): SyncReport => {
    const failures = sync?.failures() ?? []
    const failed = new Set(failures.map(({ kind, name }) => `${kind} ${name}`))
    for (const { kind, objects } of sync?.hostObjects() ?? [])
      for (const { metadata } of objects) {
        const own = virtualRefOf(metadata, vcluster)
        const { namespace = '', name = '', deletionTimestamp } = metadata
        if (own && deletionTimestamp === undefined && !failed.has(`${kind.kind} ${own.namespace}/${own.name}`))
          note('host', kind, { namespace, name }, 'unchanged')
      }
    const all = [...seen.values(), ...failures.map(({ kind }): Seen => ({ side: 'host', kind, result: 'failed' }))]
    return {
      complete,
      objects: [...Map.groupBy(all, ({ side, kind }) => `${side} ${kind}`)]
        .toSorted(([a], [b]) => (a < b ? -1 : 1))
        .map(([, of]) => countsOf(of)),
      failures: failures.map(({ kind, name, error }) => ({
        kind,
        name,
        ...(error instanceof SyncFailureError ? { reason: error.syncFailure.reason } : {}),
        message: (error as Error).message,
      })),
    }
  }
  return { observe, report }
}

function isCopy(side: Side, { metadata }: Resource, vcluster: string): boolean {
  return side === 'host'
    ? virtualRefOf(metadata, vcluster) !== undefined
    : metadata.annotations?.[importedAnnotation] !== undefined
}

function countsOf(of: readonly Seen[]): Counts {
  const { side, kind } = of[0] as Seen
  const counts = results.map(result => [result, of.filter(one => one.result === result).length])
  return { side, kind, ...Object.fromEntries(counts) } as Counts
}

/** A table for people; empty if there are no objects. */
export function reportText({ objects }: SyncReport): string {
  if (!objects.length) return ''
  const rows = [
    ['SIDE', 'KIND', ...results.map(result => result.toUpperCase())],
    ...objects.map(one => [one.side, one.kind, ...results.map(result => String(one[result]))]),
  ]
  const widths = rows[0]?.map((_, at) => Math.max(...rows.map(row => row[at]?.length ?? 0))) ?? []
  return rows
    .map(
      row =>
        `${row
          .map((cell, at) => cell.padEnd((widths[at] ?? 0) + 2))
          .join('')
          .trimEnd()}\n`,
    )
    .join('')
}
