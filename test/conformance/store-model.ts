// A store so simple that it is obviously correct, and random scripts to compare the engines with it. The store suite uses it.

import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { Candidates } from '../../src/api/candidates.ts'
import type { Entry, ListQuery, Op, Store } from '../../src/storage/store.ts'

type Labels = { readonly [key: string]: string }
type Write = {
  readonly bucket: string
  readonly namespace: string
  readonly name: string
  readonly labels: Labels | null
}
type Question = {
  readonly bucket: string
  readonly back: number
  readonly namespace: string
  readonly after: { readonly namespace: string; readonly name: string } | undefined
  readonly limit: number | undefined
  readonly terms: readonly { readonly key: string; readonly values: readonly string[] }[] | undefined
  readonly odd: boolean
  readonly among: Candidates
}
export type Script = { readonly commits: readonly (readonly Write[])[]; readonly questions: readonly Question[] }

type Row = { readonly revision: number; readonly labels: Labels }
type State = ReadonlyMap<string, Row>

/** The indexed terms of a bucket, besides labels. */
const termOf = ([key, value]: readonly [string, string]) => `${key}/${value}`
const termsOf = (labels: Labels | undefined) => Object.entries(labels ?? {}).map(termOf)

const bucket = fc.constantFrom('teams', 'secrets')
const namespace = fc.constantFrom('', 'a', 'a-b', 'b')
const name = fc.constantFrom('k', 'l', 'm', 'n-1', 'n.2')
const labelKey = fc.constantFrom('app', 'tier')
const labelValue = fc.constantFrom('x', 'y', '')
const labels = fc.dictionary(labelKey, labelValue, { maxKeys: 2 })
const write = fc.record({ bucket, namespace, name, labels: fc.option(labels, { freq: 4 }) })
const question = fc.record({
  bucket,
  back: fc.nat(12),
  namespace,
  after: fc.option(fc.record({ namespace, name }), { nil: undefined }),
  limit: fc.option(fc.integer({ min: 1, max: 6 }), { nil: undefined }),
  terms: fc.option(
    fc.array(fc.record({ key: labelKey, values: fc.array(labelValue, { maxLength: 2 }) }), { maxLength: 2 }),
    { nil: undefined },
  ),
  odd: fc.boolean(),
  among: fc.record({
    terms: fc.array(fc.tuple(labelKey, labelValue).map(termOf), { maxLength: 3 }),
    namespaces: fc.array(fc.constantFrom('a', 'a-b', 'none'), { maxLength: 2 }),
    refs: fc.array(fc.record({ namespace, name }), { maxLength: 3 }),
  }),
})

/** `labels: null` is a deletion. A commit names each bucket once. */
export const commands: fc.Arbitrary<Script> = fc.record({
  commits: fc.array(fc.uniqueArray(write, { minLength: 1, maxLength: 2, selector: op => op.bucket }), {
    minLength: 1,
    maxLength: 30,
  }),
  questions: fc.array(question, { minLength: 1, maxLength: 12 }),
})

/** Runs the script on the store and on the model, and compares them in the middle and at the end. */
export async function checkAgainstModel(store: Store, script: Script): Promise<void> {
  const states: State[] = [new Map(), new Map()]
  const half = script.commits.length >> 1
  const ask = () => {
    for (const asked of script.questions) {
      compare(store, asked, states)
      compareAmong(store, asked)
    }
  }
  const pause = () => new Promise<void>(setImmediate)
  let indexed: Promise<unknown> | undefined
  for (const [i, writes] of script.commits.entries()) {
    // Of what is there already, and of what is written while the index is built.
    if (i === half >> 1)
      indexed = Promise.all(['teams', 'secrets'].map(one => store.index(one, ({ labels }) => termsOf(labels), pause)))
    await play(store, writes, states)
    if (i === half) ask()
  }
  await indexed
  ask()
}

async function play(store: Store, writes: readonly Write[], states: State[]): Promise<void> {
  const state = new Map(states.at(-1))
  const revision = states.length
  let possible = true
  for (const write of writes) {
    const place = `${write.bucket} ${write.namespace}/${write.name}`
    if (write.labels !== null) state.set(place, { revision, labels: write.labels })
    else if (!state.delete(place)) possible = false
  }
  const answer = store.commit(writes.map(opOf))
  if (!possible) return assert.rejects(answer)
  assert.equal(await answer, revision)
  states.push(state)
}

function opOf({ bucket, namespace, name, labels }: Write): Op {
  const key = { bucket, namespace, name }
  if (labels === null) return { type: 'delete', key }
  const text = JSON.stringify({ metadata: { labels, resourceVersion: '' } })
  return { type: 'put', key, value: { text: Buffer.from(text), gap: text.indexOf('""}', text.indexOf('}')) + 1 } }
}

function compare(store: Store, asked: Question, states: readonly State[]): void {
  const revision = Math.max(states.length - 1 - asked.back, 1)
  const { bucket, namespace, after, limit, terms } = asked
  const filter = asked.odd ? (entry: { revision: number }) => entry.revision % 2 === 1 : undefined
  const query: ListQuery = {
    bucket,
    namespace,
    revision,
    ...(after && { after }),
    ...(limit && { limit }),
    ...(terms && { labels: terms }),
    ...(filter && { filter }),
  }
  const result = store.list(query)
  const shown = result.entries.map(entry => `${entry.key.namespace}/${entry.key.name} ${entry.revision}`)
  const { expected, more, remaining } = naive(states[revision] ?? new Map(), asked)
  assert.deepEqual(shown, expected, JSON.stringify(query))
  assert.deepEqual([result.revision, result.more, result.remaining], [revision, more, remaining], JSON.stringify(query))
  for (const entry of result.entries)
    assert.match(entry.text.toString(), new RegExp(`"resourceVersion":"${entry.revision}"`))
  for (const entry of result.entries)
    assert.equal(store.last(entry)?.revision, lastOf(states, revision, entry), JSON.stringify(entry.key))
  const seen = store.watch(bucket, revision).take(1000)
  for (const { type, entry, previous } of seen) {
    if (previous) assert.equal(store.last(previous)?.revision, lastOf(states, previous.revision, previous))
    if (type !== 'deleted') assert.equal(store.last(entry)?.revision, lastOf(states, entry.revision, entry))
  }
  assert.deepEqual(
    seen.map(event => `${event.revision} ${event.type} ${event.key.namespace}/${event.key.name}`),
    changes(states, bucket, revision),
  )
}

/** A filter that keeps candidates only: with them, a list shows what it shows without. */
function compareAmong(store: Store, { bucket, namespace, back, after, limit, terms, among }: Question): void {
  const isCandidate = ({ key, labels }: Entry) =>
    termsOf(labels).some(term => among.terms.includes(term)) ||
    among.namespaces.includes(key.namespace) ||
    among.refs.some(ref => ref.namespace === key.namespace && ref.name === key.name)
  const revision = Math.max(store.revision - back, 1)
  for (const at of [{}, { revision }]) {
    const query = {
      bucket,
      namespace,
      filter: isCandidate,
      ...at,
      ...(after && { after }),
      ...(terms && { labels: terms }),
    }
    const expected = store.list(query).entries
    const found = store.list({ ...query, among })
    assert.deepEqual(found.entries, expected, JSON.stringify({ ...query, among }))
    if (!limit) continue
    const page = store.list({ ...query, among, limit })
    assert.deepEqual(page.entries, expected.slice(0, limit), JSON.stringify({ ...query, among, limit }))
    if (expected.length > limit) assert.equal(page.more, true)
  }
}

function naive(state: State, asked: Question): { expected: string[]; more: boolean; remaining: number } {
  const { bucket, namespace, after, terms, limit = Number.POSITIVE_INFINITY, odd } = asked
  const from = after === undefined ? '' : `${after.namespace}/${after.name}`
  const places = [...state]
    .filter(([place]) => place.startsWith(`${bucket} ${namespace === '' ? '' : `${namespace}/`}`))
    .map(([place, row]) => ({ place: place.slice(bucket.length + 1), row }))
    .filter(({ place }) => after === undefined || place > from)
    .toSorted((a, b) => (a.place < b.place ? -1 : 1))
  const labelled = places.filter(({ row }) =>
    (terms ?? []).every(({ key, values }) => key in row.labels && values.includes(row.labels[key]!)),
  )
  const kept = labelled.filter(({ row }) => !odd || row.revision % 2 === 1).slice(0, limit)
  const last = kept.length < limit ? '\u{ffff}' : kept.at(-1)!.place
  const more = labelled.some(({ place }) => place > last)
  const remaining = more ? places.filter(({ place }) => place > last).length : 0
  return { expected: kept.map(({ place, row }) => `${place} ${row.revision}`), more, remaining }
}

/** The revision of the last state of the object that had a key at a revision. */
function lastOf(states: readonly State[], revision: number, { key }: Pick<Entry, 'key'>): number | undefined {
  const rows = states.slice(revision).map(state => state.get(`${key.bucket} ${key.namespace}/${key.name}`))
  const end = rows.indexOf(undefined)
  return rows.at(end === -1 ? -1 : end - 1)?.revision
}

/** The events of a bucket after a revision, derived from the states. */
function changes(states: readonly State[], bucket: string, after: number): string[] {
  const found: string[] = []
  for (let revision = after + 1; revision < states.length; revision++) {
    const [old, next] = [states[revision - 1]!, states[revision]!]
    for (const place of new Set([...old.keys(), ...next.keys()])) {
      if (!place.startsWith(`${bucket} `)) continue
      const [before, now] = [old.get(place), next.get(place)]
      if (before?.revision === now?.revision) continue
      const type = before === undefined ? 'created' : now === undefined ? 'deleted' : 'updated'
      found.push(`${revision} ${type} ${place.slice(bucket.length + 1)}`)
    }
  }
  return found
}
