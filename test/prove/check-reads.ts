// Checks every get, list and rejection: it must show the state at one revision that the request may have observed.

import { type Fact, isDone, isSame, show, type Truth } from './merged-history.ts'
import type { RealTime } from './real-time.ts'
import type { Get, List, Recording, Sight, Violation, Write } from './recording.ts'

type Report = (found: Violation) => void

export function checkReads(recording: Recording, truth: Truth, time: RealTime, report: Report): void {
  for (const write of recording.writes) checkWrite(write, truth, time, report)
  for (const get of recording.gets) {
    checkGet(get, truth, time, report)
    checkGone(get, recording.compactions, report)
  }
  checkLists(recording.lists, truth, time, report)
}

/** The state of a name over an interval of revisions; undefined: missing. */
function statesIn(course: readonly Fact[], from: number, to: number): (Sight | undefined)[] {
  let low = 0
  let high = course.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((course[middle] as Fact).revision <= from) low = middle + 1
    else high = middle
  }
  const states = [stateOf(course[low - 1])]
  for (let fact = course[low]; fact && fact.revision <= to; fact = course[++low]) states.push(stateOf(fact))
  return states
}

const stateOf = (fact: Fact | undefined) => (fact && !fact.isDelete ? fact.sight : undefined)

function checkGet(get: Get, truth: Truth, time: RealTime, report: Report): void {
  const [from, to] = [time.floor(get.since ?? get.start), time.ceiling(get.end)]
  if (get.code !== 200 && get.code !== 404) return
  const states = statesIn(truth.courses.get(get.name) ?? [], from, to)
  const { seen } = get
  const isSo = states.some(one => (seen ? one !== undefined && isSame(one, seen) : one === undefined))
  if (isSo) return
  const what = seen ? show(seen) : `${get.name}, which was not there`
  report({ rule: 'get', text: `a get saw ${what}; between ${from} and ${to} it was ${states.map(text).join(', ')}` })
}

/** A list at a version is rejected with 410 only after that history was compacted. */
function checkGone({ code, asked, end }: Get, compactions: Recording['compactions'], report: Report): void {
  if (code === 410 && !mayBeGone(asked ?? Number.POSITIVE_INFINITY, end, compactions))
    report({ rule: 'history', text: `a list at ${asked} was answered with 410` })
}

export const mayBeGone = (revision: number, tick: number, compactions: Recording['compactions'] = []) =>
  compactions.some(one => one.tick < tick && one.revision > revision)

const text = (one: Sight | undefined) => (one ? show(one) : 'nothing')

function checkWrite(write: Write, truth: Truth, time: RealTime, report: Report): void {
  const { op, name, code, expect, seen, start, end } = write
  const states = () => statesIn(truth.courses.get(name) ?? [], time.floor(start), time.ceiling(end))
  if (op === 'same' && isDone(write) && seen?.version !== expect)
    report({ rule: 'no-op', text: `${name}@${expect} was sent as it was and answered as ${seen?.version}` })
  const wrong = (why: string) =>
    report({ rule: 'compare-and-swap', text: `${op} of ${name} for ${expect}: ${code}, but ${why}` })
  if (code === 404 && states().every(one => one !== undefined)) wrong('it was there')
  if (code !== 409) return
  if (op === 'create' && states().every(one => one === undefined)) wrong('it was not there')
  if (op !== 'create' && states().every(one => one === undefined || (expect !== undefined && one.version === expect)))
    wrong('it was at that version')
}

/** Sorted by their revision, so that the state can advance from fact to fact. */
function checkLists(lists: readonly List[], truth: Truth, time: RealTime, report: Report): void {
  const state = new Map<string, Sight>()
  const names = [...truth.courses.keys()].sort()
  let next = 0
  for (const list of [...lists].sort((one, other) => one.at - other.at)) {
    for (let fact = truth.facts[next]; fact && fact.revision <= list.at; fact = truth.facts[++next]) {
      if (fact.isDelete) state.delete(fact.sight.name)
      else state.set(fact.sight.name, fact.sight)
    }
    const problem = momentOf(list, time) ?? itemsOf(list, names, state)
    if (problem) report({ rule: 'list', text: `a list at ${list.at} ${problem}` })
  }
}

function momentOf({ at, exact, began, since, start, end }: List, time: RealTime): string | undefined {
  if (exact !== undefined && at !== exact) return `should have shown ${exact}`
  if (began !== undefined && at !== began) return `continues where one at ${began} had stopped`
  const oldest = time.floor(since ?? start)
  if (exact === undefined && began === undefined && at < oldest) return `began when ${oldest} was known`
  return at > time.ceiling(end) ? `was over before ${time.ceiling(end) + 1} was requested` : undefined
}

function itemsOf(list: List, names: readonly string[], state: ReadonlyMap<string, Sight>): string | undefined {
  const { items, color, limit = Number.POSITIVE_INFINITY, after = '', more, remaining } = list
  const there = names.flatMap(name => {
    const sight = name > after ? state.get(name) : undefined
    return sight && (color === undefined || sight.color === color) ? [sight] : []
  })
  const wanted = there.slice(0, limit)
  if (wanted.length !== items.length) return `has ${items.length} items, not ${wanted.length}`
  const wrong = wanted.findIndex((one, index) => !isSame(one, items[index] as Sight))
  if (wrong >= 0) return `has ${show(items[wrong] as Sight)} for ${show(wanted[wrong] as Sight)}`
  if (more !== there.length > wanted.length) return `says ${more ? 'more' : 'no more'} is to come`
  if (remaining !== undefined && remaining !== there.length - wanted.length) return `says ${remaining} remain`
  return undefined
}
