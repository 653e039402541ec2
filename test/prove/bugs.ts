// Seeded bugs of a store or a server, as edits of the sources. Loaded before the program with --import, one at a time.
// seeded-bugs.ts checks that the provers find each.

import { costBugs } from './cost-bugs.ts'
import { applyEdits, type Edit } from './edits.ts'
import { escalationBugs } from './escalation-bugs.ts'
import { replicaBugs } from './replica-bugs.ts'

/** `by`: the prover that must find it. */
export type Bug = {
  readonly by: 'traffic' | 'store crashes' | 'failing disk' | 'escalation' | 'cost' | 'replicas'
  readonly edits: readonly Edit[]
}

const bug = (by: Bug['by'], file: string, from: string, to: string): Bug => ({ by, edits: [{ file, from, to }] })
const inTraffic = (file: string, from: string, to: string) => bug('traffic', file, from, to)
const inCrashes = (file: string, from: string, to: string) => bug('store crashes', file, from, to)

const now = (chance: number) => `Math.random() < ${chance}`
const push = 'bucketLog.events.push(event)'
const getEntry = 'ctx.store.get({ bucket: kind.id, namespace: spaceOf(kind, ref.namespace), name: ref.name })'

export const bugs: { readonly [name: string]: Bug } = {
  'drop the fsync': bug(
    'failing disk',
    'storage/sqlite/table.ts',
    'PRAGMA synchronous = FULL',
    'PRAGMA synchronous = OFF',
  ),
  'acknowledge before the commit': inCrashes(
    'storage/sqlite/store.ts',
    'await thread.call(append, [slab.buffer])',
    'void thread.call(append, [slab.buffer]).catch(() => {})',
  ),
  'leave a row out of a batch': inCrashes(
    'storage/sqlite/table.ts',
    'insert.run(id, bucket,',
    `${now(0.95)} && insert.run(id, bucket,`,
  ),
  'forget the end of the log': inCrashes(
    'storage/sqlite/load.ts',
    'yield { floor, rows, texts }',
    "yield fields.length < 64 ? { floor, rows: '[]', texts: new Uint8Array(0) } : { floor, rows, texts }",
  ),
  'compact what is still there': inCrashes(
    'storage/sqlite/table.ts',
    'if (gap === 0) deleteRow.run(id)',
    'deleteRow.run(id)',
  ),
  'reorder two events': inTraffic(
    'storage/event-log.ts',
    push,
    `${now(0.01)} ? bucketLog.events.splice(-1, 0, event) : ${push}`,
  ),
  'double an event': inTraffic('storage/event-log.ts', push, `${push}; if (${now(0.01)}) ${push}`),
  'lose an event': inTraffic('storage/event-log.ts', push, `if (${now(0.99)}) ${push}`),
  'forget to wake': inTraffic(
    'storage/event-log.ts',
    'for (const bucketLog of touched) wakeAll(bucketLog)',
    `for (const bucketLog of touched) if (!events[0].key.bucket.startsWith('teams') || ${now(0.2)}) wakeAll(bucketLog)`,
  ),
  'resume one too late': inTraffic('storage/event-log.ts', '.revision <= after) low', '.revision <= after + 1) low'),
  'resume from now': inTraffic(
    'registry/watch.ts',
    'version && version > 0 ? version : ctx.store.revision',
    'ctx.store.revision',
  ),
  'a bookmark too early': inTraffic(
    'storage/event-log.ts',
    'seen = (nextEvent()?.revision ?? revision + 1) - 1',
    'seen = revision + 1',
  ),
  'trim history without a 410': {
    by: 'traffic',
    edits: [
      {
        file: 'storage/event-log.ts',
        from: 'minAgeMs = 600_000, minEvents = 10_000',
        to: 'minAgeMs = 0, minEvents = 20',
      },
      { file: 'storage/event-log.ts', from: 'if (from < floor) {', to: 'if (from < 0) {' },
    ],
  },
  'lose a DELETED': inTraffic(
    'registry/watch.ts',
    "eventOf(ctx, kind, event.entry, 'DELETED')",
    `(${now(0.1)} ? undefined : eventOf(ctx, kind, event.entry, 'DELETED'))`,
  ),
  'lose who leaves a selection': inTraffic(
    'registry/watch.ts',
    "return watchEvent('DELETED', atRevision(presentAmong(ctx, kind, previous).object, event.revision))",
    'return undefined',
  ),
  'a watch that leaks': inTraffic(
    'registry/watch.ts',
    'if (!wasIn) return undefined',
    "if (!wasIn) return eventOf(ctx, kind, event.entry, 'MODIFIED')",
  ),
  'a state with a bookmark of later': inTraffic(
    'registry/watch.ts',
    'bookmarkAt(kind, start, true)',
    'bookmarkAt(kind, start + 1, true)',
  ),
  'skip the version check in the store': inTraffic(
    'storage/compare-and-swap.ts',
    'if (expect === undefined || expect === entry.revision)',
    'if (expect !== 0)',
  ),
  'skip the version check in the verb': inTraffic(
    'registry/update.ts',
    'if (pinned && pinned !== String(entry.revision)) throw conflict(kind, ref.name)',
    '',
  ),
  'reuse a revision': inTraffic(
    'storage/compare-and-swap.ts',
    'revision++\n',
    `if (events.length === 0 || ${now(0.9)}) revision++\n`,
  ),
  'lose an update': inTraffic(
    'registry/update.ts',
    "{ type: 'put', key, value, expect }",
    "{ type: 'put', key, value }",
  ),
  'create over what is there': inTraffic('registry/create.ts', 'key, value, expect: 0 }', 'key, value }'),
  'delete in spite of a precondition': inTraffic(
    'registry/delete.ts',
    'checkPreconditions(kind, ref.name, old, options)',
    '',
  ),
  'answer a delete that did not happen': inTraffic(
    'registry/delete.ts',
    'if ((gone || !unchanged) && !options.dryRun) {',
    `if ((gone || !unchanged) && !options.dryRun && ${now(0.95)}) {`,
  ),
  'a dry run that writes': inTraffic(
    'registry/update.ts',
    'if (request.dryRun) return documentOf(visible(ctx, kind, seen))',
    '',
  ),
  'a no-op that takes a revision': inTraffic(
    'registry/update.ts',
    'if (isSameApartFromTimes(old, seen))',
    'if (false)',
  ),
  'serve a stale object': inTraffic(
    'registry/get.ts',
    `const entry = ${getEntry}`,
    `const kept = (globalThis.kept ??= new Map())
     if (!kept.has(ref.name) || ${now(0.7)}) kept.set(ref.name, ${getEntry})
     const entry = kept.get(ref.name)`,
  ),
  'serve a stale list': inTraffic(
    'registry/list-cache.ts',
    'if (kept.revision !== store.revision) kept.lists.clear()',
    `if (kept.revision !== store.revision && ${now(0.5)}) kept.lists.clear()`,
  ),
  'a list of two revisions': inTraffic(
    'storage/watch-cache.ts',
    'revision === log.revision ? undefined : snapshots.at(query.bucket, revision)',
    'undefined',
  ),
  'the next page of a newer list': inTraffic(
    'registry/list.ts',
    'from.revision === -1 ? undefined : from.revision',
    'undefined',
  ),
  'half of a batch to be seen': inTraffic(
    'storage/watch-cache.ts',
    `for (const { type, key, entry } of events) {
        if (type === 'deleted') cache.remove(key)
        else cache.put(entry)
      }`,
    `const show = part => {
        for (const { type, key, entry } of part) if (type === 'deleted') cache.remove(key); else cache.put(entry)
      }
      show(events.slice(0, 1))
      if (events.length > 1) setImmediate(() => show(events.slice(1)))`,
  ),
  'an index that forgets': inTraffic(
    'storage/term-index.ts',
    "else if (typeof there !== 'string') addKey(there, key)",
    `else if (typeof there !== 'string') { if (${now(0.95)}) addKey(there, key) }`,
  ),
  ...Object.fromEntries(
    Object.entries(escalationBugs).map(([name, edits]): [string, Bug] => [name, { by: 'escalation', edits }]),
  ),
  ...Object.fromEntries(
    Object.entries(costBugs).map(([name, { edits }]): [string, Bug] => [name, { by: 'cost', edits }]),
  ),
  ...Object.fromEntries(
    Object.entries(replicaBugs).map(([name, { edits }]): [string, Bug] => [name, { by: 'replicas', edits }]),
  ),
}

const chosen = bugs[process.env['PROVE_BUG'] ?? '']
if (chosen) applyEdits(process.env['PROVE_BUG'] ?? '', chosen.edits)
