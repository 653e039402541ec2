// Sets up an installation with objects of all kinds, and compares copies of it, for the tests of migrations and backups.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Kind } from '../../src/api/kind.ts'
import type { Resource } from '../../src/api/object.ts'
import { kinds } from '../../src/kinds/index.ts'
import { openEtcdStore } from '../../src/storage/etcd/store.ts'
import { readStored } from '../../src/storage/index.ts'
import { makeKeyRing } from '../../src/storage/key-ring.ts'
import { openSqliteStore } from '../../src/storage/sqlite/store.ts'
import type { Entry, Key, Store, Value } from '../../src/storage/store.ts'
import { exec, type Output } from './exec.ts'
import type { Server } from './server.ts'

export const program = new URL('../../bin/platform.js', import.meta.url).pathname
const ours = '/apis/management.platform.sh/v1'

/** Runs the program with words that are separated by spaces. */
export const platform = (words: string, cwd?: string): Promise<Output> =>
  exec(process.execPath, [program, ...words.split(' ')], { timeout: 120_000, ...(cwd ? { cwd } : {}) })

export async function runs(words: string, cwd?: string): Promise<Output> {
  const output = await platform(words, cwd)
  assert.equal(output.code, 0, output.stdout + output.stderr)
  return output
}

/** Objects of every kind that clients create, deletions, secrets with versions, and the use of a key. */
export async function fillServer(server: Server): Promise<void> {
  const created = kinds.filter(kind => kind.served && kind.stored && kind.verbs.includes('create'))
  for (const kind of created) {
    const namespace = namespaceOf(kind)
    if (kind.namespaced && namespace !== 'default')
      await server.request('POST', '/api/v1/namespaces', { body: { metadata: { name: namespace } } })
    const { status, text } = await server.request('POST', collection(kind), { body: kind.sample })
    assert.ok([201, 409].includes(status), `${kind.kind}: ${text}`)
  }
  const secrets = `${ours}/namespaces/default/sharedsecrets`
  for (const value of ['one', 'two', 'three']) await putSecret(server, 'versioned', { value })
  await putSecret(server, 'large', { value: 'x'.repeat(400_000) })
  await putSecret(server, 'gone', { value: 'x' })
  assert.equal((await server.request('DELETE', `${secrets}/gone`)).status, 200)
  const key = await server.request('POST', `${ours}/ownedaccesskeys`, {
    body: { metadata: { name: 'used' }, spec: { user: 'admin' } },
  })
  assert.equal(key.status, 201)
  assert.equal((await server.request('GET', secrets, { key: key.body.spec.key })).status, 200)
}

const namespaceOf = ({ sample }: Kind) => (sample as unknown as Resource).metadata.namespace ?? 'default'

function collection(kind: Kind): string {
  const root = kind.group ? `/apis/${kind.group}/${kind.version}` : `/api/${kind.version}`
  return kind.namespaced ? `${root}/namespaces/${namespaceOf(kind)}/${kind.plural}` : `${root}/${kind.plural}`
}

export async function putSecret(server: Server, name: string, values: Readonly<Record<string, string>>): Promise<void> {
  const data = Object.fromEntries(
    Object.entries(values).map(([key, value]) => [key, Buffer.from(value).toString('base64')]),
  )
  const path = `${ours}/namespaces/default/sharedsecrets`
  const body = { metadata: { name }, spec: { data } }
  const made = await server.request('POST', path, { body })
  if (made.status === 201) return
  const changed = await server.request('PATCH', `${path}/${name}`, {
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/merge-patch+json' },
  })
  assert.equal(changed.status, 200, changed.text)
}

/** A copy of the key ring and of the administrator's key, without data. */
export function keysOnly(from: string, to: string): string {
  mkdirSync(to)
  for (const name of ['master.key', 'admin.key'])
    if (existsSync(join(from, name))) cpSync(join(from, name), join(to, name))
  return to
}

/** A copy of the data directory of a server that was stopped for it. */
export async function copyOf(server: Server, to: string): Promise<string> {
  await server.restart(async () => cpSync(server.directory, to, { recursive: true }))
  return to
}

/** The stored text of every object, without its revision. */
export const storedIn = (directory: string): readonly string[] => textsOf(readStored(directory))

export async function storedAt(endpoints: readonly string[], prefix: string): Promise<readonly string[]> {
  const store = await openEtcdStore({ endpoints, prefix })
  try {
    return textsOf(store)
  } finally {
    await store.close()
  }
}

const textsOf = (store: Pick<Store, 'list'>) =>
  kinds.flatMap(({ id }) => store.list({ bucket: id }).entries.map(entry => `${id} ${withoutRevision(entry)}`))

const withoutRevision = ({ text, revision }: Entry) =>
  text.toString().replace(`"resourceVersion":"${revision}"`, '"resourceVersion":""')

export type Sample = { readonly bucket: string; readonly name: string; readonly text: string }

/** A team, or another object of a bucket, with some text in it. */
export const sampleOf = (name: string, text: string, bucket = 'teams.management.platform.sh'): Sample => ({
  bucket,
  name,
  text,
})

/** Creates the database of a data directory, without a server. */
export async function createStore(directory: string, samples: readonly Sample[]): Promise<string> {
  mkdirSync(directory)
  writeFileSync(
    join(directory, 'master.key'),
    makeKeyRing(size => randomBytes(size)),
  )
  const store = await openSqliteStore({ file: join(directory, 'platform.db') })
  await Promise.all(samples.map(sample => store.commit([{ type: 'put', ...opOf(sample) }])))
  await store.close()
  return directory
}

export function opOf({ bucket, name, text }: Sample): { readonly key: Key; readonly value: Value } {
  const start = `{"metadata":{"name":"${name}","resourceVersion":"`
  const value = { text: Buffer.from(`${start}"},"spec":{"text":"${text}"}}`), gap: start.length }
  return { key: { bucket, namespace: '', name }, value }
}
