// Records sync failures as Events on the virtual object, deduplicated and rate limited.

import { ApiError } from '../../api/errors.ts'
import type { Kind } from '../../api/kind.ts'
import { type Json, type Ref, timestamp } from '../../api/object.ts'
import type { Resources } from '../../api/resources.ts'
import { Event } from './kinds.ts'
import { hashOf } from './sync-annotations.ts'

export type EventsOptions = {
  /** The kind of the objects that the Events are about. */
  readonly kind: Kind
  readonly resources: Resources
  readonly instance: string
  readonly now: () => number
  readonly failed: (error: unknown) => void
}

type About = { readonly ref: Ref; readonly uid: string | undefined }
type Recorded = { readonly name: string; readonly first: string; count: number; last: number }

const repeatAfter = 5 * 60_000
const maxRecorded = 10_000

export interface Events {
  /** Never rejects: a failed Event must not stop the sync. */
  record(about: About, reason: string, message: string): Promise<void>
}

export function openEvents({ kind, resources, instance, now, failed }: EventsOptions): Events {
  const recorded = new Map<string, Recorded>()
  return {
    async record({ ref, uid = '' }, reason, message) {
      const key = hashOf(
        `${kind.kind === 'Endpoints' ? '' : `${kind.kind}/`}${ref.namespace}/${ref.name}/${uid}/${reason}/${message}`,
      )
      const before = recorded.get(key)
      if (before) before.count++
      if (before && now() - before.last < repeatAfter) return
      const time = timestamp(now())
      const one = before ?? { name: `${ref.name.slice(0, 230)}.${key}`, first: time, count: 1, last: 0 }
      one.last = now()
      if (recorded.size >= maxRecorded) recorded.delete(recorded.keys().next().value as string)
      recorded.set(key, one)
      const event = {
        apiVersion: 'v1',
        kind: 'Event',
        metadata: { name: one.name, namespace: ref.namespace },
        involvedObject: { apiVersion: kind.apiVersion, kind: kind.kind, ...ref, ...(uid ? { uid } : {}) },
        reason,
        message: message.slice(0, 1024),
        type: 'Warning',
        source: { component: 'platform-vcluster-sync' },
        reportingComponent: 'platform.sh/vcluster-sync',
        reportingInstance: instance.slice(0, 128),
        count: one.count,
        firstTimestamp: one.first,
        lastTimestamp: time,
      }
      await write(ref, event).catch(failed)
    },
  }

  /** The Event may exist from before a restart: then increases its count. */
  async function write(
    ref: Ref,
    event: { readonly metadata: { readonly name: string }; readonly count: number } & { readonly [key: string]: Json },
  ): Promise<void> {
    const at = { namespace: ref.namespace, name: event.metadata.name }
    try {
      await resources.create(Event, ref.namespace, event)
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 409) throw error
      const { object } = await resources.get(Event, at)
      const { count = 0 } = object as unknown as { readonly count?: number }
      const body = { count: count + 1, lastTimestamp: event['lastTimestamp'] as string }
      await resources.patch(Event, at, { type: 'merge', body })
    }
  }
}
