// Seeded bugs of replicas: of the etcd engine, and of what the server does to be correct with more than one of it. The replicated prover must find each.

import type { Edit } from './edits.ts'
import type { FaultName } from './replicated/faults.ts'

/** `faults`: the ones that show the bug; without them the search would take hours. */
export type ReplicaBug = { readonly edits: readonly Edit[]; readonly faults: readonly FaultName[] }

const bug = (file: string, from: string, to: string, ...faults: readonly FaultName[]): ReplicaBug => ({
  edits: [{ file, from, to }],
  faults,
})

const deaf: FaultName = 'drop what members send to a replica'
const bursts: FaultName = 'delay what members send to a replica'
const lossy: FaultName = 'lose what members send to a replica'
const late: FaultName = 'delay the requests of the leader'

export const replicaBugs: { readonly [name: string]: ReplicaBug } = {
  'a stale replica': bug(
    'registry/resource-version.ts',
    'return isAnyVersion ? undefined : store.confirm()?.catch(asUnavailable)',
    'return undefined',
    'cut off a replica',
    'cut off a replica',
  ),
  'join a read index that was sent': bug(
    'storage/etcd/read-index.ts',
    `next = undefined
          return read()`,
    'return read().finally(() => { next = undefined })',
    bursts,
  ),
  'believe progress too early': bug(
    'storage/etcd/follow.ts',
    `at = end
    }`,
    `at = end
    }
    advance(header?.revision ?? 0)`,
    'kill a replica',
    'compact while a replica is cut off',
  ),
  'skip an event on reconnect': bug(
    'storage/etcd/follow.ts',
    'startRevision: delivered + 1,',
    'startRevision: delivered + 2,',
    'kill a member',
    'kill a member',
    'cut off a replica',
  ),
  'continue after a compaction without the state': bug(
    'storage/etcd/store.ts',
    'if (isStarted) endWith(',
    'if (isStarted) return oldest\n    if (isStarted) endWith(',
    'compact while a replica is cut off',
    'compact while a replica is cut off',
    'compact while a replica is cut off',
  ),
  'a wrong offset after a migration': bug(
    'storage/etcd/store.ts',
    'entryOf(keys.objectOf(key)!, changedAt + offset, value)',
    'entryOf(keys.objectOf(key)!, changedAt, value)',
    'compact and kill a replica',
    'compact and kill a replica',
    'compact and kill a replica',
  ),
  'repeat a create blindly': bug(
    'storage/etcd/unknown-outcome.ts',
    'const isRepeatable = ops.some(({ expect = 0 }) => expect > 0)',
    'const isRepeatable = true',
    deaf,
    deaf,
    deaf,
  ),
  'a false conflict of a write that was stored': bug(
    'storage/etcd/commits.ts',
    'seen: () => awaited.get(id) || undefined',
    'seen: () => undefined',
    deaf,
    'kill a member',
    deaf,
    'kill a member',
    deaf,
  ),
  'a false absence of an object that was deleted': bug(
    'storage/etcd/unknown-outcome.ts',
    'if (mayHaveDeleted(rest))',
    'if (false)',
    lossy,
  ),
  'two leaders': bug('storage/etcd/txn.ts', '...(fence ? [{', '...(fence && !fence ? [{', late, late),
  'a controller on every replica': bug(
    'storage/etcd/leadership.ts',
    'if (kv?.value.equals(value)) gain(',
    'if (kv) gain(',
  ),
  'authorize before the data is current': {
    faults: ['pause a member', 'pause a member', deaf],
    edits: [
      {
        file: 'http/server.ts',
        from: `const confirming = confirmFor(options.confirm, exchange)
  if (confirming) await confirming`,
        to: '',
      },
      {
        file: 'http/server.ts',
        from: 'const view = negotiate(',
        to: `const confirming = confirmFor(options.confirm, exchange)
  if (confirming) await confirming
  const view = negotiate(`,
      },
    ],
  },
  'serve without a quorum': bug(
    'registry/resource-version.ts',
    'if (outdated !== undefined)',
    'if (false)',
    'turn back the clock of a replica that is cut off',
  ),
  'believe a clock that was turned back': {
    faults: ['turn back the clock of a replica that is cut off'],
    edits: [
      {
        file: 'storage/etcd/health.ts',
        from: 'const age = performance.now() - confirmedAt()',
        to: 'const age = Date.now() - confirmedAt()',
      },
      {
        file: 'storage/etcd/read-index.ts',
        from: '[performance.now(), following.revision]',
        to: '[Date.now(), following.revision]',
      },
    ],
  },
  'tell watches of a revocation after the data': bug(
    'http/auth-filter.ts',
    'if (version !== since && (!caller || versions.isAffected(caller, since))) recheck()',
    '',
    bursts,
    bursts,
    bursts,
    bursts,
    bursts,
    bursts,
  ),
}
