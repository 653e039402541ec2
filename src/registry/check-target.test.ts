// Every attempt of a write checks the stored object first, because another request may have replaced it.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { buildApiServer } from '../../test/support/in-process.ts'
import { forbidden } from '../api/errors.ts'
import type { Resource } from '../api/object.ts'
import type { Resources } from '../api/resources.ts'
import { SharedSecret } from '../kinds/shared-secret.ts'

const caller = { identity: 'User', username: 'ada', groups: [] } as const
const ref = { namespace: 'default', name: 'raced' }
const writes: { readonly [verb: string]: (resources: Resources) => Promise<unknown> } = {
  patch: resources => resources.patch(SharedSecret, ref, { type: 'merge', body: { spec: { description: 'mine' } } }),
  apply: resources =>
    resources.patch(
      SharedSecret,
      ref,
      {
        type: 'apply',
        force: true,
        body: { apiVersion: SharedSecret.apiVersion, kind: 'SharedSecret', spec: { description: 'mine' } },
      },
      { fieldManager: 'test' },
    ),
  delete: resources => resources.delete(SharedSecret, ref),
}

for (const [verb, write] of Object.entries(writes))
  test(`${verb}: a retry after a conflict checks again`, async () => {
    const apiServer = await buildApiServer()
    await apiServer.internalClient.create(SharedSecret, 'default', {
      metadata: { name: ref.name },
      spec: { owner: { user: 'ada' } },
    })
    const versions: (string | undefined)[] = []
    let change: Promise<unknown> | undefined
    const check = (stored: Resource | undefined) => {
      versions.push(stored?.metadata.resourceVersion)
      if (change) throw forbidden(SharedSecret, ref.name, 'not any more')
      // Commit this first, so that the commit of the attempt conflicts. A finalizer keeps the object.
      change = apiServer.internalClient.delete(SharedSecret, ref, { propagationPolicy: 'Foreground' })
    }
    await assert.rejects(write(apiServer.as(caller, { caller: () => {}, target: check })), { code: 403 })
    await change
    const { object } = await apiServer.internalClient.get(SharedSecret, ref)
    assert.equal(versions.length, 2)
    assert.equal(versions[1], object.metadata.resourceVersion)
    assert.equal((object.spec as { description?: string }).description, undefined)
    await apiServer.close()
  })
