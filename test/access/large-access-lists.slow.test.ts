// Many access entries of one user do not delay the conditions of objects of other users (D26).

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { must, openStage, rbac, secrets, soon } from './people.ts'

const large = ['large-0', 'large-1', 'large-2']
const entries = 250

type Watched = { metadata: { name: string }; status?: { conditions?: { type: string; status: string }[] } }
const isReady = ({ status }: Watched) => status?.conditions?.some(one => one.type === 'Ready' && one.status === 'True')

test('a small object is Ready while large ones are pending', { timeout: 120_000 }, async () => {
  const stage = await openStage()
  try {
    const { admin } = stage
    const { resourceVersion } = (await must(admin.ask('GET', secrets()))).metadata
    const access = Array.from({ length: entries }, (_, index) => ({ name: `e${index}`, verbs: ['get'], users: ['x'] }))
    for (const name of large) await must(admin.ask('POST', secrets(), { metadata: { name }, spec: { access } }))
    const small = { metadata: { name: 'small' }, spec: { access: [{ verbs: ['get'], users: ['y'] }] } }
    await must(admin.ask('POST', secrets(), small))
    const order: string[] = []
    for await (const { object } of admin.watch(`${secrets()}?resourceVersion=${resourceVersion}`)) {
      const secret = object as unknown as Watched
      if (isReady(secret) && !order.includes(secret.metadata.name)) order.push(secret.metadata.name)
      if (order.length === large.length + 1) break
    }
    assert.notEqual(order.at(-1), 'small', order.join())
    for (const plural of ['roles', 'rolebindings']) {
      const { items } = await must(admin.ask('GET', `${rbac}/namespaces/default/${plural}`))
      const generated = items.filter((one: Watched) => one.metadata.name.startsWith('access:'))
      assert.equal(generated.length, large.length * entries + 1, plural)
    }
    await must(admin.ask('DELETE', `${rbac}/namespaces/default/roles/access:sharedsecrets:large-1:e7`))
    await soon('a deleted role is restored', async () => {
      const role = await admin.ask('GET', `${rbac}/namespaces/default/roles/access:sharedsecrets:large-1:e7`)
      return role.status === 200
    })
  } finally {
    await stage.close()
  }
})
