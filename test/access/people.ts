// Users for access tests: a real server, an administrator, and invited users with a key each.

import assert from 'node:assert/strict'
import type { Answer, RequestOptions, WatchEvent } from '../support/request.ts'
import { type Server, startServer } from '../support/server.ts'

export const ours = '/apis/management.platform.sh/v1'
export const rbac = '/apis/rbac.authorization.k8s.io/v1'
export const keys = `${ours}/ownedaccesskeys`
export const teams = `${ours}/teams`
export const secrets = (namespace = 'default') => `${ours}/namespaces/${namespace}/sharedsecrets`

export type Person = {
  readonly name: string
  readonly key: string
  ask(method: string, path: string, body?: unknown, headers?: RequestOptions['headers']): Promise<Answer>
  watch(path: string): ReturnType<Server['watch']>
}

export type Stage = {
  readonly server: Server
  readonly admin: Person
  person(name: string, key: string): Person
  invite(name: string, spec?: object): Promise<Person>
  close(): Promise<void>
}

export async function openStage(): Promise<Stage> {
  const server = await startServer({ storage: 'memory' })
  const person = (name: string, key: string): Person => ({
    name,
    key,
    ask: (method, path, body, headers) =>
      server.request(method, path, { key, ...(body === undefined ? {} : { body }), ...(headers ? { headers } : {}) }),
    watch: path => server.watch(path, { key }),
  })
  const admin = person('admin', server.adminKey)
  return {
    server,
    admin,
    person,
    async invite(name, spec = {}) {
      const key = await must(
        admin.ask('POST', keys, { metadata: { generateName: `${name}-` }, spec: { user: name, ...spec } }),
      )
      return person(name, key.spec.key)
    },
    close: () => server.stop(),
  }
}

/** The answer's object; anything but success fails with what was said. */
// biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came, and fail where it is something else
export async function must(answer: Promise<Answer>): Promise<any> {
  const { status, body, text } = await answer
  assert.ok(status < 300, `${status}: ${text}`)
  return body
}

export async function refused(answer: Promise<Answer>, status: number, why?: RegExp): Promise<void> {
  const { status: actual, text, body } = await answer
  assert.equal(actual, status, text)
  if (why) assert.match(body?.message ?? text, why)
}

/** Asks again until it holds; fails after thirty seconds. */
export async function soon(what: string, holds: () => Promise<boolean>): Promise<void> {
  const until = Date.now() + 30_000
  while (!(await holds())) assert.ok(Date.now() < until, `not within thirty seconds: ${what}`)
}

/** The object once the server has generated its roles, and does not write its conditions any more (D23). */
export async function settled(person: Person, path: string): Promise<Awaited<ReturnType<typeof must>>> {
  let object: Awaited<ReturnType<typeof must>>
  await soon(`${path} is settled`, async () => {
    object = await must(person.ask('GET', path))
    const conditions = (object.status?.conditions ?? []) as { type: string; status: string }[]
    return conditions.find(one => one.type === 'AccessApplied')?.status === 'True'
  })
  return object
}

/** Events of a watch without those that only change the status. */
export async function* withoutStatusWrites(events: AsyncIterable<WatchEvent>): AsyncIterableIterator<WatchEvent> {
  const generations = new Map<string, number>()
  for await (const event of events) {
    const { uid, generation } = event.object.metadata ?? {}
    const isStatusWrite = event.type === 'MODIFIED' && generations.get(uid) === generation
    generations.set(uid, generation)
    if (!isStatusWrite) yield event
  }
}
