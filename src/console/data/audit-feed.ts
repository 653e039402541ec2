// New audit events of a search, from the shared watches.

import { useEffect, useRef, useState } from 'react'
import { AuditEvent as kind } from '../../kinds/audit-event.ts'
import type { AuditEvent, AuditPage } from './audit.ts'
import { type FeedEvent, keyOf, subscribe } from './hub.ts'
import { setStale } from './stale.ts'

const pollEvery = 5000
/** Milliseconds to wait for the watch before the log is searched from time to time. */
const patience = 1500
/** With more new events, the first page is read again instead of keeping them. */
const maxNew = 1000

type Search = {
  readonly selector: string
  /** The newest page; undefined: it is not read yet. */
  readonly first: AuditPage | undefined
  readonly isLive: boolean
  /** Reads the pages again. */
  readonly reload: () => Promise<unknown>
}

/** Events that are newer than the first page, newest first. */
export function useNewEvents({ selector, first, isLive, reload }: Search): readonly AuditEvent[] {
  const [found, setFound] = useState<{ readonly selector: string; readonly events: readonly AuditEvent[] }>()
  const [watched, setWatched] = useState<string>()
  const version = first?.version ?? '0'
  const known = new Set(first?.events.map(({ metadata }) => metadata.uid))
  const isNew = ({ metadata }: AuditEvent) => isAfter(metadata.resourceVersion, version) && !known.has(metadata.uid)
  const events = found?.selector === selector ? found.events.filter(isNew) : []
  const newest = useRef(version)
  newest.current = version

  useEffect(() => {
    if (!isLive) return
    const feed = { kind: kind.id, ...(selector ? { fieldSelector: selector } : {}) }
    let polling: ReturnType<typeof setInterval> | undefined
    const poll = () => {
      polling ??= setInterval(() => void reload(), pollEvery)
    }
    const impatience = setTimeout(poll, patience)
    const settle = () => {
      clearTimeout(impatience)
      clearInterval(polling)
      polling = undefined
    }
    const add = (batch: readonly FeedEvent[]) =>
      setFound(before => {
        const earlier = before?.selector === selector ? before.events : []
        const kept = earlier.filter(({ metadata }) => isAfter(metadata.resourceVersion, newest.current))
        return { selector, events: [...newestFirst(batch), ...kept] }
      })
    const unsubscribe = subscribe(feed, {
      opened: opened => {
        settle()
        setWatched(opened)
      },
      events: add,
      lost: isLost => setStale(keyOf(feed), isLost),
      polled: () => {
        settle()
        poll()
      },
    })
    return () => {
      settle()
      setStale(keyOf(feed), false)
      setWatched(undefined)
      unsubscribe()
    }
  }, [selector, isLive, reload])

  // Events between the page and the start of the watch are in neither.
  const gap = first && isAfter(watched, version) ? `${version} ${watched}` : ''
  const isFull = events.length > maxNew
  useEffect(() => {
    if (gap || isFull) void reload()
  }, [gap, isFull, reload])
  return events
}

const isAfter = (version: string | undefined, other: string) => BigInt(version ?? 0) > BigInt(other)

const newestFirst = (batch: readonly FeedEvent[]): readonly AuditEvent[] =>
  batch.map(({ object }) => object as unknown as AuditEvent).toReversed()
