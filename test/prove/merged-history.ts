// Merges all recorded responses into one history: one fact per revision, with the previous state. check-consistency.ts compares every read with it.

import { type Floor, floorOf } from './real-time.ts'
import type { Recording, Sight, Violation, Write } from './recording.ts'

export type Fact = {
  readonly revision: number
  readonly isDelete: boolean
  readonly sight: Sight
  /** The write that this is. An open one was not acknowledged, and explains at most one fact. */
  writer: Write | undefined
  /** The earliest tick at which its write may have begun. */
  begun: number | undefined
  /** The previous state of the name. */
  before: Fact | undefined
}

export type Truth = {
  /** In the order of revisions. */
  readonly facts: readonly Fact[]
  readonly courses: ReadonlyMap<string, readonly Fact[]>
  readonly floor: Floor
}

export const isDone = ({ code }: Write) => code >= 200 && code < 300
/** Whether the outcome is unknown. A 503 means that nothing happened. */
const isOpen = ({ code }: Write) => code === 0 || (code >= 500 && code !== 503)

export function truthOf(recording: Recording, report: (found: Violation) => void): Truth {
  const { writes, sessions } = recording
  const known = new Map<number, Fact>()

  function note(sight: Sight, isDelete: boolean, writer?: Write): void {
    const there = known.get(sight.version)
    if (!there) {
      const { version: revision } = sight
      known.set(revision, { revision, isDelete, sight, writer, begun: undefined, before: undefined })
      return
    }
    if (writer && there.writer)
      report({ rule: 'one write a revision', text: `${sight.version} is ${show(there.sight)} and ${show(sight)}` })
    else if (!isSame(there.sight, sight) || there.isDelete !== isDelete)
      report({ rule: 'atomic', text: `${sight.version} was observed as ${show(there.sight)} and as ${show(sight)}` })
    there.writer ??= writer
  }

  for (const write of writes)
    if (write.seen && isDone(write) && !write.dryRun && write.op !== 'same') note(write.seen, false, write)
  for (const { told, color } of sessions)
    for (const event of told) {
      if (event.type === 'BOOKMARK') continue
      // A selector reports an object that only changed its color as deleted.
      if (event.type !== 'DELETED' || color === undefined) note(event, event.type === 'DELETED')
    }
  const facts = [...known.values()].sort((one, other) => one.revision - other.revision)
  claimDeletions(facts, writes, report)
  const floor = floorOf(recording, facts)
  return { facts, floor, courses: coursesOf(facts, { writes, floor, report }) }
}

/** A deletion is acknowledged without its revision, but with the uid of the deleted object. */
function claimDeletions(facts: readonly Fact[], writes: readonly Write[], report: (found: Violation) => void): void {
  const deletions = new Map(facts.filter(one => one.isDelete).map(one => [one.sight.uid, one]))
  for (const write of writes) {
    if (write.op !== 'delete' || !isDone(write) || write.dryRun) continue
    const fact = deletions.get(write.uid ?? '')
    if (!fact) report({ rule: 'reliable', text: `no watch delivered the deletion of ${write.name}` })
    else if (fact.writer) report({ rule: 'one write a revision', text: `${write.name} was deleted twice` })
    else fact.writer = write
  }
}

function coursesOf(
  facts: readonly Fact[],
  {
    writes,
    floor,
    report,
  }: { readonly writes: readonly Write[]; readonly floor: Floor; readonly report: (found: Violation) => void },
) {
  const courses = new Map<string, Fact[]>()
  const open = Map.groupBy(
    writes.filter(write => isOpen(write) && !write.dryRun && write.op !== 'same'),
    ({ name }) => name,
  )
  const used = new Set<Write>()
  const sent = new Map(writes.flatMap(write => (write.value === undefined ? [] : [[write.value, write] as const])))
  for (const fact of facts) {
    const course = courses.get(fact.sight.name) ?? []
    courses.set(fact.sight.name, course)
    const last = course.at(-1)
    fact.before = last?.isDelete ? undefined : last
    course.push(fact)
    fact.begun = fact.writer?.start
    if (!fact.writer) claimOpen(fact, open.get(fact.sight.name) ?? [], used, floor)
    if (!fact.writer) {
      const dry = sent.get(fact.sight.value)?.dryRun
      const text = `nobody got an acknowledgement for ${show(fact.sight)}`
      report({ rule: dry ? 'dry run' : 'every write has a writer', text })
    }
    const problem = problemOf(fact)
    if (problem) report({ rule: 'compare-and-swap', text: `${show(fact.sight)} ${problem}` })
  }
  return courses
}

/**
 * Takes an open write that explains a fact. One that names the previous version explains no other fact, so it is taken first.
 * Which of them it really was, nobody knows: the first may have begun it.
 */
function claimOpen(fact: Fact, open: readonly Write[], used: Set<Write>, floor: Floor): void {
  const fits = open.filter(write => explains(write, fact) && floor(write.start) < fact.revision)
  const free = fits.filter(write => !used.has(write))
  const writer = free.find(({ expect }) => expect !== undefined) ?? free[0]
  if (!writer) return
  used.add(writer)
  fact.writer = writer
  fact.begun = Math.min(...fits.map(({ start }) => start))
}

function explains(write: Write, fact: Fact): boolean {
  const { op, value, color } = write
  if ((op === 'delete') !== fact.isDelete || problemOf({ ...fact, writer: write })) return false
  return op !== 'create' || (value === fact.sight.value && color === fact.sight.color)
}

/** Why a write does not follow from the previous state. */
function problemOf({ isDelete, sight, writer, before }: Fact): string | undefined {
  if (isDelete && !before) return 'was deleted without having been there'
  if (before && before.sight.uid !== sight.uid) return `took the place of ${show(before.sight)}, which was still there`
  if (isDelete && before && !hasSameContent(sight, before.sight)) return `was ${show(before.sight)} when it was deleted`
  if (!writer) return undefined
  const { op, expect, value, color } = writer
  if (op === 'create') return before ? `was created over ${show(before.sight)}` : undefined
  if (!before) return `was changed by ${op} without having been there`
  if (expect !== undefined && expect !== before.revision) return `was written for ${expect} over ${before.revision}`
  if (op === 'update' && (sight.value !== value || sight.color !== color)) return `is not what was sent`
  if (op === 'patch' && (sight.value !== value || sight.color !== before.sight.color))
    return `does not follow ${show(before.sight)}`
  if (op === 'relabel' && (sight.value !== before.sight.value || sight.color !== color))
    return `does not follow ${show(before.sight)}`
  return undefined
}

const hasSameContent = (one: Sight, other: Sight) =>
  one.name === other.name && one.uid === other.uid && one.value === other.value && one.color === other.color

export const isSame = (one: Sight, other: Sight) => one.version === other.version && hasSameContent(one, other)

export const show = ({ name, version, value, color }: Sight) => `${name}@${version} (${color} ${value})`
