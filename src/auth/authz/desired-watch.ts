// The watch of clusters/<name>/desired: the whole state, a bookmark, then changes (D68). Data of secrets is opened when it is sent.

import { ApiError, isUndecryptable } from '../../api/errors.ts'
import type { Ref, Resource } from '../../api/object.ts'
import { documentOf, statusDocument, type Watch, type WatchEvent, watchEvent } from '../../api/resources.ts'
import { type DesiredItem, terminatingAnnotation } from '../../kinds/cluster-desired.ts'
import type { Item } from './desired-items.ts'
import type { DesiredState } from './desired-state.ts'

export type DesiredWatchOptions = {
  readonly state: DesiredState
  /** A ProjectSecret with its data; undefined: it does not exist. */
  readonly open: (ref: Ref) => Resource | undefined
  readonly failed: (what: string, error: unknown) => void
}

/** The maximum of one batch. One event may exceed the bytes. */
const maxEvents = 256
const maxBytes = 512 * 1024

/** Why nothing is sent to a cluster; undefined: it may be. */
export function closedReason({ clusters }: DesiredState, name: string, uid: string): ApiError | undefined {
  const cluster = clusters.get(name)
  if (!cluster || cluster.uid !== uid) return new ApiError(404, 'NotFound', `cluster "${name}" was deleted`)
  // The agent of a cluster that is being deleted sees an empty state, and removes what it created.
  return cluster.isDisabled && !cluster.isTerminating
    ? new ApiError(
        403,
        'Forbidden',
        `cluster "${name}" is disabled: nothing is sent to it, and its agent removes nothing`,
      )
    : undefined
}

export function watchDesired(
  { state, open, failed }: DesiredWatchOptions,
  { name, uid }: { readonly name: string; readonly uid: string },
): Watch {
  const isTerminating = () => state.clusters.get(name)?.isTerminating === true
  /** A cluster that is being deleted gets a new stream, with an empty state. */
  const isLast = isTerminating()
  const pending = new Set<string>(isLast ? [] : state.itemsOf(uid).keys())
  /** Items that the agent has. */
  const sent = new Set<string>()
  let isInitial = true
  /** The version of the last bookmark. */
  let marked = ''
  let isStopped = false
  let wake: () => void = () => {}
  const unfollow = state.follow(uid, id => {
    if (id !== undefined && !isLast) pending.add(id)
    wake()
  })
  const stop = () => {
    isStopped = true
    unfollow()
    wake()
  }

  const eventOf = (id: string): WatchEvent | undefined => {
    const item = state.itemsOf(uid).get(id)
    const object = item && objectOf(item)
    if (!object) {
      // An item that cannot be opened stays as the agent has it.
      if (item || !sent.delete(id)) return undefined
      return eventWith('DELETED', itemWith(id, state.version, {}))
    }
    const type = sent.has(id) ? 'MODIFIED' : 'ADDED'
    sent.add(id)
    return eventWith(type, object)
  }
  /** undefined: the secret changed meanwhile, and comes again, or its data cannot be decrypted. */
  const objectOf = (item: Item): DesiredItem | undefined => {
    if ('role' in item) return itemWith(item.id, state.version, { role: item.role })
    const { secret, target } = item
    try {
      const object = open(secret.ref)
      if (object?.metadata.uid !== secret.uid || object.metadata.generation !== secret.generation) return undefined
      const all = (object.spec?.['data'] ?? {}) as { readonly [key: string]: string }
      const keys = target.keys?.filter(key => Object.hasOwn(all, key))
      const data = keys ? Object.fromEntries(keys.map(key => [key, all[key] as string])) : all
      const { namespace, name: own, type } = target
      const source = { ...secret.ref, uid: secret.uid }
      return itemWith(item.id, secret.version, { secret: { namespace, name: own, type, data, source } })
    } catch (error) {
      if (!isUndecryptable(error)) throw error
      failed(`delivering ${secret.ref.namespace}/${secret.ref.name}`, error)
      return undefined
    }
  }
  const bookmark = (annotations?: { readonly [key: string]: string }) =>
    eventWith('BOOKMARK', itemWith('', state.version, {}, annotations))

  const batch = (): WatchEvent[] => {
    const events: WatchEvent[] = []
    let bytes = 0
    for (const id of pending) {
      if (events.length >= maxEvents || bytes >= maxBytes) return events
      pending.delete(id)
      const event = eventOf(id)
      if (!event) continue
      events.push(event)
      bytes += event.line.length
    }
    if (isInitial) {
      isInitial = false
      events.push(
        bookmark({ 'k8s.io/initial-events-end': 'true', ...(isLast ? { [terminatingAnnotation]: 'true' } : {}) }),
      )
    } else if (events.length || marked !== state.version) events.push(bookmark())
    marked = state.version
    return events
  }

  return {
    async next() {
      for (;;) {
        if (isStopped) return undefined
        const closed = closedReason(state, name, uid)
        if (closed) {
          stop()
          return [watchEvent('ERROR', statusDocument(closed.status))]
        }
        if (isTerminating() && !isLast) {
          stop()
          return undefined
        }
        const events = batch()
        if (events.length) return events
        await new Promise<void>(resolve => {
          wake = resolve
        })
      }
    },
    bookmark: () => bookmark(),
    stop,
  }
}

const itemWith = (
  id: string,
  resourceVersion: string,
  content: Pick<DesiredItem, 'role' | 'secret'>,
  annotations?: { readonly [key: string]: string },
): DesiredItem => ({
  apiVersion: 'management.platform.sh/v1',
  kind: 'ClusterDesiredItem',
  metadata: { name: id, resourceVersion, ...(annotations ? { annotations } : {}) },
  ...content,
})

const eventWith = (type: WatchEvent['type'], item: DesiredItem) =>
  watchEvent(type, documentOf(item as unknown as Resource, JSON.stringify))
