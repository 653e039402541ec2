// The etcd engine: replicas share one etcd cluster. Each serves reads from its own memory, which a watch keeps up to date.

import type { Buffer } from 'node:buffer'
import { type CachedEntry, cachedEntry, withRevision } from '../entry.ts'
import type { HistoryBounds } from '../event-log.ts'
import { labelsOf } from '../labels.ts'
import { type Key, type Store, StoreError } from '../store.ts'
import { type CachedEvent, openWatchCache } from '../watch-cache.ts'
import { type EtcdClient, openEtcdClient } from './client.ts'
import { openCommits } from './commits.ts'
import type { EtcdConnection } from './connection.ts'
import { follow } from './follow.ts'
import { openStorageHealth } from './health.ts'
import { openInstallation } from './installation.ts'
import { type Keys, keysBelow } from './keys.ts'
import { firstConfirmation, openReadIndex } from './read-index.ts'
import type { Event } from './rpc.generated.ts'
import { readSnapshot } from './snapshot.ts'
import type { Fence } from './txn.ts'
import { decodeValue } from './value.ts'

export type EtcdOptions = EtcdConnection & {
  /** All keys of the installation start with it, such as `/platform`. */
  readonly prefix: string
  readonly now?: () => number
  readonly history?: HistoryBounds | undefined
  readonly reportFailure?: ((failure: string | undefined) => void) | undefined
  readonly lost?: ((reason: string) => void) | undefined
  readonly allowUnsafeVersion?: boolean | undefined
  /** Whether to create the installation if there is none. Default: true. */
  readonly mayCreate?: boolean | undefined
  /** The difference between resourceVersions and etcd's revisions, for a new installation. */
  readonly offset?: ((revision: number) => number) | undefined
}

/** For other parts of the engine: leader election, times, compaction. */
export type EtcdInternals = {
  readonly client: EtcdClient
  readonly keys: Keys
  readonly offset: number
  /** Called with every event outside the objects. */
  onRecord(listener: (event: Event) => void): void
}

export type EtcdStore = Store & {
  readonly internals: EtcdInternals
  /** The same store, whose commits fail with 'notLeader' unless the fence holds. */
  fenced(fence: () => Fence | undefined): Store
}

export async function openEtcdStore(options: EtcdOptions): Promise<EtcdStore> {
  const { prefix, now = Date.now, history, reportFailure, lost } = options
  const client = openEtcdClient(options)
  const keys = keysBelow(prefix)
  try {
    const installation = await openInstallation({ ...options, client, keys })
    return await startStore({ client, keys, ...installation, now, history, reportFailure, lost })
  } catch (error) {
    client.close()
    throw error
  }
}

type StartOptions = {
  readonly client: EtcdClient
  readonly keys: Keys
  readonly offset: number
  readonly clusterId: string
  readonly createRevision: number
  readonly modRevision: number
  readonly newest: number
  readonly now: () => number
  readonly history: HistoryBounds | undefined
  readonly reportFailure: EtcdOptions['reportFailure']
  readonly lost: EtcdOptions['lost']
}

async function startStore({
  client,
  keys,
  offset,
  clusterId,
  createRevision,
  modRevision,
  newest,
  now,
  history,
  reportFailure,
  lost,
}: StartOptions): Promise<EtcdStore> {
  const watchCache = openWatchCache(history)
  const listeners: ((event: Event) => void)[] = []
  let isStarted = false
  /** Responses of the watch and of snapshots. */
  let received = 0
  const installation = { key: keys.ofRecord('installation'), modRevision }
  const health = openStorageHealth({ client, clusterId, reportFailure, confirmedAt: () => readIndex.confirmedAt })

  const commits = openCommits({
    client,
    keys,
    offset,
    installation,
    health,
    following: () => following,
    watchCache,
  })

  function apply(revision: number, events: readonly Event[]): void {
    const changes: CachedEvent[] = []
    for (const event of events) {
      const key = event.kv && keys.objectOf(event.kv.key)
      if (!key) {
        if (isStarted) checkInstallation(event)
        for (const listener of listeners) listener(event)
      } else changes.push(...changeOf(key, event, revision + offset))
    }
    watchCache.apply(changes, revision + offset, now())
  }

  function changeOf(wanted: Key, { type, kv }: Event, revision: number): CachedEvent[] {
    const previous = watchCache.get(wanted)
    const key = previous?.key ?? wanted
    if (type === 0) {
      const entry = entryOf(key, revision, kv!.value)
      return [{ type: previous ? 'updated' : 'created', revision, key, entry, previous }]
    }
    return previous ? [{ type: 'deleted', revision, key, entry: withRevision(previous, revision), previous }] : []
  }

  function entryOf(key: Key, revision: number, stored: Buffer): CachedEntry {
    const { text, gap, nonce } = decodeValue(stored)
    commits.saw(nonce, revision)
    return cachedEntry(key, revision, { text, gap }, labelsOf(text))
  }

  /** Reads everything, only at the start. Later the indexes of permissions would be older than the data, so the replica ends (D71). */
  async function reload(oldest: number): Promise<number> {
    if (isStarted) endWith('this replica was cut off from etcd for longer than its history, so it ends. Start it again')
    const entries: CachedEntry[] = []
    for await (const page of readSnapshot(client, keys.objects, oldest)) {
      received++
      for (const { key, modRevision: changedAt, value } of page)
        entries.push(entryOf(keys.objectOf(key)!, changedAt + offset, value))
    }
    watchCache.reload(entries, oldest + offset)
    return oldest
  }

  function checkInstallation({ kv }: Event): void {
    if (kv && kv.modRevision > modRevision && kv.key.equals(installation.key))
      endWith('the installation in etcd was deleted or replaced, so this replica ends')
  }

  function endWith(reason: string): never {
    following.stop()
    lost?.(health.end(reason))
    throw new StoreError('unavailable', reason)
  }

  watchCache.begin(createRevision + offset, createRevision + offset)
  const following = follow({
    client,
    range: keys.all,
    // Older history is of an installation that was deleted.
    start: createRevision + 1,
    recent: newest - 5 * (history?.minEvents ?? 10_000),
    newest,
    apply,
    progress: revision => {
      if (revision + offset > watchCache.revision) watchCache.apply([], revision + offset, now())
    },
    reload,
    heard(header) {
      received++
      health.checkCluster(header.clusterId)
    },
    failed: error => health.noteWatchError(error),
  })
  const readIndex = openReadIndex({
    client,
    range: keys.all,
    following,
    heard: (header, delivered) => {
      health.checkCluster(header.clusterId)
      health.checkRevision(header.revision, delivered)
    },
  })

  async function end(): Promise<void> {
    await commits.close()
    health.stop()
    following.stop()
    client.close()
  }

  const storeWith = (write: Store['commit']): Store => ({
    get revision() {
      return watchCache.revision
    },
    get failure() {
      return health.failure
    },
    get outdated() {
      return health.outdated
    },
    get: watchCache.get,
    last: watchCache.last,
    list: watchCache.list,
    count: watchCache.count,
    index: watchCache.index,
    watch: watchCache.watch,
    commit: write,
    confirm: () =>
      readIndex.confirm().catch((error: Error) => {
        // The message of the error has addresses, and the client is not authenticated yet.
        health.noteWatchError(error)
        throw new StoreError('unavailable', health.broken ?? 'etcd does not confirm the data')
      }),
    async replace(items) {
      const results = await Promise.allSettled(
        items.map(({ key, revision, value }) => write([{ type: 'put', key, value, expect: revision }])),
      )
      for (const result of results) if (result.status === 'rejected' && !isOvertaken(result.reason)) throw result.reason
      return results.filter(({ status }) => status === 'fulfilled').length
    },
    async compact(revision) {
      watchCache.trim(now(), revision)
    },
    close: () => (closing ??= end()),
  })
  let closing: Promise<void> | undefined
  try {
    await firstConfirmation(
      () => readIndex.confirm(),
      () => received,
    )
  } catch (error) {
    health.stop()
    following.stop()
    throw error
  }
  isStarted = true
  health.start(() => readIndex.confirm())
  return Object.assign(
    storeWith(ops => commits.commit(ops)),
    {
      internals: {
        client,
        keys,
        offset,
        onRecord: (listener: (event: Event) => void) => void listeners.push(listener),
      },
      fenced: (held: () => Fence | undefined) =>
        storeWith(async ops => {
          const fence = held()
          if (!fence) throw new StoreError('notLeader', 'this replica does not run the controllers')
          return commits.commit(ops, fence)
        }),
    },
  )
}

const isOvertaken = (error: unknown) =>
  error instanceof StoreError && (error.reason === 'conflict' || error.reason === 'missing')
