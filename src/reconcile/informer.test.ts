// The informer against scripted Resources: what it does when watches end, fail, or come too late.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { ApiError, expired, internal } from '../api/errors.ts'
import { defineKind, type Kind } from '../api/kind.ts'
import type { Resource } from '../api/object.ts'
import {
  documentOf,
  type ListOptions,
  type Resources,
  statusDocument,
  type Watch,
  type WatchEvent,
  watchEvent,
} from '../api/resources.ts'
import { mentions } from './document-words.ts'
import { startInformer } from './informer.ts'

const kind: Kind = defineKind({
  kind: 'Thing',
  plural: 'things',
  singular: 'thing',
  namespaced: false,
  description: 'A thing.',
  sample: {},
})
const thing = (name: string, resourceVersion: string): Resource => ({
  apiVersion: kind.apiVersion,
  kind: 'Thing',
  metadata: { name, resourceVersion },
})
const added = (name: string, version: string) => watchEvent('ADDED', documentOf(thing(name, version)))
const error = (of: ApiError) => watchEvent('ERROR', statusDocument(of.status))

/** The events of each watch before it ends; the last watch stays open. */
function script(watches: readonly (readonly WatchEvent[])[]) {
  const asked: (string | undefined)[] = []
  const waits: number[] = []
  const failures: unknown[] = []
  let lists = 0
  let open = 0
  const watch = async (_: Kind, options: { readonly resourceVersion?: string } = {}): Promise<Watch> => {
    const said = watches[asked.length]
    asked.push(options.resourceVersion)
    open++
    let end = () => {}
    const ended = new Promise<undefined>(resolve => {
      end = () => resolve(undefined)
    })
    let rest = said?.length ? said : undefined
    const seen = said?.at(-1) ?? added('none', '0')
    return {
      async next() {
        const events = rest
        rest = undefined
        return events ?? (said ? void open-- : await ended)
      },
      bookmark: () => seen,
      stop: () => {
        open--
        end()
      },
    }
  }
  const resources = {
    list: async () => ({ items: [], resourceVersion: String(100 * ++lists) }),
    watch,
  } as unknown as Resources
  const options = {
    resources,
    kind,
    keep: (object: Resource) => object,
    failed: (failure: unknown) => void failures.push(failure),
    wait: async (milliseconds: number) => void waits.push(milliseconds),
  }
  return { options, asked, waits, failures, lists: () => lists, open: () => open }
}

async function until(isSo: () => boolean): Promise<void> {
  for (let n = 0; n < 1000 && !isSo(); n++) await turn()
  assert.ok(isSo())
}

async function relisted(isSo: () => boolean): Promise<void> {
  for (const end = performance.now() + 30_000; !isSo(); await turn()) assert.ok(performance.now() < end)
}

test('a watch that ends immediately is reopened with a growing delay, without a new list', async () => {
  const { options, asked, waits, lists } = script(Array.from({ length: 9 }, () => []))
  const informer = startInformer(options)
  await until(() => asked.length === 10)
  informer.stop()
  assert.deepEqual(waits, [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000])
  assert.equal(lists(), 1)
})

test('a watch that only delivers ERROR is followed by a new list, with a growing delay', async () => {
  const tooOld = [error(expired('too old'))]
  const { options, asked, waits, failures, lists } = script([tooOld, tooOld, tooOld])
  const informer = startInformer(options)
  await until(() => asked.length === 4)
  informer.stop()
  assert.deepEqual(waits, [100, 200, 400])
  assert.equal(lists(), 4)
  assert.deepEqual(failures, [], 'an expired version is not a failure: the informer lists again')
})

test('a version that expires under an open watch is followed by a new list at once', async () => {
  const { options, asked, waits, lists } = script([[]])
  const { watch } = options.resources
  const opened = async (...all: Parameters<Resources['watch']>): Promise<Watch> => {
    const inner = await watch(...all)
    if (asked.length > 1) return inner
    const next = () => new Promise<WatchEvent[]>(resolve => setTimeout(resolve, 150, [error(expired('too old'))]))
    return { ...inner, next }
  }
  const informer = startInformer({ ...options, resources: { ...options.resources, watch: opened } })
  await relisted(() => asked.length === 2)
  informer.stop()
  assert.deepEqual(waits, [])
  assert.equal(lists(), 2)
})

test('an ERROR event other than 410 is reported', async () => {
  const { options, asked, failures } = script([[error(internal())]])
  const informer = startInformer(options)
  await until(() => asked.length === 2)
  informer.stop()
  assert.deepEqual(
    failures.map(failure => failure instanceof ApiError && failure.code),
    [500],
  )
})

test('a watch that delivered events is reopened immediately, from its last version', async () => {
  const { options, asked, waits } = script([[added('a', '101')], [added('b', '102')]])
  const informer = startInformer(options)
  await until(() => asked.length === 3)
  informer.stop()
  assert.deepEqual(asked, ['100', '101', '102'])
  assert.deepEqual(waits, [])
})

test('after a failure it resumes the watch, or lists again if configured, which counts as contact', async () => {
  for (const listsAfterFailure of [false, true]) {
    const { options, asked } = script([[added('a', '101')]])
    const { resources } = options
    let [heard, failures] = [0, 0]
    const watch: Resources['watch'] = (...all) =>
      asked.length === 1 && failures++ < 3 ? Promise.reject(new Error('away')) : resources.watch(...all)
    const informer = startInformer({
      ...options,
      resources: { ...resources, watch },
      listsAfterFailure,
      contacted: () => void heard++,
    })
    await until(() => asked.length === 2)
    informer.stop()
    assert.deepEqual(
      { asked, heard },
      listsAfterFailure ? { asked: ['100', '400'], heard: 5 } : { asked: ['100', '101'], heard: 2 },
    )
  }
})

test('a stop while a watch is being opened stops that watch', async () => {
  const { options, asked, open } = script([])
  const { watch } = options.resources
  let proceed = () => {}
  const held = new Promise<void>(resolve => {
    proceed = resolve
  })
  const resources = {
    ...options.resources,
    watch: async (...args: Parameters<Resources['watch']>) => {
      await held
      return watch(...args)
    },
  }
  const informer = startInformer({ ...options, resources })
  await informer.ready
  informer.stop()
  proceed()
  await until(() => asked.length === 1)
  await until(() => open() === 0)
})

test('a stop while it lists ends all callbacks', async () => {
  const { options, asked } = script([])
  const changes: unknown[] = []
  let proceed = () => {}
  const held = new Promise<void>(resolve => {
    proceed = resolve
  })
  const list = async () => {
    await held
    return { items: [documentOf(thing('a', '1'))], resourceVersion: '1' }
  }
  const resources = { ...options.resources, list }
  const informer = startInformer({ ...options, resources, changed: ref => void changes.push(ref) })
  informer.stop()
  proceed()
  await turn()
  assert.deepEqual([changes, asked], [[], []])
})

/** Two lists of two pages each; 'b' is only in the first. */
function pagedLists() {
  const requests: ListOptions[] = []
  const pages = [
    { items: [thing('a', '1'), thing('b', '2')], resourceVersion: '100', continue: 'next' },
    { items: [thing('c', '3')], resourceVersion: '100' },
    { items: [thing('a', '1')], resourceVersion: '200', continue: 'next' },
    { items: [thing('c', '3')], resourceVersion: '200' },
  ]
  const list = async (_: Kind, options: ListOptions = {}) => {
    const page = pages[requests.length]
    requests.push(options)
    return { resourceVersion: '300', ...page, items: (page?.items ?? []).map(one => documentOf(one)) }
  }
  return { requests, list }
}

test('a list is read in pages, and an object that is on no page of the next list is dropped at its end', async () => {
  const { options, asked } = script([[error(expired('too old'))]])
  const { requests, list } = pagedLists()
  const told: string[] = []
  const informer = startInformer({
    ...options,
    resources: { ...options.resources, list },
    changed: ({ name }, now) => void told.push(`${name} ${now ? 'there' : 'gone'}`),
    listed: () => void told.push('listed'),
  })
  await until(() => asked.length === 2)
  informer.stop()
  assert.deepEqual(told, ['a there', 'b there', 'c there', 'listed', 'a there', 'c there', 'b gone', 'listed'])
  assert.deepEqual(asked, ['100', '200'])
  const [first, second] = [{ limit: 500 }, { limit: 500, continue: 'next' }]
  assert.deepEqual(requests, [first, second, first, second])
})

test('a page whose version is expired is followed by a list from the start', async () => {
  const { options, asked, waits } = script([])
  const { requests, list } = pagedLists()
  const failing = async (kind: Kind, how: ListOptions = {}) => {
    const page = await list(kind, how)
    if (requests.length === 2) throw expired('the page is too old')
    return page
  }
  const informer = startInformer({ ...options, resources: { ...options.resources, list: failing } })
  await until(() => asked.length === 1)
  informer.stop()
  assert.deepEqual(
    requests.map(one => one.continue),
    [undefined, 'next', undefined, 'next'],
  )
  assert.deepEqual(
    [...informer.values()].map(({ metadata }) => metadata.name),
    ['a', 'c'],
  )
  assert.deepEqual([asked, waits], [['200'], [100]])
})

/** A document whose object must not be read: that would parse an ignored object. */
const unparsed = (name: string, json: string) => ({
  json: Buffer.from(json),
  ref: { namespace: '', name },
  uid: undefined,
  get object(): Resource {
    throw new Error(`${name} was parsed`)
  },
})

test('ignored objects are not parsed, kept or reported', async () => {
  const { options, asked } = script([[watchEvent('ADDED', unparsed('b', '{"spec":{}}')), added('c', '102')]])
  const changes: string[] = []
  const resources = {
    ...options.resources,
    list: async () => ({ items: [unparsed('a', '{"spec":{}}')], resourceVersion: '100' }),
  }
  const informer = startInformer({
    ...options,
    resources,
    counts: mentions('name'),
    changed: ({ name }) => void changes.push(name),
  })
  await until(() => asked.length === 2)
  informer.stop()
  assert.deepEqual([changes, [...informer.values()].length, asked], [['c'], 1, ['100', '102']])
})

test('an object that becomes ignored is dropped, and deletions of ignored objects are reported', async () => {
  const bare = unparsed('a', '{"spec":{}}')
  const gone = { json: Buffer.from('{}'), ref: { namespace: '', name: 'b' }, uid: undefined, object: thing('b', '103') }
  const { options, asked } = script([
    [added('a', '101'), watchEvent('MODIFIED', bare), watchEvent('DELETED', gone), added('c', '104')],
  ])
  const told: string[] = []
  const informer = startInformer({
    ...options,
    counts: mentions('name'),
    changed: ({ name }, now) => void told.push(`${name} ${now ? 'there' : 'gone'}`),
    deleted: ({ metadata }) => void told.push(`${metadata.name} deleted`),
  })
  await until(() => asked.length === 2)
  informer.stop()
  assert.deepEqual(told, ['a there', 'a gone', 'b deleted', 'c there'])
})
