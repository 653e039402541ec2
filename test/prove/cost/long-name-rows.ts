// Names that are so long that V8 hashes them by their length alone. Indexes with many of them once stalled the server. rows.ts lists them.

import { judge } from './limits.ts'
import type { Row } from './rows.ts'
import type { System } from './system.ts'
import { many, must, ours, rbac, type User, user } from './users.ts'

export const longNameRows: { readonly [what: string]: Row } = {
  'a key among 2,000 owners with uids of 20 KB': system =>
    stored(system, 80, ({ ask }, at) => {
      const owner = { apiVersion: 'v1', kind: 'Namespace', name: 'default' }
      const ownerReferences = many(25, index => ({ ...owner, uid: long(`${at}-${index}`) }))
      return ask('POST', `${ours}/ownedaccesskeys`, { metadata: { generateName: 'long-', ownerReferences } })
    }),
  'a binding among 2,500 subjects with names of 20 KB': system =>
    stored(system, 50, ({ admin }, at) => {
      const roleRef = { kind: 'ClusterRole', name: 'platform-viewer' }
      const subjects = many(50, index => ({ kind: 'User', name: long(`${at}-${index}`) }))
      return admin('POST', `${rbac}/clusterrolebindings`, { metadata: { generateName: 'long-' }, roleRef, subjects })
    }),
  'a list of 25 keys with managed fields of 20 KB': async system => {
    const { ask } = await user(system, 'holder')
    for (const at of many(25, index => index)) {
      const { text } = await must(ask('POST', `${ours}/ownedaccesskeys`, {}))
      const { name } = (JSON.parse(text) as { metadata: { name: string } }).metadata
      const fields = Object.fromEntries(many(45, index => [`f:${long(`${at}-${index}`)}`, {}]))
      const entry = {
        manager: 'm',
        operation: 'Update',
        apiVersion: 'management.platform.sh/v1',
        fieldsType: 'FieldsV1',
      }
      const managedFields = [{ ...entry, time: '2026-01-01T00:00:00Z', fieldsV1: { 'f:spec': fields } }]
      const { code } = await ask('PATCH', `${ours}/ownedaccesskeys/${name}`, { metadata: { managedFields } })
      if (code === 422) return undefined
    }
    return (await judge(undefined, () => must(ask('GET', `${ours}/ownedaccesskeys?limit=500`)))).problem
  },
}

/** Writes many objects, then measures one more. Undefined if the server rejects the first for the length of a text. */
async function stored(system: System, count: number, create: (user: User, at: number) => ReturnType<User['ask']>) {
  const holder = await user(system, 'holder')
  const { code, text } = await create(holder, 0)
  if (code === 422 && text.includes('Too long')) return undefined
  for (const at of many(count - 1, index => index + 1)) await must(create(holder, at))
  let turn = count
  return (await judge(undefined, () => must(create(holder, turn++)))).problem
}

const long = (end: string) => `${'x'.repeat(20_000)}${end.padStart(10, '0')}`
