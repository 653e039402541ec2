// Shared by the resources suite: a server for a group of tests, and short functions for frequent steps.

import assert from 'node:assert/strict'
import { after, before } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { ApiError, type Status } from '../../../src/api/errors.ts'
import type { Kind } from '../../../src/api/kind.ts'
import type { Json, JsonObject, Metadata, Ref, Resource } from '../../../src/api/object.ts'
import type { Resources, Watch, WatchEvent, WatchOptions } from '../../../src/api/resources.ts'
import type { ApiServer, BuildOptions } from '../../support/in-process.ts'
import { Widget } from './widget.ts'

export type OpenHouse = (options?: BuildOptions) => Promise<ApiServer>

/** One server for the surrounding group of tests. */
export function useHouse(open: OpenHouse, options: BuildOptions = {}): () => ApiServer {
  let apiServer: ApiServer | undefined
  before(async () => {
    apiServer = await open({ kinds: [Widget], ...options })
  })
  after(() => apiServer?.close())
  return () => {
    assert.ok(apiServer, 'the server is open while its tests run')
    return apiServer
  }
}

let made = 0
/** A name that no other test uses. */
export const fresh = (word = 'w') => `${word}-${++made}`

export const at = (name: string, namespace = 'default'): Ref => ({ namespace, name })

/** Test input is JSON, whatever its TypeScript type. */
export const json = (value: unknown): Json => value as Json

export const widget = (name: string, parts: { metadata?: object; spec?: object; status?: object } = {}): Json =>
  json({ ...parts, metadata: { name, ...parts.metadata } })

/** A previously read object with some members replaced. */
export function edited(
  object: Resource,
  parts: { metadata?: object; spec?: object; status?: object; kind?: string; apiVersion?: string },
): Json {
  const { metadata, spec, status, ...rest } = parts
  // Members set to undefined are left out, as JSON has no such thing.
  return plain(
    json({
      ...object,
      ...rest,
      metadata: { ...object.metadata, ...metadata },
      ...(spec ? { spec: { ...object.spec, ...spec } } : {}),
      ...(status ? { status: { ...object.status, ...status } } : {}),
    }),
  )
}

export async function create(
  apiServer: ApiServer,
  name: string,
  parts: Parameters<typeof widget>[1] = {},
  namespace = '',
) {
  return (await apiServer.resources.create(Widget, namespace, widget(name, parts))).object
}

export async function read(apiServer: ApiServer, name: string, namespace = '', kind: Kind = Widget): Promise<Resource> {
  return (await apiServer.resources.get(kind, { namespace, name })).object
}

export async function isThere(resources: Resources, kind: Kind, ref: Ref): Promise<boolean> {
  return resources.get(kind, ref).then(
    () => true,
    error => {
      assert.equal(error.code, 404)
      return false
    },
  )
}

type Expected = {
  readonly code?: number
  readonly reason?: string
  readonly message?: string | RegExp
  readonly details?: object
}

/** The Status with which it was refused; all that is named must be as said. */
export async function refused(promise: Promise<unknown>, expected: Expected): Promise<Status> {
  const error: unknown = await promise.then(
    answer => assert.fail(`it was not refused: ${JSON.stringify(answer)}`),
    thrown => thrown,
  )
  if (!(error instanceof ApiError)) throw error
  const { status } = error
  if (expected.code !== undefined) assert.equal(status.code, expected.code, `${status.code} ${status.message}`)
  if (expected.reason !== undefined) assert.equal(status.reason, expected.reason)
  if (typeof expected.message === 'string') assert.equal(status.message, expected.message)
  if (expected.message instanceof RegExp) assert.match(status.message ?? '', expected.message)
  if (expected.details) assert.deepEqual(plain(status.details), expected.details)
  return status
}

export const causes = (status: Status) => (status.details?.causes ?? []).map(one => `${one.field} ${one.reason}`)

/** Without prototypes, so that only content counts. */
export const plain = <T>(value: T): T => JSON.parse(JSON.stringify(value))

export const version = (object: Resource | undefined) => Number(object?.metadata.resourceVersion)

export const managers = ({ managedFields = [] }: Metadata) =>
  managedFields.map(entry =>
    [entry.manager, entry.operation, ...(entry.subresource ? [entry.subresource] : [])].join(' '),
  )

/** Runs with a watch, which ends with it. */
export async function watching(
  apiServer: ApiServer,
  options: WatchOptions & { readonly kind?: Kind },
  run: (watch: Watch) => Promise<void>,
): Promise<void> {
  const { kind = Widget, ...how } = options
  const watch = await apiServer.resources.watch(kind, how)
  try {
    await run(watch)
  } finally {
    watch.stop()
  }
}

const pending = new WeakMap<Watch, WatchEvent[]>()

/** So many further events. */
export async function events(watch: Watch, count: number): Promise<WatchEvent[]> {
  const found = pending.get(watch) ?? []
  while (found.length < count) {
    const more = await watch.next()
    assert.ok(more, `the watch ended after ${found.length} of ${count} events`)
    found.push(...more)
  }
  pending.set(watch, found.splice(count))
  return found
}

/** `ADDED a` and so on. */
export const spoken = (all: readonly WatchEvent[]) =>
  all.map(({ type, document }) => `${type} ${document.object.metadata.name ?? ''}`.trim())

/** Asks again and again until it is so, for thirty seconds at most: a loop must not outlive its test. */
export async function until(isSo: () => Promise<boolean>): Promise<void> {
  for (const end = performance.now() + 30_000; !(await isSo()); await turn())
    assert.ok(performance.now() < end, 'it did not come to this')
}

export const specOf = (object: Resource): JsonObject => plain(object.spec ?? {})
