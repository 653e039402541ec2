// Compacts etcd's history, on the leader. It keeps at least the history that the other engines keep.

import type { Work } from '../storage.ts'
import type { EtcdStore } from './store.ts'

const [noteEveryMs, compactEveryMs, minAgeMs, minRevisions] = [60_000, 300_000, 600_000, 10_000]

type Note = { readonly time: number; readonly revision: number }

export function startCompaction(
  store: Pick<EtcdStore, 'internals' | 'revision'>,
  now: () => number,
  failed: (error: Error) => void,
): Work {
  const { client, offset } = store.internals
  let notes: readonly Note[] = []
  let compacted = 0
  const note = () => {
    notes = [...notes, { time: now(), revision: store.revision - offset }].slice(-60)
  }
  const compact = async () => {
    const old = notes.findLast(({ time }) => now() - time >= minAgeMs)
    const target = Math.min(old?.revision ?? 0, store.revision - offset - minRevisions)
    if (target <= compacted) return
    await client.compact(target)
    compacted = target
  }
  note()
  const noting = setInterval(note, noteEveryMs).unref()
  // A compaction that failed is repeated with the next one.
  const compacting = setInterval(() => void compact().catch(failed), compactEveryMs).unref()
  return {
    async stop() {
      clearInterval(noting)
      clearInterval(compacting)
    },
  }
}
