// The six guarantees of etcd's watches: ordered, unique, atomic, reliable, resumable, bookmarkable. A selector delivers nothing else.

import { mayBeGone } from './check-reads.ts'
import { type Fact, isSame, show, type Truth } from './merged-history.ts'
import type { Recording, Session, Sight, Told, Violation } from './recording.ts'

type Report = (found: Violation) => void
type Expected = { readonly type: string; readonly sight: Sight }

export function checkWatches({ sessions, last, compactions }: Recording, { facts }: Truth, report: Report): void {
  const ends = new Map(sessions.map(session => [session.watcher, session]))
  const begun = new Set<number>()
  for (const session of sessions) {
    const isResumed = begun.has(session.watcher)
    begun.add(session.watcher)
    const isEnd = !session.loose && ends.get(session.watcher) === session
    const { from, told, gone, end = 0 } = session
    const problem =
      gone && !mayBeGone(told.at(-1)?.version ?? from, end, compactions)
        ? { rule: 'resumable', text: `watch ${session.watcher} from ${from}: the history it needs is gone` }
        : checkSession(session, facts, isResumed, isEnd ? last : 0)
    if (problem) report(problem)
  }
}

/** `last`: the revision that it must have reached. */
function checkSession(session: Session, facts: readonly Fact[], isResumed: boolean, last: number) {
  const { watcher, from, color, told } = session
  const problem = (rule: string, text: string): Violation => ({ rule, text: `watch ${watcher} from ${from}: ${text}` })
  const expected = eventsAfter(facts, from, color)
  let next = expected.next().value
  let reached = from
  const disorder = disorderIn(told, from)
  if (disorder) return problem(disorder.rule, disorder.text)
  for (const [index, event] of told.entries()) {
    const { type, version } = event
    if (type === 'BOOKMARK') {
      if (version < reached) return problem('bookmarkable', `a bookmark of ${version} after ${reached}`)
      if (next && next.sight.version <= version)
        return problem('bookmarkable', `a bookmark of ${version} before ${show(next.sight)} was delivered`)
      reached = version
      continue
    }
    if (version <= reached) return problem('bookmarkable', `${show(event)} after a bookmark of ${reached}`)
    reached = version
    if (next && next.sight.version < version)
      return problem(isResumed && index === 0 ? 'resumable' : 'reliable', `${show(next.sight)} was left out`)
    if (!next || next.sight.version > version) return problem('selected', `${show(event)} is not for this watch`)
    if (!isTold(event, next))
      return problem('atomic', `${type} of ${show(event)} for ${next.type} of ${show(next.sight)}`)
    next = expected.next().value
  }
  if (next && next.sight.version <= last) return problem('reliable', `${show(next.sight)} was never delivered`)
  return undefined
}

function disorderIn(told: readonly Told[], from: number): Violation | undefined {
  const seen = new Set<number>()
  let last = from
  for (const event of told) {
    if (event.type === 'BOOKMARK') continue
    if (seen.has(event.version)) return { rule: 'unique', text: `${show(event)} was delivered twice` }
    if (event.version <= last) return { rule: 'ordered', text: `${show(event)} came after ${last}` }
    seen.add(event.version)
    last = event.version
  }
  return undefined
}

const isTold = (event: Told, { type, sight }: Expected) => event.type === type && isSame(event, sight)

/** The events that a watch of everything, or of one color, must deliver after a revision. */
function* eventsAfter(facts: readonly Fact[], from: number, color: string | undefined): Generator<Expected, undefined> {
  for (let index = firstAfter(facts, from); index < facts.length; index++) {
    const { isDelete, sight, before } = facts[index] as Fact
    const isIn = !isDelete && (color === undefined || sight.color === color)
    const wasIn = before !== undefined && (color === undefined || before.sight.color === color)
    if (isIn) yield { type: wasIn ? 'MODIFIED' : 'ADDED', sight }
    // An object that leaves a selection is delivered with its last visible state.
    else if (wasIn) yield { type: 'DELETED', sight: { ...before.sight, version: sight.version } }
  }
  return undefined
}

function firstAfter(facts: readonly Fact[], revision: number): number {
  let low = 0
  let high = facts.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((facts[middle] as Fact).revision <= revision) low = middle + 1
    else high = middle
  }
  return low
}
