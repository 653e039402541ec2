// A replica that was behind learns of a revocation and of what was written after it at once. The revoked user must not see the latter.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type Replicas, startReplicas } from '../support/replicas.ts'
import type { Server } from '../support/server.ts'
import { eventually } from '../support/wire.ts'

const ours = '/apis/management.platform.sh/v1'
const teams = `${ours}/teams`
const keys = `${ours}/ownedaccesskeys`
const secrets = `${ours}/namespaces/default/sharedsecrets`
const rbac = '/apis/rbac.authorization.k8s.io/v1/namespaces/default'
const verbs = ['get', 'list', 'watch']
const merge = { 'content-type': 'application/merge-patch+json' }

describe('a replica that was behind', () => {
  let replicas: Replicas
  let one: Server
  let two: Server
  before(async () => {
    replicas = await startReplicas()
    ;[one, two] = replicas.servers as [Server, Server]
  })
  after(() => replicas.close())

  const makeKey = async (user: string) => {
    const { body } = await one.request('POST', keys, { body: { metadata: { generateName: 'k-' }, spec: { user } } })
    return { name: body.metadata.name as string, key: body.spec.key as string }
  }
  const makeSecret = (name: string, access: readonly object[] = []) =>
    one.request('POST', secrets, { body: { metadata: { name }, spec: { description: 'shown', data: {}, access } } })
  const describe = (name: string, description: string) =>
    one.request('PATCH', `${secrets}/${name}`, { body: { spec: { description } }, headers: merge })

  /** Replica two continues after the changes, and receives all of them in one response. */
  async function behind(changes: () => Promise<void>): Promise<void> {
    const [member] = replicas.etcd.members
    two.signal('SIGSTOP')
    await member?.kill()
    await member?.start()
    await eventually('etcd answers', async () => (await one.request('GET', teams)).status === 200)
    await changes()
    two.signal('SIGCONT')
    await eventually('it answers', async () => (await two.request('GET', teams)).status === 200)
  }

  /** The descriptions that a watch of the user delivers, until it ends. */
  async function watched(key: string, changes: () => Promise<void>): Promise<readonly string[]> {
    const seen: string[] = []
    const watching = (async () => {
      for await (const { object } of two.watch(`${secrets}?watch=1&timeoutSeconds=20`, { key }))
        if (object.spec) seen.push(object.spec.description)
    })()
    await eventually('the watch shows the secret', async () => seen.length > 0)
    await behind(changes)
    await watching
    return seen
  }

  test('a watch with a deleted key ends before it shows what was written afterwards', async () => {
    const { name, key } = await makeKey('grace')
    await makeSecret('of-key', [{ name: 'grace', users: ['grace'], verbs }])
    const seen = await watched(key, async () => {
      await one.request('DELETE', `${keys}/${name}`)
      await describe('of-key', 'hidden')
    })
    assert.ok(!seen.includes('hidden'), seen.join())
  })

  test('a watch whose role binding is gone does not show what was written afterwards', async () => {
    const { name, key } = await makeKey('heidi')
    await makeSecret('of-binding')
    const rule = {
      apiGroups: ['management.platform.sh'],
      resources: ['sharedsecrets'],
      resourceNames: ['of-binding'],
      verbs,
    }
    await one.request('POST', `${rbac}/roles`, { body: { metadata: { name: 'reader' }, rules: [rule] } })
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'reader' }
    const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'heidi' }]
    await one.request('POST', `${rbac}/rolebindings`, { body: { metadata: { name: 'reader' }, roleRef, subjects } })
    const seen = await watched(key, async () => {
      await one.request('DELETE', `${rbac}/rolebindings/reader`)
      await describe('of-binding', 'hidden')
      await one.request('DELETE', `${keys}/${name}`)
    })
    assert.ok(!seen.includes('hidden'), seen.join())
  })

  test('an unfiltered watch ends before it shows what was written after its key was deleted', async () => {
    const { name, key } = await makeKey('admin')
    await makeSecret('of-admin')
    const seen = await watched(key, async () => {
      await one.request('DELETE', `${keys}/${name}`)
      await describe('of-admin', 'hidden from admin')
    })
    assert.ok(!seen.includes('hidden from admin'), seen.join())
  })
})
