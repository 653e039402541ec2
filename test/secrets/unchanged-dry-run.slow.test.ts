// A dry run that changes nothing answers with the object that a get shows, for every kind (D19, D35).

import assert from 'node:assert/strict'
import { cpSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { Kind } from '../../src/api/kind.ts'
import type { Resource } from '../../src/api/object.ts'
import { pathOf } from '../../src/api/paths.ts'
import { kinds } from '../../src/kinds/index.ts'
import { keys, must, soon } from '../access/people.ts'
import { type Server, startServer } from '../support/server.ts'

const stored = kinds.filter(kind => kind.stored && kind.served && kind.verbs.includes('patch'))
const dryRun = '?dryRun=All&fieldManager=same'
const typed = (type: string) => ({ 'content-type': `application/${type}` })

type Ask = (
  method: string,
  path: string,
  body?: unknown,
  headers?: Readonly<Record<string, string>>,
) => Promise<Resource>

const askOf =
  (server: Server, key = server.adminKey): Ask =>
  (method, path, body, headers = {}) =>
    must(server.request(method, path, { key, headers, ...(body === undefined ? {} : { body }) }))

const isSettled = ({ status }: Resource): boolean => {
  const { conditions = [] } = (status ?? {}) as { readonly conditions?: readonly { type: string; status: string }[] }
  return conditions.some(one => one.type === 'Ready' && one.status !== 'Unknown')
}

/** A replace of an object that changed meanwhile is a conflict. */
const unlessConflict = (error: Error): undefined => {
  if (!/^409: /.test(error.message)) throw error
}

/** Controllers may still work on a new object, so this compares again if the object itself changed meanwhile. */
async function expectUnchanged(ask: Ask, path: string, write: (live: Resource) => Promise<Resource>): Promise<void> {
  for (;;) {
    const live = await ask('GET', path)
    const answer = await write(live).catch(unlessConflict)
    const { metadata } = await ask('GET', path)
    if (!answer || metadata.resourceVersion !== live.metadata.resourceVersion) continue
    assert.deepEqual(answer, live)
    return
  }
}

const writes: { readonly [how: string]: (ask: Ask, path: string) => (live: Resource) => Promise<Resource> } = {
  'a replace': (ask, path) => live => ask('PUT', `${path}${dryRun}`, live),
  'a merge patch': (ask, path) => () => ask('PATCH', `${path}${dryRun}`, {}, typed('merge-patch+json')),
  'a merge patch with the whole object': (ask, path) => live =>
    ask('PATCH', `${path}${dryRun}`, { ...live, metadata: { name: live.metadata.name } }, typed('merge-patch+json')),
  'a JSON patch': (ask, path) => () => ask('PATCH', `${path}${dryRun}`, [], typed('json-patch+json')),
}

/** As in Kubernetes, only built-in kinds support strategic merge patches. */
const writesOf = ({ group }: Kind): typeof writes => ({
  ...writes,
  ...(group === 'rbac.authorization.k8s.io'
    ? {
        'a strategic merge patch': (ask: Ask, path: string) => () =>
          ask('PATCH', `${path}${dryRun}`, {}, typed('strategic-merge-patch+json')),
      }
    : {}),
})

describe('a dry run without a change', () => {
  let server: Server
  before(async () => {
    server = await startServer({ storage: 'memory' })
  })
  after(() => server.stop())

  const make = async (kind: Kind): Promise<string> => {
    const { name = '', namespace = '' } = kind.sample['metadata'] as { name?: string; namespace?: string }
    const collection = pathOf(kind, { namespace, name: '' })
    const { status, text } = await server.request('POST', `${collection}?fieldManager=same`, { body: kind.sample })
    assert.ok(status === 201 || status === 409, text)
    return pathOf(kind, { namespace, name })
  }

  for (const kind of stored) {
    for (const [how, write] of Object.entries(writesOf(kind)))
      test(`by ${how} shows the ${kind.kind} as a get does`, async () => {
        const path = await make(kind)
        const ask = askOf(server)
        await expectUnchanged(ask, path, write(ask, path))
      })

    test(`by a server-side apply shows the ${kind.kind} as a get does`, async () => {
      const path = await make(kind)
      const ask = askOf(server)
      const { status: _, ...config } = kind.sample
      const apply = (more: string) =>
        ask('PATCH', `${path}?fieldManager=applier&force=true${more}`, config, typed('apply-patch+yaml'))
      await apply('')
      await expectUnchanged(ask, path, () => apply('&dryRun=All'))
    })
  }

  test('shows the last activity of the access key that it uses as the get before did', async () => {
    const made = await must(
      server.request('POST', keys, { body: { metadata: { name: 'own' }, spec: { user: 'admin' } } }),
    )
    const ask = askOf(server, made.spec.key)
    const path = `${keys}/own`
    await ask('GET', path)
    const live = await ask('GET', path)
    assert.ok(live.status?.['lastActivity'])
    // The key is used again, more than a second after the use that the get showed.
    const shown = Date.parse(String(live.status['lastActivity']))
    await soon('a later use', async () => {
      await ask('GET', '/version')
      return Date.now() >= shown + 2000
    })
    for (const [how, write] of Object.entries(writes)) assert.deepEqual(await write(ask, path)(live), live, how)
    assert.notDeepEqual(await ask('GET', path), live)
  })
})

test('objects of release 0.1 have no last read, and a write of what they show changes nothing', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'platform-old-'))
  cpSync(join(import.meta.dirname, '../fixtures/release-0.1/directory'), directory, { recursive: true })
  const server = await startServer({ directory })
  try {
    const ask = askOf(server)
    for (const plural of ['sharedsecrets', 'projectsecrets']) {
      const list = (await ask('GET', `/apis/management.platform.sh/v1/${plural}`)) as unknown as { items: Resource[] }
      assert.equal(list.items.length, 2)
      for (const { metadata } of list.items) {
        const path = `/apis/management.platform.sh/v1/namespaces/${metadata.namespace}/${plural}/${metadata.name}`
        // The server adds conditions to objects of earlier releases.
        await soon(`${metadata.name} has its conditions`, async () => isSettled(await ask('GET', path)))
        await expectUnchanged(ask, path, async live => {
          assert.doesNotMatch(JSON.stringify(live), /last-?read/i)
          return ask('PUT', path, live)
        })
        for (const write of Object.values(writes)) await expectUnchanged(ask, path, write(ask, path))
      }
    }
  } finally {
    await server.stop()
  }
})
